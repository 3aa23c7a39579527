#include "store/latest_event.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "store/event_scanner.hpp"
#include "store/payload_decoder.hpp"
#include "store/payload_info.hpp"
#include "store/payload_placer.hpp"
#include "store/received_image.hpp"

namespace weir::store {

namespace {

using SteadyClock = std::chrono::steady_clock;

/// Blocks as workers format them: without what the sink stamps, so their headers have no checksum yet.
struct WorkerBlock {
    BlockHeader header;
    std::span<const std::byte> body;
    std::size_t bytes = 0;  ///< with its padding

    [[nodiscard]] bool ends_event() const { return (header.flags & BlockHeader::end_of_event) != 0; }
};

/// Takes the next block off; false at the end, and at what is no block.
bool next_block(std::span<const std::byte>& rest, WorkerBlock& block) {
    if (rest.size() < sizeof block.header) return false;
    std::memcpy(&block.header, rest.data(), sizeof block.header);
    block.header.version = format_version_newest;  // the event file stamps its own, after this
    block.bytes = sizeof block.header + padded(block.header.stored_bytes);
    if (block.header.magic != block_magic || block.bytes > rest.size()) return false;
    block.body = rest.subspan(sizeof block.header, block.header.stored_bytes);
    rest = rest.subspan(block.bytes);
    return true;
}

/// What is said of the event before its payload. Throws core::RunError where its blocks contradict themselves.
EventInfo event_info(std::span<const std::byte> blocks) {
    EventInfo event;
    WorkerBlock block;
    while (next_block(blocks, block)) {
        if (block.header.type == BlockType::event && block.body.size() >= sizeof(EventBody)) {
            EventBody body;
            std::memcpy(&body, block.body.data(), sizeof body);
            event.version = block.header.version;
            event.id = block.header.event;
            event.epoch = block.header.epoch;
            take_event_body(body, event);
        } else if (block.header.type == BlockType::source) {
            for (std::span<const std::byte> rest = block.body; !rest.empty();)
                if (const std::string problem = parse_source(rest, event.sources.emplace_back()); !problem.empty())
                    throw core::RunError(problem);
        } else if (block.header.type == BlockType::payload) {
            break;
        }
    }
    return event;
}

bool all_came(const EventInfo& event) {
    return std::ranges::all_of(event.sources,
                               [](const SourceInfo& source) { return source.state == SourceState::complete; });
}

/// The 16 bits of each pixel are enough to say all.
bool is_shown_as_received(const hdf5::Layout& layout, const EventInfo& event) {
    return !event.reduced() && all_came(event) && layout.bits == 16;
}

reduce::PixelType pixel_type(hdf5::Element element) {
    switch (element) {
        case hdf5::Element::f32:
            return reduce::PixelType::f32;
        case hdf5::Element::f16:
            return reduce::PixelType::f16;
        case hdf5::Element::i16:
            return reduce::PixelType::i16;
        default:
            return reduce::PixelType::u16;
    }
}

/// Throws core::RunError, with the reason, where the event is no image.
hdf5::Layout image_layout(const hdf5::Description& description, const EventInfo& event) {
    if (description.content == Content::mep || event.content == Content::mep)
        throw core::RunError("the events are multi-event packets, which are no images");
    if (!description.element || description.columns == 0) {
        if (description.format.empty())
            throw core::RunError("the streams have several formats, which make no image together");
        const wire::FormatEntry* format = wire::find_format(description.format);
        throw core::RunError(format != nullptr && format->image_shape != nullptr
                                 ? std::string("the streams have several sizes of images or pixels")
                                 : fmt::format("events of the format {} are no images", description.format));
    }
    hdf5::Layout layout = hdf5::layout_of(description, event);
    if (!layout.image)
        throw core::RunError(
            fmt::format("event {}:{} is no image: its sources differ in size, or are no whole rows of {} "
                        "pixels",
                        event.epoch, event.id, description.columns));
    if (layout.image_bytes() > LatestEvent::event_bytes_max)
        throw core::RunError(fmt::format("event {}:{} has {} rows of {} pixels, too many to be shown", event.epoch,
                                         event.id, layout.image_rows(), layout.columns));
    return layout;
}

std::vector<std::byte> bytes_of_floats(const std::vector<float>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

/// The payload, each source's part in its place.
struct PlacedImage {
    std::vector<std::byte> bytes;
    ImageStretches came;

    PlacedImage(const hdf5::Layout& layout, const EventInfo& event, std::span<const std::byte> blocks)
        : bytes(layout.sources.size() * layout.part_bytes()) {
        const std::uint64_t module = layout.part_bytes();
        PayloadPlacer placer(event, [&](std::size_t source, std::uint64_t offset, std::span<const std::byte> piece) {
            if (offset > module || piece.size() > module - offset)
                throw core::RunError("a source has more bytes than its part of the image");
            const std::uint64_t at = source * module + offset;
            std::ranges::copy(piece, bytes.begin() + static_cast<std::ptrdiff_t>(at));
            came.add(at, piece.size());
        });
        PayloadDecoder decoder;
        WorkerBlock block;
        while (next_block(blocks, block)) {
            if (block.header.type != BlockType::payload) continue;
            const auto decoded = decoder.decode(block.header, block.body);
            if (!decoded) throw core::RunError("the payload cannot be decoded");
            placer.take(*decoded);
        }
    }
};

std::vector<std::byte> pixels_of(const hdf5::Layout& layout, const EventInfo& event, PlacedImage image) {
    if (event.reduced()) return bytes_of_floats(energies_of(pixel_type(layout.element), image.bytes));
    if (is_shown_as_received(layout, event)) return std::move(image.bytes);
    return bytes_of_floats(received_values(layout.bits, image.bytes, image.came));
}

}  // namespace

struct LatestEvent::Copy {
    std::vector<std::byte> blocks;
    bool too_large = false;
    std::uint64_t generation = 0;
    SteadyClock::time_point passed;
    Facts facts;  ///< all but how long ago

    void describe(const hdf5::Description& description) {
        facts = {};
        facts.generation = generation;
        try {
            if (too_large)
                throw core::RunError(
                    fmt::format("the event has more than {} MiB, too much to be shown", event_bytes_max >> 20U));
            const EventInfo event = event_info(blocks);
            facts.epoch = event.epoch;
            facts.event = event.id;
            const hdf5::Layout layout = image_layout(description, event);
            facts.width = layout.columns;
            facts.height = static_cast<std::uint32_t>(layout.image_rows());
            facts.type = is_shown_as_received(layout, event) ? "u16" : "f32";
        } catch (const core::RunError& error) {
            facts.why_not = error.what();
        }
    }
};

LatestEvent::LatestEvent(const nlohmann::json& start, std::chrono::milliseconds interval)
    : description_(hdf5::describe(start, std::nullopt)), interval_(interval) {}

LatestEvent::~LatestEvent() = default;

void LatestEvent::look_at(std::span<const std::byte> blocks) noexcept {
    if (copy_ == nullptr && generation_ > 0 && SteadyClock::now() - copied_ < interval_) return;
    try {
        take(blocks);
    } catch (const std::exception&) {  // no memory: no picture, and nothing else happens
        copy_.reset();
        wanted_.store(false, std::memory_order_relaxed);
    }
}

/// The rest of the event whose copy has begun; else the last whole event in here, else the one that only begins here.
void LatestEvent::take(std::span<const std::byte> blocks) {
    const std::byte* const end = blocks.data() + blocks.size();
    std::span<const std::byte> rest = blocks;
    const std::byte* begin = nullptr;  // of the event that is open
    std::span<const std::byte> whole;
    WorkerBlock block;
    while (next_block(rest, block)) {
        const std::byte* const after = rest.data();
        if (block.header.type == BlockType::event) begin = after - block.bytes;
        if (!block.ends_event()) continue;
        if (copy_ != nullptr) {
            append({blocks.data(), after});
            return finish_copy();
        }
        if (begin != nullptr) whole = {begin, after};
        begin = nullptr;
    }
    if (copy_ != nullptr) return append(blocks);
    if (whole.empty() && begin == nullptr) return;
    begin_copy();
    append(whole.empty() ? std::span<const std::byte>(begin, end) : whole);
    if (!whole.empty()) finish_copy();
}

void LatestEvent::begin_copy() {
    copy_ = std::make_shared<Copy>();
    copy_->blocks.reserve(last_bytes_);  // events are mostly as long as each other
    copied_ = copy_->passed = SteadyClock::now();
}

void LatestEvent::append(std::span<const std::byte> blocks) {
    copy_->too_large = copy_->too_large || copy_->blocks.size() + blocks.size() > event_bytes_max;
    if (!copy_->too_large) copy_->blocks.insert(copy_->blocks.end(), blocks.begin(), blocks.end());
}

void LatestEvent::finish_copy() {
    copy_->generation = ++generation_;
    copy_->describe(description_);
    last_bytes_ = copy_->blocks.size();
    wanted_.store(false, std::memory_order_relaxed);
    std::shared_ptr<const Copy> old = std::exchange(copy_, nullptr);  // its memory goes after the lock
    const std::lock_guard lock(mutex_);
    latest_.swap(old);
}

std::shared_ptr<const LatestEvent::Copy> LatestEvent::latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
}

LatestEvent::Facts LatestEvent::facts() const {
    const std::shared_ptr<const Copy> copy = latest();
    Facts facts;
    if (copy == nullptr) {
        facts.why_not = "no event has been written yet";
        return facts;
    }
    facts = copy->facts;
    facts.seconds_ago = std::chrono::duration<double>(SteadyClock::now() - copy->passed).count();
    return facts;
}

std::shared_ptr<const LatestEvent::Picture> LatestEvent::decode(const Copy& copy) const {
    auto picture = std::make_shared<Picture>();
    picture->facts = copy.facts;
    if (!copy.facts.why_not.empty()) return picture;
    try {
        const EventInfo event = event_info(copy.blocks);
        const hdf5::Layout layout = image_layout(description_, event);
        picture->pixels = pixels_of(layout, event, PlacedImage(layout, event, copy.blocks));
    } catch (const core::RunError& error) {
        picture->facts.why_not = error.what();
    }
    return picture;
}

std::shared_ptr<const LatestEvent::Picture> LatestEvent::take_picture() {
    const std::shared_ptr<const Copy> copy = latest();
    wanted_.store(true, std::memory_order_relaxed);
    if (copy == nullptr) return std::make_shared<const Picture>(Picture{facts(), {}});
    const std::lock_guard lock(decoding_);
    if (picture_ == nullptr || picture_->facts.generation != copy->generation) picture_ = decode(*copy);
    return picture_;
}

}  // namespace weir::store

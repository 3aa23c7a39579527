// The stream sink. See sink.hpp.
#include "stream/sink.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "store/hdf5/nexus.hpp"
#include "stream/compression.hpp"

namespace weir::stream {

using std::chrono::steady_clock;
using store::BlockHeader;
using store::BlockType;

namespace {

/// How often a consumer is asked again that has no room.
constexpr auto retry_interval = std::chrono::microseconds(200);
/// More than what an image adds to the head of its message.
constexpr std::size_t image_head_bytes = 128;
/// And a source of an event that is none: its key, and the head of its byte string.
constexpr std::size_t source_head_bytes = 32;

[[noreturn]] void throw_disordered() {
    throw core::RunError("internal error: the stream sink was given blocks that do not follow each other");
}

}  // namespace

Sink::Sink(const Config& config)
    : config_(config), memory_(std::make_shared<MessageMemory>(static_cast<std::size_t>(config.queue_bytes))) {
    for (const std::string& listen : config_.listen)
        consumers_.emplace_back(context_, Consumer::Config{listen, config_.queue, config_.queue_bytes});
    if (!config_.previews.empty())
        previews_.emplace(context_, config_.previews, config_.preview_every, config_.preview_bin);
    nlohmann::json start = nlohmann::json::parse(config_.start_json, nullptr, false);
    if (start.is_discarded()) start = nullptr;
    description_ = store::hdf5::describe(start, {});
    series_ = {config_.run, fmt::format("{}-{}", config_.name, config_.run),
               store::hdf5::iso_time(core::clock_ns(CLOCK_REALTIME)), config_.start_json, 0};
    ready_by_ = steady_clock::now() + config_.start_timeout;
}

Sink::~Sink() = default;

bool Sink::is_ready() {
    for (Consumer& consumer : consumers_) consumer.look();
    return std::ranges::all_of(consumers_, &Consumer::is_connected) || steady_clock::now() >= ready_by_;
}

/// Does something with the messages; an error ends the taking of events.
template <class Action>
void Sink::guarded(Action action) {
    if (failed_ || finished_) throw core::RunError(failed_ ? failure_ : "internal error: append to a closed stream");
    try {
        action();
    } catch (const std::exception& error) {
        failed_ = true;
        failure_ = error.what();
        count();
        throw core::RunError(failure_);
    }
    count();
}

void Sink::append(std::span<std::byte> blocks) {
    guarded([&] {
        while (!blocks.empty()) {
            BlockHeader header;
            if (blocks.size() < sizeof header) throw_disordered();
            std::memcpy(&header, blocks.data(), sizeof header);
            const std::uint64_t bytes = sizeof header + store::padded(header.stored_bytes);
            if (header.magic != store::block_magic || bytes > blocks.size()) throw_disordered();
            take_block(header, blocks.subspan(sizeof header, header.stored_bytes));
            ++stats_.blocks;
            blocks = blocks.subspan(bytes);
        }
    });
}

void Sink::take_block(const BlockHeader& header, std::span<const std::byte> body) {
    if (header.type == BlockType::padding) return;
    if (header.type == BlockType::event) {
        take_event(header, body);
        return;
    }
    if (!event_open_ || header.event != event_.id || header.epoch != event_.epoch) throw_disordered();
    if (header.type == BlockType::source && sources_left_ > 0)
        take_sources(body);
    else if (header.type == BlockType::payload && sources_left_ == 0)
        take_payload(header, body);
    else
        throw_disordered();
}

void Sink::take_event(const BlockHeader& header, std::span<const std::byte> bytes) {
    store::EventBody body;
    if (event_open_ || bytes.size() != sizeof body) throw_disordered();
    std::memcpy(&body, bytes.data(), sizeof body);
    event_ = {};
    event_.id = header.event;
    event_.epoch = header.epoch;
    store::take_event_body(body, event_);
    sources_left_ = body.sources;
    event_open_ = true;
    if (sources_left_ == 0) begin_event();
}

void Sink::take_sources(std::span<const std::byte> body) {
    while (!body.empty()) {
        if (sources_left_ == 0) throw_disordered();
        store::SourceInfo source;
        const std::string problem = store::parse_source(body, source);
        if (!problem.empty())
            throw core::RunError("internal error: the stream sink was given a block in which " + problem);
        event_.sources.push_back(std::move(source));
        --sources_left_;
    }
    if (sources_left_ == 0) begin_event();
}

void Sink::take_payload(BlockHeader header, std::span<const std::byte> body) {
    header.version = store::format_version_newest;  // stamped by the event file only, if there is one before this sink
    if (header.raw_bytes > payload_left_) throw_disordered();
    payload_left_ -= header.raw_bytes;
    if (is_image_) {
        image_.take(header, body);
    } else if (header.raw_bytes > 0) {
        const auto decoded = decoder_.decode(header, body);
        if (!decoded) throw core::RunError("internal error: the stream sink was given a block that cannot be decoded");
        put_bytes(*decoded);
    }
    if ((header.flags & BlockHeader::end_of_event) != 0) end_event();
}

/// Everything of event_ but its payload is known.
void Sink::begin_event() {
    if (!begun_) begin_series();
    payload_left_ = event_.content_bytes();
    is_image_ = layout_ && is_image_of(*layout_, event_);
    head_.clear();
    put_event_head(head_, is_image_ ? "image" : "event", series_, image_id_, event_);
    if (!is_image_) return begin_bytes();
    head_bytes_ = head_.written().size() + image_head_bytes;
    const std::size_t bytes = ImageBuilder::bytes_max(*layout_);
    block_ = memory_->take(head_bytes_ + bytes);
    image_.begin(*layout_, event_, block_.span().subspan(head_bytes_, bytes));
}

/// The first event decides what the images of the run are, or that there are none.
void Sink::begin_series() {
    begun_ = true;
    series_.date_ns = event_.first_ns;
    if (!event_.sources.empty()) {
        store::hdf5::Layout layout = store::hdf5::layout_of(description_, event_);
        if (layout.image) layout_ = std::move(layout);
    }
    if (!previews_) return;
    head_.clear();
    put_start(head_, series_, layout_ ? &*layout_ : nullptr, image_id_);
    previews_->publish(head_.written());
}

/// A byte string for each source: all lengths are known before the first byte.
void Sink::begin_bytes() {
    head_.map(event_.sources.size());
    block_ = memory_->take(head_.written().size() + event_.content_bytes() + event_.sources.size() * source_head_bytes);
    std::memcpy(block_.bytes.get(), head_.written().data(), head_.written().size());
    bytes_at_ = head_.written().size();
    source_at_ = 0;
    source_left_ = 0;
    put_bytes({});
}

void Sink::put_bytes(std::span<const std::byte> decoded) {
    for (;;) {
        const std::size_t bytes = std::min<std::uint64_t>(decoded.size(), source_left_);
        if (bytes > 0) std::memcpy(block_.bytes.get() + bytes_at_, decoded.data(), bytes);
        bytes_at_ += bytes;
        source_left_ -= bytes;
        decoded = decoded.subspan(bytes);
        if (source_left_ > 0) return;
        if (source_at_ == event_.sources.size()) {
            if (!decoded.empty()) throw_disordered();
            return;
        }
        const store::SourceInfo& source = event_.sources[source_at_++];
        source_left_ = event_.content_bytes(source);
        head_.clear();
        head_.text(std::to_string(source.id));
        head_.bytes_head(source_left_);
        std::memcpy(block_.bytes.get() + bytes_at_, head_.written().data(), head_.written().size());
        bytes_at_ += head_.written().size();
    }
}

void Sink::end_event() {
    if (payload_left_ != 0) throw_disordered();
    event_open_ = false;
    if (is_image_) {
        finish_image();
    } else {
        const std::span<const std::byte> bytes(block_.bytes.get(), bytes_at_);
        send(std::make_shared<Message>(memory_, std::move(block_), bytes));
    }
    ++image_id_;
}

/// The head is written last, right in front of the pixels: only now it is known how they are packed.
void Sink::finish_image() {
    const ImageBuilder::Result image = image_.end();
    const std::string_view compression = image.codec ? compression_name(*image.codec) : std::string_view{};
    put_image_data(head_, layout_->image_rows(), layout_->columns, element_type_of(layout_->element), compression,
                   image.bytes.size());
    const std::span<const std::byte> head = head_.written();
    if (head.size() > head_bytes_) throw core::RunError("internal error: the head of a message found no room");
    std::byte* const from = block_.bytes.get() + head_bytes_ - head.size();
    std::memcpy(from, head.data(), head.size());
    if (previews_ && previews_->wants(image_id_))
        previews_->publish(series_, image_id_, event_, *layout_, image_.pixels(image));
    const std::span<const std::byte> bytes(from, head.size() + image.bytes.size());
    send(std::make_shared<Message>(memory_, std::move(block_), bytes));
}

MessagePtr Sink::make_message(std::span<const std::byte> bytes) {
    MessageMemory::Block block = memory_->take(bytes.size());
    std::memcpy(block.bytes.get(), bytes.data(), bytes.size());
    const std::span<const std::byte> copy(block.bytes.get(), bytes.size());
    return std::make_shared<Message>(memory_, std::move(block), copy);
}

/// What a consumer gets first: it says which image comes next, for those that are not there from the beginning.
MessagePtr Sink::make_start() {
    CborWriter start;
    put_start(start, series_, layout_ ? &*layout_ : nullptr, image_id_);
    return make_message(start.written());
}

/// One event counts as sent if every consumer gets it.
void Sink::send(const MessagePtr& message) {
    std::optional<DropCause> why;
    for (Consumer& consumer : consumers_) {
        const auto its_why = send_to(consumer, message);
        if (its_why)
            consumer.count_dropped(*its_why);
        else
            consumer.count_sent();
        if (!why) why = its_why;
    }
    if (why) {
        ++stats_.dropped[static_cast<std::size_t>(*why)];
        return;
    }
    message->count_in(in_flight_);
    ++stats_.events;
    stats_.bytes += message->bytes().size();
    stats_.payload_bytes += event_.payload_bytes;
}

std::optional<DropCause> Sink::send_to(Consumer& consumer, const MessagePtr& message) {
    for (;;) {
        consumer.look();
        if (consumer.owes_start() && (start_ == nullptr || start_is_for_ != image_id_)) {
            start_ = make_start();
            start_is_for_ = image_id_;
        }
        const auto why = consumer.offer(start_, message);
        if (!why) {
            consumer.patience.reset();
            return {};
        }
        if (!config_.wait) return why;
        const auto now = steady_clock::now();
        if (stopping_.load(std::memory_order_relaxed)) {
            // A consumer that still takes events gets them all; one that does not holds up the end only once.
            if (!consumer.patience) consumer.patience = now + config_.linger;
            if (now >= *consumer.patience || at_once_.load(std::memory_order_relaxed)) return why;
        }
        std::this_thread::sleep_for(retry_interval);
    }
}

void Sink::sync_if_due() {
    if (failed_ || finished_) return;
    for (Consumer& consumer : consumers_) {
        consumer.look();
        if (!begun_ || !consumer.owes_start() || !consumer.is_connected()) continue;
        if (start_ == nullptr || start_is_for_ != image_id_) {
            start_ = make_start();
            start_is_for_ = image_id_;
        }
        // If there is no room for it now, it goes before the next event.
        static_cast<void>(consumer.offer_start(start_));
    }
    count();
}

/// What has left for the kernel is as good as it gets.
void Sink::count() noexcept {
    const std::uint64_t in_flight = in_flight_->load(std::memory_order_acquire);
    stats_.synced_events = stats_.events - std::min(stats_.events, in_flight);
    stats_.synced_bytes = stats_.synced_events == stats_.events ? stats_.bytes : 0;
    stats_.interrupted = 0;
    for (const Consumer& consumer : consumers_) stats_.interrupted += consumer.account().left;
}

void Sink::send_end() {
    if (start_ == nullptr || start_is_for_ != image_id_) start_ = make_start();
    const auto until = steady_clock::now() + config_.linger;
    CborWriter end;
    for (Consumer& consumer : consumers_) {
        const Consumer::Account& account = consumer.account();
        end.clear();
        put_end(end, series_, {image_id_, account.sent, drop_causes, account.dropped});
        const MessagePtr message = make_message(end.written());
        while (consumer.offer_end(start_, message) && steady_clock::now() < until &&
               !at_once_.load(std::memory_order_relaxed))
            std::this_thread::sleep_for(retry_interval);
    }
    if (!previews_) return;
    end.clear();
    put_end(end, series_, {image_id_, stats_.events, drop_causes, std::span(stats_.dropped).first(drop_causes.size())});
    previews_->publish(end.written());
}

/// With `wait`, as long as they go on taking.
void Sink::wait_for_the_rest() {
    const auto left = [this] {
        std::uint64_t messages = 0;
        for (Consumer& consumer : consumers_) {
            consumer.look();
            messages += consumer.on_the_way();
        }
        return messages;
    };
    auto until = steady_clock::now() + config_.linger;
    std::uint64_t last = left();
    while (last > 0 && steady_clock::now() < until && !at_once_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(retry_interval);
        const std::uint64_t now = left();
        if (config_.wait && now < last) until = steady_clock::now() + config_.linger;
        last = now;
    }
}

void Sink::finish_data() {
    if (finished_) return;
    finished_ = true;
    if (failed_) return;
    send_end();
    wait_for_the_rest();
    const std::uint64_t late = std::min(stats_.events, in_flight_->load(std::memory_order_acquire));
    for (Consumer& consumer : consumers_) consumer.close();
    stats_.events -= late;
    stats_.dropped[static_cast<std::size_t>(DropCause::too_late)] += late;
    count();
    stats_.synced_events = stats_.events;
}

void Sink::close(const nlohmann::json& /*manifest_extra*/) {
    finish_data();
    if (failed_) throw core::RunError(failure_);
}

std::string Sink::place() const {
    std::string text;
    for (const Consumer& consumer : consumers_) text += (text.empty() ? "" : ", ") + consumer.address();
    return text;
}

nlohmann::json Sink::how() const {
    nlohmann::json out{{"consumers", nlohmann::json::array()}};
    for (const Consumer& consumer : consumers_) {
        const Consumer::Account& account = consumer.account();
        nlohmann::json dropped = nlohmann::json::object();
        for (std::size_t i = 0; i < drop_causes.size(); ++i) dropped[std::string(drop_causes[i])] = account.dropped[i];
        out["consumers"].push_back({{"listen", consumer.address()},
                                    {"sent", account.sent},
                                    {"dropped", dropped},
                                    {"came", account.came},
                                    {"left", account.left}});
    }
    if (previews_) out["previews"] = previews_->address();
    return out;
}

std::string Sink::how_text() const {
    const auto here = std::ranges::count_if(consumers_, &Consumer::is_connected);
    return fmt::format("{} of {} consumers connected{}", here, consumers_.size(),
                       previews_ ? ", previews at " + previews_->address() : "");
}

}  // namespace weir::stream

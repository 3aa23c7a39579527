// `weir export --to npy`: arrays that numpy.load reads, and beside them as JSON which event is where.
// The format: numpy/doc "NEP 1 — A Simple File Format for NumPy Arrays", version 1.0.
#include <fmt/core.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.hpp"
#include "export_target.hpp"
#include "output_file.hpp"
#include "output_folder.hpp"
#include "reduce/pixels/pixels.hpp"
#include "run_text.hpp"
#include "store/json_members.hpp"
#include "store/payload_info.hpp"
#include "wire/reported_stream.hpp"

namespace weir::app {

namespace {

using nlohmann::json;
using store::EventInfo;
using store::SourceInfo;

struct Element {
    std::string_view name;
    std::size_t bytes;
    char kind;  ///< 'u', 'i', 'f'
};
constexpr Element elements[] = {{"u1", 1, 'u'}, {"u2", 2, 'u'}, {"u4", 4, 'u'}, {"u8", 8, 'u'},
                                {"i1", 1, 'i'}, {"i2", 2, 'i'}, {"i4", 4, 'i'}, {"i8", 8, 'i'},
                                {"f2", 2, 'f'}, {"f4", 4, 'f'}, {"f8", 8, 'f'}};

template <class T>
std::vector<std::byte> bytes_of(T value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

/// One element with the value that stands for missing ones.
std::vector<std::byte> fill_element(const Element& element, const std::string& text) {
    const char* const end = text.data() + text.size();
    const auto refuse = [&] {
        throw core::UsageError(
            fmt::format("export: --fill: found \"{}\"; accepted: a value that {} can have", text, element.name));
    };
    if (element.kind == 'f') {
        double value = 0;
        const auto result = std::from_chars(text.data(), end, value);
        if (result.ec != std::errc{} || result.ptr != end) refuse();
        if (element.bytes == 8) return bytes_of(value);
        const auto single = static_cast<float>(value);
        std::uint16_t half = 0;
        reduce::to_f16({&single, 1}, {&half, 1});
        return element.bytes == 4 ? bytes_of(single) : bytes_of(half);
    }
    const auto bits = static_cast<unsigned>(8 * element.bytes);
    std::vector<std::byte> bytes;
    if (element.kind == 'u') {
        std::uint64_t value = 0;
        const auto result = std::from_chars(text.data(), end, value);
        if (result.ec != std::errc{} || result.ptr != end || (bits < 64 && value >> bits != 0)) refuse();
        bytes = bytes_of(value);
    } else {
        std::int64_t value = 0;
        const auto result = std::from_chars(text.data(), end, value);
        const std::int64_t limit = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
        if (result.ec != std::errc{} || result.ptr != end || value > limit || value < -limit - 1) refuse();
        bytes = bytes_of(value);
    }
    bytes.resize(element.bytes);
    return bytes;
}

/// Magic, version 1.0, the header's length, and the header: a Python literal, filled up so that data starts at a
/// multiple of 64 whatever the number of events turns out to be.
std::string npy_header(const Element& element, const std::vector<std::uint64_t>& shape) {
    constexpr std::size_t bytes = 256;
    std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({},), }}",
                                   element.bytes == 1 ? '|' : '<', element.name, fmt::join(shape, ", "));
    constexpr std::size_t before = 10;
    if (text.size() + before + 1 > bytes) throw core::UsageError("export: --shape has too many dimensions");
    text.resize(bytes - before - 1, ' ');
    text += '\n';
    std::string header("\x93NUMPY\x01\x00", 8);
    header += static_cast<char>(text.size() & 255);
    header += static_cast<char>(text.size() >> 8);
    return header + text;
}

/// What the run's configuration says of the pixels of all its streams; nothing if they differ or are none.
struct Pixels {
    std::string dtype;
    std::vector<std::uint64_t> shape;
    std::uint32_t bits = 0;  ///< in the message, where several share a byte; else 0
};
Pixels pixels_of(const store::RunReader& run, const store::PayloadInfo& payload) {
    if (payload.content == store::Content::pixels) {
        constexpr std::array<std::string_view, reduce::pixel_type_names.size()> dtypes{"f4", "f2", "i2", "u2"};
        return {std::string(dtypes[static_cast<std::size_t>(payload.type)]), {0, payload.columns}};
    }
    if (payload.content != store::Content::received) return {};
    const json config = config_of(run);
    const auto image = wire::image_of_streams(store::at_or_null(config, "stream"));
    if (!image) return {};
    return {fmt::format("u{}", wire::unpacked_bytes(image->bits)),
            {0, image->columns},
            wire::is_packed(image->bits) ? image->bits : 0};
}

class NpyTarget final : public ExportTarget {
public:
    NpyTarget(const store::RunReader& run, const ExportOptions& options, const std::vector<store::IndexEntry>& entries)
        : options_(options), run_(run.path().string()), payload_(store::payload_of(run)) {
        const Pixels pixels = pixels_of(run, payload_);
        const bool pixels_are_kept = payload_.content == store::Content::pixels;
        if (pixels_are_kept && !options.dtype.empty() && options.dtype != pixels.dtype)
            throw core::UsageError(
                fmt::format("export: --dtype: found \"{}\"; accepted: {}, in which the run has its pixels",
                            options.dtype, pixels.dtype));
        choose_element(options.dtype.empty() ? (pixels.dtype.empty() ? "u1" : pixels.dtype) : options.dtype);
        if (options.dtype.empty()) packed_bits_ = pixels.bits;
        look_ahead(run, entries);
        choose_shape(options.dtype.empty() || pixels_are_kept ? pixels.shape : std::vector<std::uint64_t>{});
        if (options.split_sources) {
            folder_.emplace(options.out);
            for (const std::uint32_t id : sources_) open(folder_->hidden() / fmt::format("source-{}.npy", id));
        } else {
            open(options.out);
        }
        sidecar_.emplace(folder_ ? folder_->hidden() / "index.json"
                                 : std::filesystem::path(options.out.string() + ".json"));
    }

    void put(const ExportEvent& event) override {
        const EventInfo& info = *event.info;
        refuse_too_large(info, options_);
        std::size_t place = 0;
        for (std::size_t i = 0; i < info.sources.size(); ++i) {
            if (options_.source && *options_.source != info.sources[i].id) continue;
            if (place >= sources_.size() || sources_[place] != info.sources[i].id) refuse_sources(info);
            put_message(info, info.sources[i], event.messages[i].bytes);
            files_[options_.split_sources ? place : 0]->append(message_);
            ++place;
        }
        if (place != sources_.size()) refuse_sources(info);
        json line = {{"epoch", info.epoch},       {"id", info.id},           {"complete", info.complete},
                     {"first_ns", info.first_ns}, {"last_ns", info.last_ns}, {"missing", json::object()}};
        if (!info.complete) line["cause"] = cause_text(info);
        for (const SourceInfo& source : info.sources)
            if (source.state != store::SourceState::complete && (!options_.source || *options_.source == source.id))
                line["missing"][std::to_string(source.id)] = missing_json(source);
        if (events_ == 0) begin_sidecar();
        sidecar_->append((events_ == 0 ? "\n " : ",\n ") + dump(line));
        ++events_;
    }

    std::string finish() override {
        for (const std::unique_ptr<OutputFile>& file : files_) {
            file->rewrite(0, npy_header(element_, array_shape(events_)));
            file->finish();
        }
        sidecar_->append("\n]}\n");
        sidecar_->finish();
        if (folder_) folder_->finish();
        const std::filesystem::path index = folder_ ? options_.out / sidecar_->path().filename() : sidecar_->path();
        return fmt::format("{} array{} of {} ({}) to {}, what is where in {}", files_.size(),
                           files_.size() == 1 ? "" : "s", element_.name, fmt::join(array_shape(events_), " x "),
                           options_.out.string(), index.string());
    }

private:
    void choose_element(const std::string& name) {
        for (const Element& element : elements)
            if (element.name == name) {
                element_ = element;
                fill_ = fill_element(element, options_.fill);
                return;
            }
        throw core::UsageError(
            fmt::format("export: --dtype: found \"{}\"; accepted: u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8", name));
    }

    /// The first event in which a size is known decides.
    void look_ahead(const store::RunReader& run, const std::vector<store::IndexEntry>& entries) {
        for (const store::IndexEntry& entry : entries) {
            EventInfo info;
            try {
                info = run.read_head(entry);
                refuse_too_large(info, options_);
            } catch (const core::RunError&) {
                continue;  // said when its turn comes
            }
            sources_.clear();
            for (const SourceInfo& source : info.sources) {
                if (options_.source && *options_.source != source.id) continue;
                sources_.push_back(source.id);
                if (message_bytes_) continue;
                if (info.reduced())
                    message_bytes_ = source.reduced_bytes;
                else if (source.size_known())
                    message_bytes_ = source.declared_bytes;
            }
            if (message_bytes_ && !sources_.empty()) return;
        }
        if (options_.source && sources_.empty())
            throw core::RunError(fmt::format("the events have no source {}", *options_.source));
        throw core::RunError("no array: in no event the size of a message is known; use --to raw");
    }

    /// Of a message in the array.
    [[nodiscard]] std::uint64_t array_bytes() const {
        return packed_bits_ == 0 ? *message_bytes_ : *message_bytes_ * 8 / packed_bits_ * element_.bytes;
    }

    void choose_shape(std::vector<std::uint64_t> known) {
        shape_ = options_.shape;
        const std::uint64_t whole = array_bytes();
        if (shape_.empty() && known.size() == 2 && whole % (known[1] * element_.bytes) == 0)
            shape_ = {whole / (known[1] * element_.bytes), known[1]};
        if (shape_.empty() && whole % element_.bytes == 0) shape_ = {whole / element_.bytes};
        std::uint64_t bytes = element_.bytes;
        for (const std::uint64_t side : shape_) {
            if (side != 0 && bytes > whole / side) bytes = 0;  // too large for any message
            bytes *= side;
        }
        if (shape_.empty() || bytes != whole)
            throw core::RunError(fmt::format(
                "no array: a message has {} bytes, which is not {} of {}", whole,
                shape_.empty() ? "a whole number" : fmt::format("{}", fmt::join(shape_, " x ")), element_.name));
    }

    [[nodiscard]] std::vector<std::uint64_t> array_shape(std::uint64_t events) const {
        std::vector<std::uint64_t> shape{events};
        if (!options_.split_sources && !options_.source) shape.push_back(sources_.size());
        shape.insert(shape.end(), shape_.begin(), shape_.end());
        return shape;
    }

    void open(const std::filesystem::path& path) {
        files_.push_back(std::make_unique<OutputFile>(path));
        files_.back()->append(npy_header(element_, array_shape(0)));
    }

    void begin_sidecar() {
        json about = {{"run", run_},
                      {"dtype", (element_.bytes == 1 ? "|" : "<") + std::string(element_.name)},
                      {"message_shape", shape_},
                      {"sources", sources_},
                      {"fill", keeps_markers() ? marker() : options_.fill}};
        if (payload_.content != store::Content::received) {
            about["content"] = store::content_names[static_cast<std::size_t>(payload_.content)];
            about["unit"] = payload_.unit;
        }
        std::string text = dump(about);
        text.back() = ',';
        sidecar_->append(text + "\n\"events\": [");
    }

    /// Pixels without a value have what the reducer gave them.
    [[nodiscard]] bool keeps_markers() const {
        return payload_.content == store::Content::pixels && !options_.fill_given;
    }
    [[nodiscard]] const char* marker() const {
        if (element_.kind == 'f') return "nan";
        return element_.kind == 'i' ? "-32768" : "65535";
    }

    [[noreturn]] static void refuse_sources(const EventInfo& info) {
        throw core::RunError(fmt::format("no array: event {}:{} has other sources than the first one; use --to raw",
                                         info.epoch, info.id));
    }

    /// message_ becomes the source's part of the array: an element of which a byte is missing is filled as a whole.
    void put_message(const EventInfo& info, const SourceInfo& source, std::span<const std::byte> bytes) {
        if (info.content != payload_.content)
            throw core::RunError(
                fmt::format("no array: the payload of event {}:{} is {}, not {}; leave it out, or use --to raw",
                            info.epoch, info.id, store::content_names[static_cast<std::size_t>(info.content)],
                            store::content_names[static_cast<std::size_t>(payload_.content)]));
        if (info.reduced()) return put_reduced(info, source, bytes);
        const std::uint64_t known = filled_bytes(source);
        if (known > *message_bytes_ || (source.size_known() && known != *message_bytes_))
            throw core::RunError(
                fmt::format("no array: source {} has {} bytes in event {}:{} and {} in the first one; use --to raw, "
                            "or leave it out",
                            source.id, known, info.epoch, info.id, *message_bytes_));
        message_.clear();
        append_filled(source, bytes, message_);
        message_.resize(*message_bytes_);
        if (packed_bits_ != 0) unpack();
        fill(known, *message_bytes_);
        for (const store::MissingRange& range : source.missing)
            fill(range.offset, std::uint64_t{range.offset} + range.bytes);
    }

    /// Has a place for everything; what has no value is marked.
    void put_reduced(const EventInfo& info, const SourceInfo& source, std::span<const std::byte> bytes) {
        if (bytes.size() != *message_bytes_)
            throw core::RunError(
                fmt::format("no array: source {} has {} bytes in event {}:{} and {} in the first one; "
                            "use --to raw, or leave it out",
                            source.id, bytes.size(), info.epoch, info.id, *message_bytes_));
        message_.assign(bytes.begin(), bytes.end());
        if (payload_.content != store::Content::pixels || keeps_markers()) return;
        const std::vector<float> values = store::energies_of(payload_.type, bytes);
        for (std::size_t i = 0; i < values.size(); ++i)
            if (std::isnan(values[i])) std::memcpy(message_.data() + i * element_.bytes, fill_.data(), element_.bytes);
    }

    /// Gives each pixel bytes of its own.
    void unpack() {
        unpacked_.resize(array_bytes());
        wire::unpack_pixels(packed_bits_, message_, unpacked_);
        message_.swap(unpacked_);
    }

    /// Elements that have something of these bytes of the message.
    void fill(std::uint64_t begin, std::uint64_t end) {
        if (begin >= end) return;
        const std::size_t size = element_.bytes;
        const auto bits = packed_bits_ == 0 ? static_cast<std::uint32_t>(8 * size) : packed_bits_;
        const wire::PixelRange lost = wire::pixels_of_bytes(bits, begin, end);
        for (std::uint64_t i = lost.begin; i < std::min<std::uint64_t>(lost.end, message_.size() / size); ++i)
            std::memcpy(message_.data() + i * size, fill_.data(), size);
    }

    const ExportOptions& options_;
    std::string run_;
    store::PayloadInfo payload_;
    Element element_{};
    std::vector<std::byte> fill_;
    std::vector<std::uint32_t> sources_;
    std::optional<std::uint64_t> message_bytes_;
    std::vector<std::uint64_t> shape_;
    std::optional<OutputFolder> folder_;  ///< outlives the files in it
    std::vector<std::unique_ptr<OutputFile>> files_;
    std::optional<OutputFile> sidecar_;
    std::uint32_t packed_bits_ = 0;  ///< of a pixel in a message, where several share a byte
    std::vector<std::byte> message_;
    std::vector<std::byte> unpacked_;
    std::uint64_t events_ = 0;
};

}  // namespace

std::unique_ptr<ExportTarget> make_npy_target(const store::RunReader& run, const ExportOptions& options,
                                              const std::vector<store::IndexEntry>& entries) {
    return std::make_unique<NpyTarget>(run, options, entries);
}

}  // namespace weir::app

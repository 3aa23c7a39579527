#include "stream/series_run.hpp"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/clock_ns.hpp"
#include "core/error.hpp"

namespace weir::stream {

using store::BlockWriter;
using store::Content;
using store::Encoding;
using store::EventInfo;
using store::SourceInfo;
using store::SourceState;

namespace {

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
/// What is not packed is written in blocks of this.
constexpr std::size_t plain_bytes = std::size_t{1} << 20;

store::RunWriter::Config writer_config(const SeriesRun::Config& config) {
    store::RunWriter::Config out;
    out.path = config.path;
    out.name = config.name;
    if (config.series_id < store::SegmentBody::no_run) out.run = static_cast<std::uint32_t>(config.series_id);
    out.version = store::format_version_reduced;
    out.start_json = config.start_json;
    return out;
}

/// How far the bytes of a source reach, gaps included.
std::uint64_t span_of(const SourceInfo& source) {
    std::uint64_t bytes = source.received_bytes;
    for (const store::MissingRange& range : source.missing) bytes += range.bytes;
    return bytes;
}

}  // namespace

SeriesRun::SeriesRun(const Config& config) : run_(writer_config(config)), buffer_(buffer_bytes) {
    blocks_.reset(buffer_.span());
}

std::string SeriesRun::add(const StreamMessage& message, const std::optional<EventInfo>& event) {
    pieces_.clear();
    unpacked_.clear();
    return event ? add_own(message, *event) : add_foreign(message);
}

std::string SeriesRun::unpack(const StreamedChannel& channel, std::vector<std::byte>& to) {
    to.resize(channel.raw_bytes);
    if (!channel.codec) {
        std::copy(channel.bytes.begin(), channel.bytes.end(), to.begin());
        return {};
    }
    const std::string_view problem = unpacker_.unpack(*channel.codec, channel.type->bytes, channel.bytes, to);
    return problem.empty() ? std::string{} : "an image cannot be unpacked: " + std::string(problem);
}

void SeriesRun::add_pieces(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const std::size_t now = std::min(bytes.size(), plain_bytes);
        pieces_.push_back({bytes.first(now), now, Encoding::raw, 0});
        bytes = bytes.subspan(now);
    }
}

/// As it came: packed, if a block of the event file may be that long.
std::string SeriesRun::take_channel(const StreamedChannel& channel) {
    if (!channel.codec) {
        add_pieces(channel.bytes);
        return {};
    }
    std::vector<std::byte>& plain = unpacked_.emplace_back();
    if (std::string problem = unpack(channel, plain); !problem.empty()) return problem;
    const bool fits = channel.raw_bytes <= store::body_bytes_max && channel.bytes.size() <= store::body_bytes_max;
    if (!fits || channel.bytes.size() >= channel.raw_bytes) {
        add_pieces(plain);
        return {};
    }
    const auto encoding = static_cast<Encoding>(*channel.codec);
    const auto element = static_cast<std::uint8_t>(store::has_elements(encoding) ? channel.type->bytes : 0);
    pieces_.push_back({channel.bytes, channel.raw_bytes, encoding, element});
    return {};
}

/// Another sender's image: what was received is its channels, one after the other, each as a source.
std::string SeriesRun::add_foreign(const StreamMessage& message) {
    EventInfo event;
    event.id = message.image_id;
    event.complete = true;
    event.first_ns = event.last_ns = core::clock_ns(CLOCK_REALTIME);
    for (const StreamedChannel& channel : message.channels) {
        SourceInfo source;
        source.id = static_cast<std::uint32_t>(event.sources.size());
        source.declared_bytes = source.received_bytes = channel.raw_bytes;
        source.packets = 1;
        source.first_ns = source.last_ns = event.first_ns;
        event.payload_bytes += channel.raw_bytes;
        ++event.packets;
        event.sources.push_back(std::move(source));
        if (std::string problem = take_channel(channel); !problem.empty()) return problem;
    }
    if (event.sources.empty()) return "an image without channels";
    write(event);
    return {};
}

std::string SeriesRun::add_own(const StreamMessage& message, const EventInfo& event) {
    std::string problem =
        message.type == MessageType::image ? take_image(message, event) : take_byte_strings(message, event);
    if (problem.empty()) write(event);
    return problem;
}

/// The modules of the sources lie one after the other; what did not come is left out again.
std::string SeriesRun::take_image(const StreamMessage& message, const EventInfo& event) {
    if (message.channels.size() != 1 || event.sources.empty()) return "weir sends one channel, and sources";
    const StreamedChannel& channel = message.channels.front();
    const std::uint64_t module = channel.raw_bytes / event.sources.size();
    if (module * event.sources.size() != channel.raw_bytes) return "its image is not as many modules as it has sources";
    bool whole = true;
    for (const SourceInfo& source : event.sources) {
        const std::uint64_t reach = event.reduced() ? source.reduced_bytes : span_of(source);
        if (reach > module || (reach < module && (event.reduced() || source.size_known())))
            return "its sources have not as many bytes as its image";
        whole = whole && (event.reduced() || (source.state == SourceState::complete && reach == module));
    }
    if (whole) return take_channel(channel);
    std::vector<std::byte>& plain = unpacked_.emplace_back();
    if (std::string problem = unpack(channel, plain); !problem.empty()) return problem;
    for (std::size_t i = 0; i < event.sources.size(); ++i) {
        const SourceInfo& source = event.sources[i];
        const std::span<const std::byte> bytes = std::span<const std::byte>(plain).subspan(i * module, module);
        std::uint64_t at = 0;
        std::uint64_t left = source.received_bytes;
        for (const store::MissingRange& range : source.missing) {
            if (range.offset < at || range.offset - at > left) return "its missing ranges lie beyond what came";
            add_pieces(bytes.subspan(at, range.offset - at));
            left -= range.offset - at;
            at = std::uint64_t{range.offset} + range.bytes;
        }
        add_pieces(bytes.subspan(at, left));
    }
    return {};
}

std::string SeriesRun::take_byte_strings(const StreamMessage& message, const EventInfo& event) {
    if (message.channels.size() != event.sources.size()) return "it has not as many byte strings as sources";
    for (std::size_t i = 0; i < event.sources.size(); ++i) {
        const StreamedChannel& channel = message.channels[i];
        if (channel.name != std::to_string(event.sources[i].id) || channel.codec ||
            channel.raw_bytes != event.content_bytes(event.sources[i]))
            return "its byte strings are not those of its sources";
        add_pieces(channel.bytes);
    }
    return {};
}

void SeriesRun::write(const EventInfo& event) {
    store::EventRecord record;
    record.id = event.id;
    record.epoch = event.epoch;
    record.sources = static_cast<std::uint32_t>(event.sources.size());
    record.complete = event.complete;
    record.cause = event.cause;
    record.payload_bytes = event.payload_bytes;
    record.packets = event.packets;
    record.first_ns = event.first_ns;
    record.last_ns = event.last_ns;
    record.content = event.content;
    record.reduced_bytes = event.reduced_bytes;
    while (!blocks_.put_event(record)) flush();
    if (event.veto != store::Veto::none && !blocks_.patch_event({event.veto, event.pixels_above, event.peaks}))
        throw core::RunError("internal error: an event is not where it was put");
    for (const SourceInfo& source : event.sources) {
        std::vector<assemble::ByteRange> missing;
        for (const store::MissingRange& range : source.missing)
            missing.push_back({range.offset, range.offset + range.bytes});
        const store::SourceRecord record_of_source{
            source.id,       source.state,   source.declared_bytes, source.received_bytes, source.packets,
            source.first_ns, source.last_ns, source.meta,           source.reduced_bytes};
        while (!blocks_.put_source(record_of_source, missing)) flush();
    }
    if (pieces_.empty()) pieces_.push_back({});
    for (const Piece& piece : pieces_) write_payload(piece, &piece == &pieces_.back());
    ++events_;
    if (!event.complete) ++incomplete_;
}

void SeriesRun::write_payload(const Piece& piece, bool last) {
    make_room(piece.bytes.size());
    const std::span<std::byte> room = blocks_.open_payload();
    std::copy(piece.bytes.begin(), piece.bytes.end(), room.begin());
    blocks_.close_payload(static_cast<std::uint32_t>(piece.bytes.size()), static_cast<std::uint32_t>(piece.raw_bytes),
                          piece.encoding, last, piece.element_bytes);
}

void SeriesRun::make_room(std::size_t bytes) {
    if (blocks_.payload_room() >= bytes && !blocks_.open_payload().empty()) return;
    flush();
    if (blocks_.payload_room() >= bytes) return;
    constexpr std::size_t heads = 4096;
    buffer_ = store::AlignedBytes(store::padded(bytes) + heads);
    blocks_.reset(buffer_.span());
}

void SeriesRun::flush() {
    if (!blocks_.empty()) run_.append(blocks_.blocks());
    blocks_.reset(buffer_.span());
}

void SeriesRun::close(const nlohmann::json& manifest) {
    flush();
    nlohmann::json own = manifest;
    own["ledger"]["events"] = {{"written", events_}};
    run_.close(own);
}

void SeriesRun::close_what_stayed(const nlohmann::json& manifest) {
    nlohmann::json own = manifest;
    own["ledger"]["events"] = {{"written", stayed()}};
    run_.close(own);
}

}  // namespace weir::stream

// Stored messages as packets. See packet_maker.hpp.
#include "packet_maker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "config/run_config.hpp"
#include "core/error.hpp"
#include "filled_message.hpp"
#include "store/json_members.hpp"
#include "wire/network.hpp"
#include "wire/reported_stream.hpp"

namespace weir::app {

using nlohmann::json;
using store::at_or_null;
using store::number_at;
using store::text_at;

namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw core::RunError("no packets: " + what);
}

std::uint32_t small_at(const json& object, const char* key, std::uint32_t otherwise) {
    return static_cast<std::uint32_t>(number_at(object, key).value_or(otherwise));
}

std::optional<wire::DeclaredField> field_at(const json& object, const char* key) {
    const json& found = at_or_null(object, key);
    if (!found.is_object()) return {};
    wire::DeclaredField field{small_at(found, "offset", 0), small_at(found, "bytes", 0), number_at(found, "mask"),
                              small_at(found, "shift", 0)};
    return field;
}

/// The [[format]] of that name; only what write_declared and its like need.
wire::DeclaredSpec spec_of(const json& config, const std::string& name) {
    const json& formats = at_or_null(config, "format");
    if (formats.is_array())
        for (const json& format : formats) {
            if (text_at(format, "name") != name) continue;
            wire::DeclaredSpec spec;
            spec.name = name;
            spec.byte_order = text_at(format, "byte_order") == "big" ? wire::ByteOrder::big : wire::ByteOrder::little;
            spec.header_bytes = small_at(format, "header_bytes", 0);
            spec.index = field_at(format, "index");
            spec.offset = field_at(format, "offset");
            if (const auto bytes = number_at(format, "payload_bytes"))
                spec.payload_bytes = static_cast<std::uint32_t>(*bytes);
            return spec;
        }
    refuse(fmt::format("the run's configuration does not say what format \"{}\" is", name));
}

std::vector<std::uint32_t> numbers_at(const json& object, const char* key) {
    std::vector<std::uint32_t> numbers;
    const json& found = at_or_null(object, key);
    if (found.is_array())
        for (const json& number : found)
            if (number.is_number_unsigned()) numbers.push_back(number.get<std::uint32_t>());
    return numbers;
}

std::vector<config::IpAddress> addresses_at(const json& object, const char* key) {
    std::vector<config::IpAddress> addresses;
    const json& found = at_or_null(object, key);
    if (!found.is_array()) return addresses;
    for (const json& text : found) {
        const auto address = text.is_string() ? config::parse_ip_address(text.get<std::string>()) : std::nullopt;
        if (!address) refuse(fmt::format("{} is not an address", text.dump()));
        addresses.push_back(*address);
    }
    return addresses;
}

/// Where the configuration does not care, the encoder's own addresses will do.
void set_addresses(wire::FrameSpec& frame, const config::IpAddress* from, const config::IpAddress* to) {
    if ((from != nullptr && from->v6) || (to != nullptr && to->v6)) {
        frame.ipv6.emplace();
        frame.ipv6->src = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
        frame.ipv6->dst = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
        if (from != nullptr) frame.ipv6->src = from->bytes;
        if (to != nullptr) frame.ipv6->dst = to->bytes;
        return;
    }
    if (from != nullptr) frame.src = from->v4();
    if (to != nullptr) frame.dst = to->v4();
}

}  // namespace

PacketMaker::PacketMaker(const json& config, std::uint32_t packet_bytes) : packet_bytes_(packet_bytes) {
    const json& streams = at_or_null(config, "stream");
    if (!streams.is_array() || streams.empty())
        refuse("the run does not say what its configuration was, so the ports and formats are not known");
    for (const json& stream : streams) add_stream(config, stream);
    const json& labels = at_or_null(config, "sources");
    if (labels.is_array() && labels.size() != sources_.size())
        refuse(fmt::format("the run has {} sources, and its streams make {}: several ports share one", labels.size(),
                           sources_.size()));
}

void PacketMaker::set_format(Stream& stream, const json& config, const json& text) const {
    const std::string name = text_at(text, "format");
    const bool built_in = wire::is_built_in(name);
    stream.format = built_in ? wire::find_format(name) : &wire::described_format();
    if (stream.format->put_place == nullptr)
        refuse(fmt::format("those of format \"{}\" cannot be made again from what is kept of them", name));
    if (!built_in) {
        const wire::DeclaredSpec& spec = stream.options.declared = spec_of(config, name);
        if (spec.index && spec.payload_bytes.value_or(0) == 0)
            refuse(
                fmt::format("the run's configuration does not say how large the packets of format \"{}\" are", name));
        if (spec.header_bytes > store::SourceBody::meta_bytes_max)
            refuse(fmt::format("headers of format \"{}\" have {} bytes, of which {} are kept", name, spec.header_bytes,
                               store::SourceBody::meta_bytes_max));
        stream.context.header_bytes = spec.header_bytes;
        stream.context.payload_bytes = spec.index ? *spec.payload_bytes : 0;
    } else {
        try {
            stream.options = wire::read_format_keys(*stream.format, text);
            stream.context = stream.format->make_context(stream.options);
        } catch (const core::UsageError& error) {
            refuse(fmt::format("the run's configuration: {}", error.what()));
        }
    }
    std::vector<std::byte> header(stream.context.header_bytes);
    const bool may_be_cut = stream.format->put_place(stream.context, stream.options, 0, packet_bytes_, header);
    stream.piece_bytes = stream.context.payload_bytes != 0 ? stream.context.payload_bytes
                         : may_be_cut                      ? packet_bytes_
                                                           : 0;
}

void PacketMaker::add_stream(const json& config, const json& text) {
    Stream stream;
    const std::string event = text_at(text, "event");
    stream.roce = text_at(text, "transport") == "roce";
    const json& port_list = at_or_null(config, "port");
    for (std::size_t i = 0; port_list.is_array() && i < port_list.size(); ++i)
        if (text_at(port_list[i], "name") == text_at(text, "port")) stream.port = i;
    stream.immediate = event == "immediate";
    stream.counted = event == "arrival" || event == "count";
    set_format(stream, config, text);

    const std::vector<std::uint32_t> ports = numbers_at(text, "udp_dst");
    const std::vector<std::uint32_t> pairs = numbers_at(text, "qp");
    const std::vector<config::IpAddress> from = addresses_at(text, "src");
    const std::vector<config::IpAddress> to = addresses_at(text, "dst");
    const std::string by = text_at(text, "source_by");
    const std::size_t count = stream.roce       ? pairs.size()
                              : by == "address" ? from.size()
                              : by == "header"  ? numbers_at(text, "source_ids").size()
                                                : ports.size();
    if (!stream.roce && ports.empty()) refuse("a stream of the run's configuration has no ports");
    for (std::size_t k = 0; k < count; ++k) {
        Source source;
        source.stream = streams_.size();
        set_addresses(source.frame, from.empty() ? nullptr : &from[by == "address" ? k : 0],
                      to.empty() ? nullptr : &to[0]);
        source.frame.dport = static_cast<std::uint16_t>(stream.roce ? wire::roce_port : ports[by == "port" ? k : 0]);
        if (stream.roce) source.qp = pairs[k];
        source.lane = static_cast<std::uint32_t>(k % 2);
        sources_.push_back(source);
    }
    streams_.push_back(std::move(stream));
}

void PacketMaker::make(const store::EventInfo& event, const store::SourceInfo& info, std::span<const std::byte> bytes,
                       std::vector<std::vector<std::byte>>& frames) {
    if (info.state == store::SourceState::absent || info.state == store::SourceState::absent_unknown) return;
    if (info.id >= sources_.size()) refuse(fmt::format("source {} is not in the run's configuration", info.id));
    Source& source = sources_[info.id];
    const Stream& stream = streams_[source.stream];
    const std::size_t before = frames.size();
    if (stream.roce) {
        make_roce(stream, source, event, info, bytes, frames);
    } else {
        make_datagrams(stream, source, info, bytes, frames);
    }
    if (frames.size() == before) {
        ++left_out_;
    } else if (stream.counted && event.id != source.next_number++) {
        ++renumbered_;
    }
}

std::string PacketMaker::shortfall() const {
    std::string text;
    if (left_out_ > 0)
        text = fmt::format("{} message(s) are left out: their packets cannot be made again from what came of them",
                           left_out_);
    if (renumbered_ > 0)
        text += fmt::format(
            "{}{} message(s) will have other event numbers: their packets carry none, a replay counts from 0",
            text.empty() ? "" : "; ", renumbered_);
    return text;
}

/// The kept header with its place in the message set to `offset`.
void PacketMaker::put_header(const Stream& stream, const Source& source, const store::SourceInfo& info,
                             std::uint64_t offset) {
    datagram_ = info.meta;
    stream.format->put_place(stream.context, stream.options, source.lane, offset, datagram_);
}

std::uint64_t PacketMaker::whole_bytes(const store::SourceInfo& source) const {
    const bool roce = source.id < sources_.size() && streams_[sources_[source.id].stream].roce;
    return roce && source.received_bytes > 0 ? filled_bytes(source) : 0;
}

void PacketMaker::make_datagrams(const Stream& stream, const Source& source, const store::SourceInfo& info,
                                 std::span<const std::byte> bytes, std::vector<std::vector<std::byte>>& frames) {
    constexpr std::size_t datagram_bytes_max = 65507;
    const std::size_t header = stream.context.header_bytes;
    if (info.meta.size() != header) return;
    const std::uint64_t piece = stream.piece_bytes;
    const std::uint64_t total = filled_bytes(info);
    const bool fixed = stream.context.payload_bytes != 0;
    bool good = true;
    for_each_piece(info, bytes, [&](std::uint64_t begin, std::span<const std::byte> part) {
        const std::uint64_t end = begin + part.size();
        if (piece == 0) good = good && begin == 0 && end == total && end + header <= datagram_bytes_max;
        if (fixed) good = good && begin % piece == 0 && (end % piece == 0 || end == total);
    });
    if (!good) return;
    for_each_piece(info, bytes, [&](std::uint64_t at, std::span<const std::byte> part) {
        do {
            const auto payload = part.first(piece == 0 ? part.size() : std::min<std::uint64_t>(piece, part.size()));
            put_header(stream, source, info, at);
            datagram_.insert(datagram_.end(), payload.begin(), payload.end());
            frames.push_back(wire::make_udp_frame(source.frame, datagram_));
            at += payload.size();
            part = part.subspan(payload.size());
        } while (!part.empty());
    });
}

/// As an RDMA message of SENDs without acknowledgement: whichever it was, it is the same message to weir. The format's
/// header, if there is one, is the beginning of it.
void PacketMaker::make_roce(const Stream& stream, Source& source, const store::EventInfo& event,
                            const store::SourceInfo& info, std::span<const std::byte> bytes,
                            std::vector<std::vector<std::byte>>& frames) {
    if (!info.size_known() || info.meta.size() != stream.context.header_bytes) return;
    wire::RoceMessage message;
    message.qp = source.qp;
    message.psn = source.psn;
    if (stream.immediate) message.immediate = static_cast<std::uint32_t>(event.id);
    put_header(stream, source, info, 0);
    const std::uint64_t header = datagram_.size();
    append_filled(info, bytes, datagram_);
    // What is missing was whole packets; only with their size do the others get their sequence numbers.
    message.mtu = 0;
    for (const std::uint32_t mtu : {4096U, 2048U, 1024U, 512U, 256U}) {
        const bool fits = std::all_of(info.missing.begin(), info.missing.end(), [&](const store::MissingRange& gap) {
            const std::uint64_t begin = header + gap.offset;
            const std::uint64_t end = begin + gap.bytes;
            return begin % mtu == 0 && (end % mtu == 0 || end == datagram_.size());
        });
        if (fits && message.mtu == 0) message.mtu = mtu;
    }
    if (message.mtu == 0) return;
    const std::uint32_t count = wire::roce_packet_count(message, static_cast<std::uint32_t>(datagram_.size()));
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t at = std::uint64_t{i} * message.mtu;
        const bool lost = std::any_of(info.missing.begin(), info.missing.end(), [&](const store::MissingRange& gap) {
            return at >= header + gap.offset && at < header + gap.offset + gap.bytes;
        });
        if (!lost) frames.push_back(wire::make_roce_frame(source.frame, wire::roce_packet_of(message, datagram_, i)));
    }
    source.psn = (source.psn + count) & 0xffffff;
}

}  // namespace weir::app

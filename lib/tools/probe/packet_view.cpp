#include "probe/packet_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "probe/source_keys.hpp"
#include "probe/stream_match.hpp"
#include "wire/format_marks.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::probe {
namespace {

using wire::ByteOrder;
using wire::HeaderField;

enum class Shown : std::uint8_t { number, hex, mac, ipv4 };

/// Writes down fields of one packet, layer after layer.
class FieldList {
public:
    FieldList(std::span<const std::byte> frame, std::vector<ViewedField>& out) : frame_(frame), out_(out) {}

    /// Fields that follow lie from `at` on.
    void begin(std::string layer, std::uint32_t at) {
        layer_ = std::move(layer);
        at_ = at;
    }
    /// The value; 0 if it is not there, which is a problem.
    std::uint64_t add(const HeaderField& field, Shown shown = Shown::number) {
        const auto rest = frame_.subspan(std::min<std::size_t>(at_, frame_.size()));
        const auto value = field.value(rest);
        ViewedField line{layer_, field.name, at_ + field.offset, field.bytes, "", field.meaning, ""};
        if (!value) {
            line.problem = "not in what was captured";
        } else {
            line.value = text(*value, field.bytes, shown);
            if (!field.fits(*value)) line.problem = fmt::format("{} expected", accepted(field, shown));
        }
        out_.push_back(std::move(line));
        return value.value_or(0);
    }
    void add_text(std::string name, std::uint32_t offset, std::uint32_t bytes, std::string value) {
        out_.push_back({layer_, std::move(name), at_ + offset, bytes, std::move(value), "", ""});
    }
    void problem(std::string text) { out_.back().problem = std::move(text); }
    void meaning(std::string text) { out_.back().meaning = std::move(text); }
    [[nodiscard]] bool has(std::uint32_t bytes) const { return frame_.size() >= std::size_t{at_} + bytes; }

private:
    static std::string text(std::uint64_t value, std::uint32_t bytes, Shown shown) {
        switch (shown) {
            case Shown::hex:
                return fmt::format("{:#0{}x}", value, 2 + 2 * bytes);
            case Shown::mac:
                return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", value >> 40 & 0xff, value >> 32 & 0xff,
                                   value >> 24 & 0xff, value >> 16 & 0xff, value >> 8 & 0xff, value & 0xff);
            case Shown::ipv4:
                return fmt::format("{}.{}.{}.{}", value >> 24 & 0xff, value >> 16 & 0xff, value >> 8 & 0xff,
                                   value & 0xff);
            case Shown::number:
                break;
        }
        return value < 10 ? fmt::format("{}", value) : fmt::format("{} ({:#x})", value, value);
    }
    static std::string accepted(const HeaderField& field, Shown shown) {
        const std::string from = text(field.accepted->first, field.bytes, shown);
        return field.accepted->first == field.accepted->second
                   ? from
                   : fmt::format("{} to {}", from, text(field.accepted->second, field.bytes, shown));
    }

    std::span<const std::byte> frame_;
    std::vector<ViewedField>& out_;
    std::string layer_;
    std::uint32_t at_ = 0;
};

constexpr ByteOrder big = ByteOrder::big;

HeaderField field(std::string name, std::uint32_t offset, std::uint32_t bytes, std::string meaning = "",
                  std::optional<std::pair<std::uint64_t, std::uint64_t>> accepted = {}) {
    return {std::move(name), offset, bytes, big, std::move(meaning), accepted};
}

/// Ethernet and VLAN tags; where the next header begins, and its type.
std::pair<std::uint32_t, std::uint64_t> view_ethernet(FieldList& list) {
    list.begin("Ethernet", 0);
    list.add(field("destination", 0, 6), Shown::mac);
    list.add(field("source", 6, 6), Shown::mac);
    std::uint64_t type = list.add(field("type", 12, 2), Shown::hex);
    std::uint32_t at = wire::ethernet_header_bytes;
    while (type == wire::ethertype_vlan || type == wire::ethertype_service_vlan) {
        list.begin("VLAN", at);
        if (!list.has(wire::vlan_tag_bytes)) break;
        HeaderField id = field("id", 0, 2);
        id.mask = 0xfff;
        list.add(id);
        type = list.add(field("type", 2, 2), Shown::hex);
        at += wire::vlan_tag_bytes;
    }
    return {at, type};
}

void view_ipv4(FieldList& list, std::span<const std::byte> frame, std::uint32_t at, std::uint32_t wire_bytes) {
    list.begin("IPv4", at);
    if (!list.has(wire::ipv4_header_bytes)) return;
    HeaderField version = field("version", 0, 1, "", {{4, 4}});
    version.mask = 0xf0;
    version.shift = 4;
    list.add(version);
    HeaderField words = field("header length", 0, 1, "words of 4 bytes", {{5, 15}});
    words.mask = 0xf;
    const auto header_bytes = static_cast<std::uint32_t>(list.add(words) * 4);
    list.add(field("total length", 2, 2, "", {{header_bytes, wire_bytes - at}}));
    list.add(field("identification", 4, 2));
    list.add(field("flags and offset", 6, 2), Shown::hex);
    list.add(field("time to live", 8, 1));
    list.add(field("protocol", 9, 1, "17: UDP", {{wire::ip_protocol_udp, wire::ip_protocol_udp}}));
    const std::uint64_t checksum = list.add(field("checksum", 10, 2), Shown::hex);
    if (header_bytes >= wire::ipv4_header_bytes && list.has(header_bytes)) {
        const bool right = wire::ipv4_header_sum(frame.data() + at, header_bytes) == 0xffff;
        list.meaning(right ? "right" : checksum == 0 ? "not filled in" : "");
        if (!right && checksum != 0) list.problem("it is not that of this header");
    }
    list.add(field("source", 12, 4), Shown::ipv4);
    list.add(field("destination", 16, 4), Shown::ipv4);
}

void view_ipv6(FieldList& list, const wire::Datagram& datagram, bool parsed, std::uint32_t at,
               std::uint32_t wire_bytes) {
    list.begin("IPv6", at);
    if (!list.has(wire::ipv6_header_bytes)) return;
    HeaderField version = field("version", 0, 1, "", {{6, 6}});
    version.mask = 0xf0;
    version.shift = 4;
    list.add(version);
    const std::uint32_t room = wire_bytes - std::min(wire_bytes, at + wire::ipv6_header_bytes);
    list.add(field("payload length", 4, 2, "", {{0, room}}));
    list.add(field("next header", 6, 1, "17: UDP"));
    list.add(field("hop limit", 7, 1));
    if (!parsed) return;
    list.add_text("source", 8, 16, IpText::source_of(datagram).text());
    list.add_text("destination", 24, 16, IpText::destination_of(datagram).text());
}

void view_udp(FieldList& list, const wire::Datagram& datagram, std::uint32_t at) {
    list.begin("UDP", at);
    list.add(field("source port", 0, 2));
    list.add(field("destination port", 2, 2));
    const std::uint32_t room = datagram.ip_bytes - (static_cast<std::uint32_t>(datagram.payload - datagram.ip) - 8);
    list.add(field("length", 4, 2, "with this header", {{wire::udp_header_bytes, room}}));
    list.add(field("checksum", 6, 2, "not checked"), Shown::hex);
}

void view_roce(FieldList& list, const wire::Datagram& datagram, std::uint32_t at, PacketView& view) {
    wire::RocePacket packet;
    const wire::Verdict checked = wire::decode_roce(datagram, true, packet);
    const bool right = checked != wire::Verdict::malformed_bad_icrc;
    const wire::Verdict verdict = right ? checked : wire::decode_roce(datagram, false, packet);
    list.begin("BTH", at);
    list.add(field("opcode", 0, 1), Shown::hex);
    HeaderField version = field("header version", 1, 1, "", {{0, 0}});
    version.mask = 0xf;
    list.add(version);
    HeaderField pad = field("pad", 1, 1, "bytes behind the payload");
    pad.mask = 0x30;
    pad.shift = 4;
    list.add(pad);
    list.add(field("partition key", 2, 2), Shown::hex);
    list.add(field("destination QP", 5, 3), Shown::hex);
    HeaderField request = field("acknowledge request", 8, 1);
    request.mask = 0x80;
    request.shift = 7;
    list.add(request);
    list.add(field("PSN", 9, 3), Shown::hex);
    std::uint32_t next = at + wire::roce_bth_bytes;
    if (verdict == wire::ok && packet.transport == wire::RoceTransport::ud) {
        list.begin("DETH", next);
        list.add(field("queue key", 0, 4), Shown::hex);
        list.add(field("source QP", 5, 3), Shown::hex);
        next += 8;
    }
    if (verdict == wire::ok && packet.is_write && packet.starts()) {
        list.begin("RETH", next);
        list.add(field("virtual address", 0, 8), Shown::hex);
        list.add(field("remote key", 8, 4), Shown::hex);
        list.add(field("DMA length", 12, 4, "bytes of the whole message"));
        next += 16;
    }
    if (verdict == wire::ok && packet.has_immediate) {
        list.begin("ImmDt", next);
        list.add(field("immediate", 0, 4));
    }
    if (datagram.payload_bytes < wire::roce_bth_bytes + wire::roce_icrc_bytes) return;
    list.begin("iCRC", at + datagram.payload_bytes - wire::roce_icrc_bytes);
    HeaderField icrc = field("invariant CRC", 0, wire::roce_icrc_bytes);
    icrc.order = ByteOrder::little;
    list.add(icrc, Shown::hex);
    list.meaning(right ? "right" : "");
    if (!right) {
        const std::uint32_t before = datagram.ip_bytes - wire::roce_icrc_bytes;
        const std::uint32_t least = datagram.ipv6 ? 60 : 40;
        list.problem(before < least ? "wrong"
                                    : fmt::format("{:#010x} expected for these bytes and addresses",
                                                  wire::roce_icrc(datagram.ip, before)));
    }
    if (checked != wire::ok) view.counter = wire::packet_counters[static_cast<std::size_t>(checked)].name;
    if (checked != wire::ok) view.explanation = wire::packet_counters[static_cast<std::size_t>(checked)].help;
}

void view_format(FieldList& list, const wire::Datagram& datagram, std::uint32_t at, const StreamMatch& match,
                 PacketView& view) {
    const wire::FormatMarks& marks = wire::marks_of(*match.format);
    view.expected = match.name;
    list.begin(match.name, at);
    const std::span<const std::byte> head(datagram.payload, datagram.payload_bytes);
    if (marks.header_fields != nullptr)
        for (const HeaderField& each : marks.header_fields(head, datagram.payload_bytes, match.options)) list.add(each);
    const wire::FormatContext context = match.format->make_context(match.options);
    wire::Fragment fragment;
    wire::Verdict verdict{};
    match.format->decode_burst(context, std::span(&datagram, 1), &fragment, &verdict);
    if (verdict != wire::ok) {
        view.counter = wire::packet_counters[static_cast<std::size_t>(verdict)].name;
        view.explanation = wire::packet_counters[static_cast<std::size_t>(verdict)].help;
        if (context.payload_bytes != 0 && datagram.payload_bytes != context.header_bytes + context.payload_bytes)
            view.problems.push_back(
                fmt::format("the UDP payload has {} bytes; {} of header and {} of data are expected",
                            datagram.payload_bytes, context.header_bytes, context.payload_bytes));
        return;
    }
    list.begin("payload", at + static_cast<std::uint32_t>(fragment.payload - datagram.payload));
    list.add_text("bytes", 0, fragment.bytes,
                  fmt::format("{} of event {}, to lie at {}{}", fragment.bytes, fragment.number, fragment.offset,
                              fragment.total_known ? fmt::format(" of {}", fragment.total) : ""));
}

/// What the frame carries, where that can be taken off.
void note_inside(std::span<const std::byte> frame, const wire::Datagram* udp, PacketView& view) {
    const auto by = udp == nullptr ? wire::encapsulation_of(frame)
                                   : wire::encapsulation_of_udp(udp->dport, {udp->payload, udp->payload_bytes}, 0);
    if (!by) return;
    const auto tunnel = wire::tunnel_of(by->by);
    view.problems.push_back(fmt::format(
        "another frame is inside: {}{}", wire::name_of(by->by),
        tunnel ? fmt::format(". `[[port]] decapsulate = [\"{}\"]` takes that off", wire::name_of(*tunnel)) : ""));
}

}  // namespace

PacketView view_packet(std::span<const std::byte> frame, std::uint32_t wire_bytes, const PacketSample& sample,
                       const Findings& findings) {
    PacketView view;
    FieldList list(frame, view.fields);
    wire::Datagram datagram;
    const wire::Verdict verdict =
        wire::parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()), wire_bytes, datagram);
    const auto [at, type] = view_ethernet(list);
    const bool parsed = verdict == wire::ok || (verdict == wire::Verdict::malformed_ip_fragment && datagram.fragment);
    if (frame.size() < wire_bytes)
        view.problems.push_back(fmt::format("{} of {} bytes were captured", frame.size(), wire_bytes));
    if (type == wire::ethertype_ipv4) view_ipv4(list, frame, at, wire_bytes);
    if (type == wire::ethertype_ipv6) view_ipv6(list, datagram, parsed, at, wire_bytes);
    if (verdict != wire::ok) {
        if (parsed) {
            view.problems.push_back("a piece of an IP datagram: its headers are in the first piece");
        } else {
            view.counter = wire::packet_counters[static_cast<std::size_t>(verdict)].name;
            view.explanation = wire::packet_counters[static_cast<std::size_t>(verdict)].help;
            note_inside(frame, nullptr, view);
        }
        return view;
    }
    const auto payload_at = static_cast<std::uint32_t>(datagram.payload - frame.data());
    view_udp(list, datagram, payload_at - wire::udp_header_bytes);
    if (datagram.dport == wire::roce_port) {
        view_roce(list, datagram, payload_at, view);
    } else if (const auto match = stream_of_packet(datagram, sample, findings)) {
        datagram.lane = match->lane;
        view_format(list, datagram, payload_at, *match, view);
    } else {
        view.problems.push_back("of no format that was recognised");
        note_inside(frame, &datagram, view);
    }
    return view;
}

std::string view_text(const PacketView& view) {
    std::string out;
    std::string layer;
    for (const ViewedField& field : view.fields) {
        if (field.layer != layer) out += fmt::format("{}\n", layer = field.layer);
        std::string line = fmt::format("  {:>5} {:>2}  {:<22} {}", field.offset, field.bytes, field.name, field.value);
        if (!field.meaning.empty()) line += fmt::format("  ({})", field.meaning);
        if (!field.problem.empty()) line += fmt::format("  WRONG: {}", field.problem);
        out += line + "\n";
    }
    for (const std::string& problem : view.problems) out += problem + "\n";
    if (!view.counter.empty()) out += fmt::format("weir counts it as {}: {}\n", view.counter, view.explanation);
    return out;
}

nlohmann::json view_json(const PacketView& view) {
    nlohmann::json out{{"expected", view.expected},
                       {"counter", view.counter.empty() ? nlohmann::json() : nlohmann::json(view.counter)},
                       {"problems", view.problems}};
    out["fields"] = nlohmann::json::array();
    for (const ViewedField& field : view.fields)
        out["fields"].push_back(
            {{"layer", field.layer},
             {"name", field.name},
             {"offset", field.offset},
             {"bytes", field.bytes},
             {"value", field.value},
             {"meaning", field.meaning},
             {"problem", field.problem.empty() ? nlohmann::json() : nlohmann::json(field.problem)}});
    return out;
}

}  // namespace weir::probe

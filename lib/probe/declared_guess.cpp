#include "probe/declared_guess.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <set>

namespace weir::probe {
namespace {

using wire::ByteOrder;
using wire::DeclaredField;
using wire::HeaderField;
using wire::SampledPacket;

constexpr std::uint32_t looked_at = 64;     ///< bytes at the front of a packet that may be header
constexpr std::size_t packets_needed = 12;  ///< with fewer, noise counts as well as counters
constexpr double enough = 0.85;             ///< of the packets do what a counter does; the others may be lost or late
constexpr std::array field_widths{8U, 4U, 2U, 1U};

/// The packets' values of one field.
using Values = std::vector<std::uint64_t>;

Values values_of(std::span<const SampledPacket> packets, std::uint32_t offset, std::uint32_t bytes, ByteOrder order) {
    const HeaderField field{"", offset, bytes, order, "", {}};
    Values out;
    out.reserve(packets.size());
    for (const SampledPacket& packet : packets) out.push_back(field.value(packet.head).value_or(0));
    return out;
}

struct Counter {
    DeclaredField field;
    ByteOrder order = ByteOrder::little;
    std::uint64_t stride = 0;
    std::size_t distinct = 0;
    double regular = 0;  ///< of the packets
};

/// Whether the field is two: the lower half never changes, or the upper one does before the lower one has come far.
bool is_two_fields(const Values& values, std::uint32_t bytes) {
    if (bytes == 1) return false;
    const std::uint32_t half_bits = bytes * 4;
    const std::uint64_t low_mask = (std::uint64_t{1} << half_bits) - 1;
    const auto [first, last] = std::ranges::minmax(values);
    std::uint64_t low_min = low_mask;
    std::uint64_t low_max = 0;
    for (const std::uint64_t value : values) {
        low_min = std::min(low_min, value & low_mask);
        low_max = std::max(low_max, value & low_mask);
    }
    return low_min == low_max || (first >> half_bits != last >> half_bits && low_max <= low_mask / 2);
}

/// Whether the values rise, in steps of one stride nearly always, however disordered neighbours are.
std::optional<Counter> event_counter(const Values& values, std::uint32_t offset, std::uint32_t bytes, ByteOrder order) {
    const std::set<std::uint64_t> distinct(values.begin(), values.end());
    constexpr std::size_t distinct_min = 3;
    if (distinct.size() < distinct_min || is_two_fields(values, bytes)) return std::nullopt;
    std::map<std::uint64_t, std::size_t> gaps;
    for (auto at = distinct.begin(), next = std::next(at); next != distinct.end(); ++at, ++next) ++gaps[*next - *at];
    const auto usual = std::ranges::max_element(gaps, {}, [](const auto& entry) { return entry.second; });
    const std::uint64_t stride = usual->first;
    if (static_cast<double>(usual->second) < 0.6 * static_cast<double>(distinct.size() - 1)) return std::nullopt;
    // Neighbours may have overtaken each other; packets that are further apart have not. What counts the packets of an
    // event falls back every time.
    const std::size_t lag = std::min<std::size_t>(32, values.size() / 4);
    std::size_t rises = 0;
    for (std::size_t i = lag; i < values.size(); ++i) rises += values[i] >= values[i - lag] ? 1 : 0;
    const double share = static_cast<double>(rises) / static_cast<double>(values.size() - lag);
    std::size_t regular = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        constexpr std::uint64_t steps_max = 16;  // events that were lost, packets that were overtaken
        const std::uint64_t step = std::min(values[i] - values[i - 1], values[i - 1] - values[i]);
        if (step % stride == 0 && step / stride <= steps_max) ++regular;
    }
    if (share < enough || static_cast<double>(regular) < enough * static_cast<double>(values.size() - 1))
        return std::nullopt;
    if (*distinct.rbegin() == values.front()) return std::nullopt;
    return Counter{{.offset = offset, .bytes = bytes}, order, stride, distinct.size(), share};
}

/// Wider fields first, so that the bytes above are part of the number as long as they behave; natural places only.
std::vector<Counter> event_counters(std::span<const SampledPacket> packets, std::uint32_t room) {
    std::vector<Counter> out;
    for (const ByteOrder order : {ByteOrder::little, ByteOrder::big})
        for (const std::uint32_t bytes : field_widths)
            for (std::uint32_t at = 0; at + bytes <= room; at += bytes == 1 ? 1 : 2) {
                if (bytes > 2 && at % 4 != 0) continue;
                const auto found = event_counter(values_of(packets, at, bytes, order), at, bytes, order);
                const bool covered = std::ranges::any_of(out, [&](const Counter& other) {
                    return other.order == order && at < other.field.offset + other.field.bytes &&
                           other.field.offset < at + bytes;
                });
                if (found && !covered) out.push_back(*found);
            }
    return out;
}

struct Place {
    DeclaredField field;
    bool in_bytes = false;      ///< a byte offset, not an index
    std::uint32_t packets = 0;  ///< of a message
    std::uint64_t bytes = 0;    ///< in_bytes: how far apart they are
    double fits = 0;            ///< of the packets and the places, those that go together
};

/// Whether the values number the packets of each event from 0 on, or say how many bytes are before them.
std::optional<Place> place_in_message(const Values& values, const Values& events, std::uint32_t offset,
                                      std::uint32_t bytes) {
    std::map<std::uint64_t, std::set<std::uint64_t>> by_event;
    for (std::size_t i = 0; i < values.size(); ++i) by_event[events[i]].insert(values[i]);
    const std::set<std::uint64_t> all(values.begin(), values.end());
    if (all.size() < 2 || *all.begin() != 0) return std::nullopt;
    const std::uint64_t step = *std::next(all.begin());
    const std::uint64_t last = *all.rbegin();
    constexpr std::uint64_t datagram_max = 65535;
    if (step == 0 || step > datagram_max || last % step != 0 || last / step > values.size()) return std::nullopt;
    for (const std::uint64_t value : all)
        if (value % step != 0) return std::nullopt;
    // Each packet of an event has a value of its own, and together they have nearly all there are.
    std::size_t own = 0;
    for (const auto& [event, found] : by_event) own += found.size();
    const double regular = static_cast<double>(own) / static_cast<double>(values.size());
    const std::uint64_t places = last / step + 1;
    const double filled = static_cast<double>(own) / static_cast<double>(by_event.size()) / static_cast<double>(places);
    if (regular < enough || filled < 0.5) return std::nullopt;
    return Place{{.offset = offset, .bytes = bytes},
                 step != 1,
                 static_cast<std::uint32_t>(last / step + 1),
                 step,
                 regular * filled};
}

std::optional<Place> find_place(std::span<const SampledPacket> packets, const Counter& event, std::uint32_t room) {
    const Values events = values_of(packets, event.field.offset, event.field.bytes, event.order);
    for (const std::uint32_t bytes : {4U, 2U, 1U})
        for (std::uint32_t at = 0; at + bytes <= room; at += bytes) {
            if (at < event.field.offset + event.field.bytes && event.field.offset < at + bytes) continue;
            const auto found = place_in_message(values_of(packets, at, bytes, event.order), events, at, bytes);
            if (found) return found;
        }
    return std::nullopt;
}

struct ConstantRun {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
};

/// Bytes of the header that are the same in all packets, and not zero: the longest run, at most 8.
std::optional<ConstantRun> constant_run(std::span<const SampledPacket> packets, std::uint32_t room,
                                        const std::vector<DeclaredField>& taken) {
    std::optional<ConstantRun> best;
    ConstantRun run;
    for (std::uint32_t at = 0; at < room; ++at) {
        const std::byte first = packets.front().head[at];
        const bool free = std::ranges::none_of(
            taken, [at](const DeclaredField& field) { return at >= field.offset && at < field.offset + field.bytes; });
        const bool same = free && first != std::byte{0} &&
                          std::ranges::all_of(packets, [&](const SampledPacket& p) { return p.head[at] == first; });
        if (!same || run.bytes == 8) run = {};
        if (!same) continue;
        if (run.bytes == 0) run.offset = at;
        ++run.bytes;
        if (!best || run.bytes > best->bytes) best = run;
    }
    // One byte may be anything.
    return best && best->bytes >= 2 ? best : std::nullopt;
}

/// Of the bytes behind the fields: those that are the same in all packets are header still.
std::uint32_t quiet_until(std::span<const SampledPacket> packets, std::uint32_t from, std::uint32_t room) {
    std::uint32_t at = from;
    while (at < room && std::ranges::all_of(packets, [&](const SampledPacket& packet) {
               return packet.head[at] == packets.front().head[at];
           }))
        ++at;
    return at;
}

/// The length of a header in front of payload of one size: that which leaves the roundest number of bytes.
std::uint32_t rounding_header(std::uint32_t from, std::uint32_t payload_bytes) {
    std::uint32_t best = from;
    int roundness = -1;
    for (std::uint32_t header = from; header <= looked_at && header < payload_bytes; ++header) {
        const int zeros = std::countr_zero(payload_bytes - header);
        if (zeros <= roundness) continue;
        best = header;
        roundness = zeros;
    }
    return best;
}

std::string field_text(const DeclaredField& field, ByteOrder order) {
    return fmt::format("bytes {}, {}", wire::span_text(field.offset, field.offset + field.bytes - 1),
                       field.bytes == 1             ? "one byte"
                       : order == ByteOrder::little ? "little-endian"
                                                    : "big-endian");
}

/// The same low bits in a field of half the width.
void describe_place(DeclaredGuess& out, const Place& place, std::uint32_t fields_end,
                    std::span<const SampledPacket> packets) {
    wire::DeclaredSpec& spec = out.spec;
    std::uint32_t longest = 0;
    for (const SampledPacket& packet : packets) longest = std::max(longest, packet.payload_bytes);
    if (place.in_bytes) {
        spec.offset = place.field;
        // A packet is as long as the next one is further on.
        const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(place.bytes, longest));
        spec.header_bytes = longest - bytes >= fields_end && longest - bytes <= looked_at
                                ? longest - bytes
                                : rounding_header(fields_end, longest);
        out.evidence.push_back(fmt::format("{} say where the packet lies in its event, in bytes: steps of {}",
                                           field_text(place.field, spec.byte_order), place.bytes));
    } else {
        spec.index = place.field;
        spec.header_bytes = rounding_header(fields_end, longest);
        out.evidence.push_back(fmt::format("{} count the packets of an event: 0 to {}",
                                           field_text(place.field, spec.byte_order), place.packets - 1));
    }
    const std::uint32_t payload = longest - spec.header_bytes;
    // The last packet of a message may be shorter.
    const std::uint64_t last_place = std::uint64_t{place.packets - 1} * (place.in_bytes ? place.bytes : payload);
    std::uint32_t last_bytes = payload;
    for (const SampledPacket& packet : packets) {
        const HeaderField field{"", place.field.offset, place.field.bytes, spec.byte_order, "", {}};
        const std::uint64_t at = field.value(packet.head).value_or(0) * (place.in_bytes ? 1 : payload);
        if (at == last_place && packet.payload_bytes > spec.header_bytes)
            last_bytes = packet.payload_bytes - spec.header_bytes;
    }
    if (!place.in_bytes) spec.payload_bytes = payload;
    if (last_bytes == payload && !place.in_bytes)
        spec.packets = place.packets;
    else
        spec.total_bytes = static_cast<std::uint32_t>(last_place + last_bytes);
    out.doubts.push_back(fmt::format("header_bytes = {}: taken so that {} bytes of payload remain in a packet",
                                     spec.header_bytes, payload));
}

}  // namespace

std::optional<DeclaredGuess> guess_declared(std::span<const SampledPacket> packets, std::string& why) {
    if (packets.size() < packets_needed) {
        why = fmt::format("{} packets are too few to see what counts in them; {} are needed", packets.size(),
                          packets_needed);
        return std::nullopt;
    }
    std::uint32_t room = looked_at;
    for (const SampledPacket& packet : packets) room = std::min(room, static_cast<std::uint32_t>(packet.head.size()));
    const std::vector<Counter> counters = event_counters(packets, room);
    if (counters.empty()) {
        why = fmt::format("no number counts in the first {} bytes: compressed, encrypted, or without a header", room);
        return std::nullopt;
    }
    // A counter with which packets have a place in their event is the better one; else what is widest comes first.
    const Counter* event = &counters.front();
    std::optional<Place> place;
    for (const Counter& counter : counters)
        if (const auto found = find_place(packets, counter, room);
            found &&
            (!place || std::pair(found->fits, counter.field.bytes) > std::pair(place->fits, event->field.bytes))) {
            place = found;
            event = &counter;
        }
    DeclaredGuess out;
    wire::DeclaredSpec& spec = out.spec;
    spec.name = "guessed";
    spec.byte_order = event->order;
    spec.event = event->field;
    out.evidence.push_back(fmt::format("{} count events: {} numbers, in steps of {}, {:.0f} % of the packets in order",
                                       field_text(event->field, event->order), event->distinct, event->stride,
                                       100 * event->regular));
    std::vector<DeclaredField> taken{event->field};
    if (place) taken.push_back(place->field);
    std::uint32_t end = 0;
    for (const DeclaredField& field : taken) end = std::max(end, field.offset + field.bytes);
    const std::uint32_t quiet = quiet_until(packets, end, room);
    if (const auto run = constant_run(packets, quiet, taken)) {
        spec.magic = DeclaredField{.offset = run->offset, .bytes = run->bytes};
        spec.magic_value =
            *HeaderField{"", run->offset, run->bytes, spec.byte_order, "", {}}.value(packets.front().head);
        end = std::max(end, run->offset + run->bytes);
        out.evidence.push_back(fmt::format("bytes {} are the same in all packets",
                                           wire::span_text(run->offset, run->offset + run->bytes - 1)));
    }
    if (place) {
        describe_place(out, *place, end, packets);
        return out;
    }
    spec.header_bytes = std::max(end, std::min(quiet, (end + 7) / 8 * 8));
    out.doubts.push_back(fmt::format("every datagram is a message of its own: no bytes count packets within an event"));
    out.doubts.push_back(fmt::format("header_bytes = {}: where bytes begin to change", spec.header_bytes));
    return out;
}

}  // namespace weir::probe

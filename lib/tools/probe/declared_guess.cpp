#include "probe/declared_guess.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

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
    std::size_t falls = 0;   ///< packets with a lower value than the one before
    double regular = 0;      ///< of the packets
    DeclaredField widest{};  ///< with bytes above that never change and may be of the number, or not
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
    std::size_t falls = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
        falls += values[i] < values[i - 1] ? 1 : 0;
        constexpr std::uint64_t steps_max = 16;  // events that were lost, packets that were overtaken
        const std::uint64_t step = std::min(values[i] - values[i - 1], values[i - 1] - values[i]);
        if (step % stride == 0 && step / stride <= steps_max) ++regular;
    }
    if (share < enough || static_cast<double>(regular) < enough * static_cast<double>(values.size() - 1))
        return std::nullopt;
    if (*distinct.rbegin() == values.front()) return std::nullopt;
    return Counter{{.offset = offset, .bytes = bytes}, order, stride, distinct.size(), falls, share,
                   {.offset = offset, .bytes = bytes}};
}

bool overlap(const DeclaredField& a, const DeclaredField& b) {
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

Values values_of(std::span<const SampledPacket> packets, const Counter& counter) {
    return values_of(packets, counter.field.offset, counter.field.bytes, counter.order);
}

/// The flows that count along: nearly all of their numbers are among those of `values`, or near them.
std::vector<std::size_t> counting_along(const Counter& counter, const Values& values,
                                        std::span<const FlowPackets> others) {
    const auto [first, last] = std::ranges::minmax(values);
    const std::uint64_t margin = counter.stride * std::max<std::uint64_t>(64, counter.distinct);
    const std::uint64_t from = first - std::min(first, margin);
    const std::uint64_t to = last + std::min(margin, ~last);
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < others.size(); ++i) {
        const Values of_other = values_of(others[i], counter);
        const auto near = std::ranges::count_if(of_other, [&](std::uint64_t at) { return at >= from && at <= to; });
        if (!of_other.empty() && static_cast<double>(near) >= enough * static_cast<double>(of_other.size()))
            out.push_back(i);
    }
    return out;
}

/// The narrowest that explains all packets. Above it are bytes that never change and are not zero: of the number only
/// if other flows, which count along, have the same.
Counter narrowed(Counter counter, std::span<const SampledPacket> packets, std::span<const FlowPackets> others) {
    while (counter.field.bytes > 1) {
        const Values values = values_of(packets, counter);
        const std::uint32_t half = counter.field.bytes / 2;
        const auto upper = [half](std::uint64_t value) { return value >> (8 * half); };
        if (!std::ranges::all_of(values, [&](std::uint64_t v) { return upper(v) == upper(values.front()); })) break;
        Counter lower = counter;
        lower.field.bytes = half;
        if (counter.order == ByteOrder::big) lower.field.offset += half;
        const std::size_t along = counting_along(counter, values, others).size();
        const std::size_t along_lower = counting_along(lower, values_of(packets, lower), others).size();
        // No detector has counted through four bytes, and begun with the next.
        const bool doubtful = upper(values.front()) != 0 && half > 1 && (along == 0 || half == 4);
        if (along_lower <= along && !doubtful) break;
        if (along_lower > along || half == 4) lower.widest = lower.field;
        counter = lower;
    }
    return counter;
}

/// Whether it is another counter, read in the wrong byte order: that one has smaller steps, and falls back no more
/// often.
bool is_turned(const Counter& counter, const std::vector<Counter>& all) {
    return std::ranges::any_of(all, [&](const Counter& other) {
        return other.order != counter.order && other.field.bytes > 1 && overlap(other.field, counter.field) &&
               other.stride < counter.stride && other.falls <= counter.falls;
    });
}

/// Wider fields first, so that the bytes above are part of the number as long as they behave, in either byte order: a
/// byte of a counter counts as well, and is none. Natural places only.
std::vector<Counter> event_counters(std::span<const SampledPacket> packets, std::uint32_t room,
                                    std::span<const FlowPackets> others) {
    std::vector<Counter> all;
    for (const std::uint32_t bytes : field_widths)
        for (const ByteOrder order : {ByteOrder::little, ByteOrder::big})
            for (std::uint32_t at = 0; at + bytes <= room; at += bytes == 1 ? 1 : 2) {
                if (bytes > 2 && at % 4 != 0) continue;
                if (const auto found = event_counter(values_of(packets, at, bytes, order), at, bytes, order))
                    all.push_back(*found);
            }
    std::vector<Counter> out;
    for (const Counter& counter : all) {
        const bool covered =
            std::ranges::any_of(out, [&](const Counter& other) { return overlap(counter.field, other.field); });
        if (!covered && !is_turned(counter, all)) out.push_back(narrowed(counter, packets, others));
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

/// What the places are counted in: packets, bytes, or an index in steps of a power of two, which a shift makes one.
struct PlaceUnit {
    bool in_bytes = false;
    std::uint32_t shift = 0;
};

/// Bytes are what the step counts if a packet is as long as the next one is further on, but for a header. `fields_end`:
/// so long it is at least.
std::optional<PlaceUnit> unit_of(std::uint64_t step, std::uint32_t fields_end, std::uint32_t longest) {
    if (step == 1) return PlaceUnit{};
    if (step + fields_end <= longest && step + looked_at >= longest) return PlaceUnit{.in_bytes = true};
    if (!std::has_single_bit(step)) return std::nullopt;
    return PlaceUnit{.shift = static_cast<std::uint32_t>(std::countr_zero(step))};
}

/// Whether the two are halves of one number, of which the lower one runs through all that it can be.
bool halves_of_one(const DeclaredField& upper, const DeclaredField& lower, ByteOrder order, std::uint64_t step,
                   std::uint64_t last) {
    const bool adjacent = order == ByteOrder::little ? lower.offset + lower.bytes == upper.offset
                                                     : upper.offset + upper.bytes == lower.offset;
    return adjacent && lower.bytes < 8 && last + step == std::uint64_t{1} << (8 * lower.bytes);
}

/// Whether the packets of an event come near each other: a number that comes again much later is another event's.
bool are_neighbours(const std::vector<std::size_t>& events, std::uint64_t places) {
    constexpr std::uint64_t overtaken = 64;
    std::map<std::size_t, std::pair<std::size_t, std::size_t>> spans;
    for (std::size_t i = 0; i < events.size(); ++i) spans.try_emplace(events[i], i, i).first->second.second = i;
    const auto near = std::ranges::count_if(
        spans, [&](const auto& entry) { return entry.second.second - entry.second.first < 2 * places + overtaken; });
    return static_cast<double>(near) >= enough * static_cast<double>(spans.size());
}

/// Whether the values number the packets of each event from 0 on, or say how many bytes are before them. `events`: of
/// each packet, apart for each flow.
std::optional<Place> place_in_message(const Values& values, const std::vector<std::size_t>& events,
                                      const Counter& event, const DeclaredField& field, std::uint32_t longest) {
    if (std::ranges::min(values) != 0) return std::nullopt;
    const std::set<std::uint64_t> all(values.begin(), values.end());
    if (all.size() < 2) return std::nullopt;
    const std::uint64_t step = *std::next(all.begin());
    const std::uint64_t last = *all.rbegin();
    constexpr std::uint64_t datagram_max = 65535;
    if (step == 0 || step > datagram_max || last % step != 0 || last / step > values.size()) return std::nullopt;
    for (const std::uint64_t value : all)
        if (value % step != 0) return std::nullopt;
    if (halves_of_one(event.field, field, event.order, step, last)) return std::nullopt;
    const std::uint32_t fields_end = std::max(event.field.offset + event.field.bytes, field.offset + field.bytes);
    const auto unit = unit_of(step, fields_end, longest);
    // Without payload there is nothing to place.
    if (!unit || fields_end >= longest) return std::nullopt;
    const std::uint64_t places = last / step + 1;
    std::map<std::size_t, std::set<std::uint64_t>> by_event;
    for (std::size_t i = 0; i < values.size(); ++i) by_event[events[i]].insert(values[i]);
    if (!are_neighbours(events, places)) return std::nullopt;
    // Each packet of an event has a value of its own, and together they have nearly all there are.
    std::size_t own = 0;
    for (const auto& [number, found] : by_event) own += found.size();
    const double regular = static_cast<double>(own) / static_cast<double>(values.size());
    const double filled = static_cast<double>(own) / static_cast<double>(by_event.size()) / static_cast<double>(places);
    constexpr double together = 1.5;  // packets, or events are not what they are of
    const double filled_min = std::max(0.5, together / static_cast<double>(places));
    if (regular < enough || filled < filled_min) return std::nullopt;
    Place out{field, unit->in_bytes, static_cast<std::uint32_t>(places), step, regular * filled};
    out.field.shift = unit->shift;
    return out;
}

/// The events of packets, numbered anew so that each flow has its own.
std::vector<std::size_t> events_of(std::span<const SampledPacket> packets, const Counter& event) {
    const Values values = values_of(packets, event);
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::size_t> known;
    std::vector<std::size_t> out;
    out.reserve(packets.size());
    for (std::size_t i = 0; i < packets.size(); ++i)
        out.push_back(known.try_emplace({packets[i].flow, values[i]}, known.size()).first->second);
    return out;
}

std::uint32_t longest_of(std::span<const SampledPacket> packets) {
    std::uint32_t out = 0;
    for (const SampledPacket& packet : packets) out = std::max(out, packet.payload_bytes);
    return out;
}

/// `packets`: of all flows that count along.
std::optional<Place> find_place(std::span<const SampledPacket> packets, const Counter& event, std::uint32_t room) {
    const std::vector<std::size_t> events = events_of(packets, event);
    const std::uint32_t longest = longest_of(packets);
    for (const std::uint32_t bytes : {4U, 2U, 1U})
        for (std::uint32_t at = 0; at + bytes <= room; at += bytes) {
            const DeclaredField field{.offset = at, .bytes = bytes};
            if (overlap(field, event.field)) continue;
            const Values values = values_of(packets, at, bytes, event.order);
            if (const auto found = place_in_message(values, events, event, field, longest)) return found;
        }
    return std::nullopt;
}

struct ConstantRun {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
};

/// Bytes of the header that are the same in all packets, and not zero: the longest run, at most 8. A byte that never
/// changes beside one that does, and is in no field, is of some other number: a clock.
std::optional<ConstantRun> constant_run(std::span<const SampledPacket> packets, std::uint32_t room,
                                        const std::vector<DeclaredField>& taken) {
    std::vector<bool> constant(room);
    std::vector<bool> moving((room + 3) / 4);  // words in which some byte does
    for (std::uint32_t at = 0; at < room; ++at) {
        const bool free = std::ranges::none_of(
            taken, [at](const DeclaredField& field) { return at >= field.offset && at < field.offset + field.bytes; });
        constant[at] = std::ranges::all_of(
            packets, [&](const SampledPacket& p) { return p.head[at] == packets.front().head[at]; });
        if (free && !constant[at]) moving[at / 4] = true;
        constant[at] = constant[at] && free;
    }
    std::optional<ConstantRun> best;
    ConstantRun run;
    for (std::uint32_t at = 0; at < room; ++at) {
        const bool same = constant[at] && !moving[at / 4] && packets.front().head[at] != std::byte{0};
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
    const std::uint32_t longest = longest_of(packets);
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
        out.evidence.push_back(fmt::format("{} count the packets of an event: 0 to {}{}",
                                           field_text(place.field, spec.byte_order), place.packets - 1,
                                           place.bytes > 1 ? fmt::format(", in steps of {}", place.bytes) : ""));
    }
    const std::uint32_t payload = longest - spec.header_bytes;
    // The last packet of a message may be shorter.
    const std::uint64_t last_place = std::uint64_t{place.packets - 1} * (place.in_bytes ? place.bytes : payload);
    std::uint32_t last_bytes = payload;
    for (const SampledPacket& packet : packets) {
        HeaderField field{"", place.field.offset, place.field.bytes, spec.byte_order, "", {}};
        field.shift = place.field.shift;
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

/// What counts the events, with what says where packets lie in them, and the packets of all flows that count along.
struct Choice {
    Counter event;
    std::optional<Place> place;
    FlowPackets packets;

    /// The share of the packets that are told apart by it.
    [[nodiscard]] double explained() const {
        if (place) return place->fits;
        const std::vector<std::size_t> events = events_of(packets, event);
        const std::set<std::size_t> distinct(events.begin(), events.end());
        return static_cast<double>(distinct.size()) / static_cast<double>(events.size());
    }
    /// Counters that explain all packets come first, those with a place before others; then what counts one by one:
    /// clocks have wider steps.
    [[nodiscard]] auto rank() const {
        const double share = explained();
        return std::tuple(share >= enough, place.has_value(), std::round(share * 20), event.stride == 1);
    }
};

Choice choice_of(const Counter& event, std::span<const SampledPacket> packets, std::span<const FlowPackets> others,
                 std::uint32_t room) {
    Choice out{.event = event, .place = {}, .packets = {packets.begin(), packets.end()}};
    for (const std::size_t other : counting_along(event, values_of(packets, event), others))
        out.packets.insert(out.packets.end(), others[other].begin(), others[other].end());
    out.place = find_place(out.packets, event, room);
    return out;
}

/// The bytes above the number.
std::string rest_text(const Counter& counter) {
    const std::uint32_t end = counter.widest.offset + counter.widest.bytes;
    return "bytes " + (counter.order == ByteOrder::little
                           ? wire::span_text(counter.field.offset + counter.field.bytes, end - 1)
                           : wire::span_text(counter.widest.offset, counter.field.offset - 1));
}

void describe_mark(DeclaredGuess& out, const ConstantRun& run, const SampledPacket& packet) {
    wire::DeclaredSpec& spec = out.spec;
    spec.magic = DeclaredField{.offset = run.offset, .bytes = run.bytes};
    spec.magic_value = *HeaderField{"", run.offset, run.bytes, spec.byte_order, "", {}}.value(packet.head);
    out.evidence.push_back(
        fmt::format("bytes {} are the same in all packets", wire::span_text(run.offset, run.offset + run.bytes - 1)));
}

DeclaredGuess described(const Choice& choice, std::uint32_t room) {
    const Counter& event = choice.event;
    DeclaredGuess out;
    wire::DeclaredSpec& spec = out.spec;
    spec.name = "guessed";
    spec.byte_order = event.order;
    spec.event = event.field;
    out.evidence.push_back(fmt::format("{} count events: {} numbers, in steps of {}, {:.0f} % of the packets in order",
                                       field_text(event.field, event.order), event.distinct, event.stride,
                                       100 * event.regular));
    if (event.widest != event.field)
        out.doubts.push_back(fmt::format(
            "{} may be of the event number, too: they are the same in all packets of a sender", rest_text(event)));
    std::vector<DeclaredField> taken{event.widest};
    if (choice.place) taken.push_back(choice.place->field);
    std::uint32_t end = 0;
    for (const DeclaredField& field : taken) end = std::max(end, field.offset + field.bytes);
    const std::uint32_t header_most = choice.place ? std::min(room, longest_of(choice.packets) - 1) : room;
    const std::uint32_t quiet = quiet_until(choice.packets, end, header_most);
    if (const auto run = constant_run(choice.packets, quiet, taken)) {
        describe_mark(out, *run, choice.packets.front());
        end = std::max(end, run->offset + run->bytes);
    }
    if (choice.place) {
        describe_place(out, *choice.place, end, choice.packets);
        return out;
    }
    spec.header_bytes = std::max(end, std::min(quiet, (end + 7) / 8 * 8));
    out.doubts.push_back(fmt::format("every datagram is a message of its own: no bytes count packets within an event"));
    out.doubts.push_back(fmt::format("header_bytes = {}: where bytes begin to change", spec.header_bytes));
    return out;
}

}  // namespace

std::optional<DeclaredGuess> guess_declared(std::span<const SampledPacket> packets, std::string& why,
                                            std::span<const FlowPackets> others) {
    if (packets.size() < packets_needed) {
        why = fmt::format("{} packets are too few to see what counts in them; {} are needed", packets.size(),
                          packets_needed);
        return std::nullopt;
    }
    std::uint32_t room = looked_at;
    const auto limit = [&room](std::span<const SampledPacket> some) {
        for (const SampledPacket& packet : some) room = std::min(room, static_cast<std::uint32_t>(packet.head.size()));
    };
    limit(packets);
    for (const FlowPackets& other : others) limit(other);
    const std::vector<Counter> counters = event_counters(packets, room, others);
    if (counters.empty()) {
        why = fmt::format("no number counts in the first {} bytes: compressed, encrypted, or without a header", room);
        return std::nullopt;
    }
    Choice best = choice_of(counters.front(), packets, others, room);
    for (const Counter& counter : std::span(counters).subspan(1)) {
        Choice choice = choice_of(counter, packets, others, room);
        // Of equals the widest, which comes first.
        if (choice.rank() > best.rank()) best = std::move(choice);
    }
    return described(best, room);
}

}  // namespace weir::probe

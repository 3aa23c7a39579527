// See event_diff.hpp.
#include "store/event_diff.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/error.hpp"

namespace weir::store {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 5> state_names{"complete", "partial", "size unknown", "absent",
                                                      "absent, size unknown"};

void note(std::vector<Change>& changes, std::string_view what, const json& first, const json& second) {
    if (first != second) changes.push_back({what, first, second});
}

std::string hex_of(std::span<const std::byte> bytes) {
    std::string text;
    for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

json missing_of(const SourceInfo& source) {
    json ranges = json::array();
    for (const MissingRange& range : source.missing) ranges.push_back({range.offset, range.bytes});
    return ranges;
}

void compare_event_infos(const EventInfo& a, const EventInfo& b, bool times, std::vector<Change>& changes) {
    note(changes, "complete", a.complete, b.complete);
    note(changes, "cause", cause_names[static_cast<std::size_t>(a.cause)],
         cause_names[static_cast<std::size_t>(b.cause)]);
    note(changes, "veto", veto_names[static_cast<std::size_t>(a.veto)], veto_names[static_cast<std::size_t>(b.veto)]);
    note(changes, "pixels_above", a.pixels_above, b.pixels_above);
    note(changes, "peaks", a.peaks, b.peaks);
    note(changes, "content", content_names[static_cast<std::size_t>(a.content)],
         content_names[static_cast<std::size_t>(b.content)]);
    if (!times) return;
    note(changes, "first_ns", a.first_ns, b.first_ns);
    note(changes, "last_ns", a.last_ns, b.last_ns);
}

void compare_source_infos(const SourceInfo& a, const SourceInfo& b, bool times, std::vector<Change>& changes) {
    note(changes, "state", state_names[static_cast<std::size_t>(a.state)],
         state_names[static_cast<std::size_t>(b.state)]);
    note(changes, "size", a.declared_bytes, b.declared_bytes);
    note(changes, "received", a.received_bytes, b.received_bytes);
    note(changes, "missing", missing_of(a), missing_of(b));
    note(changes, "meta", hex_of(a.meta), hex_of(b.meta));
    if (!times) return;
    note(changes, "first_ns", a.first_ns, b.first_ns);
    note(changes, "last_ns", a.last_ns, b.last_ns);
}

bool are_close(double a, double b, double tolerance) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance;
}

void note_pixel(PayloadDifference& found, std::uint64_t pixel, std::uint32_t columns, double first, double second) {
    ++found.pixels;
    if (const double step = std::abs(first - second); std::isfinite(step))
        found.largest = std::max(found.largest, step);
    if (found.listed.size() < PayloadDifference::listed_max)
        found.listed.push_back({pixel / columns, static_cast<std::uint32_t>(pixel % columns), first, second});
}

/// What both messages have from `begin` on, as received.
struct Overlap {
    const std::byte* first;
    const std::byte* second;
    std::uint64_t begin;
    std::uint64_t bytes;
};

/// A number of so many bits, from bit `shift` on.
std::uint32_t bits_at(const std::byte* at, std::uint32_t shift, std::uint32_t bits) {
    std::uint64_t value = 0;
    for (std::uint32_t i = 0; i < (shift + bits + 7) / 8; ++i) value |= std::to_integer<std::uint64_t>(at[i]) << 8U * i;
    return static_cast<std::uint32_t>(value >> shift & ((std::uint64_t{1} << bits) - 1));
}

/// The pixels that have something of the byte at `offset`, as far as all of them is in both and they differ, from
/// `pixels_from` on, which moves behind them.
void compare_pixels_at(const Overlap& both, std::uint64_t offset, const wire::ImageShape& image,
                       std::uint64_t& pixels_from, PayloadDifference& found) {
    const wire::PixelRange touched = wire::pixels_of_bytes(image.bits, offset, offset + 1);
    for (std::uint64_t pixel = std::max(touched.begin, pixels_from); pixel < touched.end; ++pixel) {
        pixels_from = pixel + 1;
        // One of which a byte is missing has no value.
        const std::uint64_t begin = pixel * image.bits / 8;
        const std::uint64_t end = ((pixel + 1) * image.bits + 7) / 8;
        if (begin < both.begin || end > both.begin + both.bytes) continue;
        const auto shift = static_cast<std::uint32_t>(pixel * image.bits % 8);
        const std::uint32_t first = bits_at(both.first + (begin - both.begin), shift, image.bits);
        const std::uint32_t second = bits_at(both.second + (begin - both.begin), shift, image.bits);
        if (first != second) note_pixel(found, pixel, image.columns, first, second);
    }
}

void compare_bytes(const Overlap& both, const wire::ImageShape& image, PayloadDifference& found) {
    found.compared += both.bytes;
    if (std::memcmp(both.first, both.second, both.bytes) == 0) return;
    std::uint64_t pixels_from = 0;  // pixels before have been looked at
    for (std::uint64_t i = 0; i < both.bytes; ++i) {
        if (both.first[i] == both.second[i]) continue;
        const std::uint64_t offset = both.begin + i;
        if (found.bytes++ == 0) {
            found.first_offset = offset;
            found.first_byte = std::to_integer<std::uint8_t>(both.first[i]);
            found.second_byte = std::to_integer<std::uint8_t>(both.second[i]);
        }
        if (image.columns != 0) compare_pixels_at(both, offset, image, pixels_from, found);
    }
}

/// The ranges that both have.
template <class Take>
void for_each_overlap(const StoredEvent& a, std::size_t in_a, const StoredEvent& b, std::size_t in_b,
                      const Take& take) {
    auto first = a.ranges(in_a).begin();
    auto second = b.ranges(in_b).begin();
    while (first != a.ranges(in_a).end() && second != b.ranges(in_b).end()) {
        const std::uint64_t begin = std::max(first->begin, second->begin);
        const std::uint64_t end = std::min(first->end, second->end);
        if (begin < end)
            take(Overlap{a.bytes() + first->at + (begin - first->begin),
                         b.bytes() + second->at + (begin - second->begin), begin, end - begin});
        if (first->end < second->end)
            ++first;
        else
            ++second;
    }
}

/// All of a reduced source's part of the payload: it has no gaps.
std::span<const std::byte> whole_of(const StoredEvent& event, std::size_t source) {
    const std::vector<StoredEvent::Range>& ranges = event.ranges(source);
    if (ranges.empty()) return {};
    return {event.bytes() + ranges.front().at, ranges.front().end - ranges.front().begin};
}

void compare_pixels(std::span<const std::byte> a, std::span<const std::byte> b, const DiffRules& rules,
                    PayloadDifference& found) {
    const reduce::PixelType type = rules.first.info.type;
    const std::size_t size = reduce::bytes_of(type);
    const bool same_type = type == rules.second.info.type;
    found.compared = a.size();
    if (same_type && a.size() == b.size() && std::ranges::equal(a, b)) return;
    const std::vector<float> first = energies_of(type, a);
    const std::vector<float> second = energies_of(rules.second.info.type, b);
    for (std::size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
        if (are_close(first[i], second[i], rules.tolerance)) continue;
        if (found.pixels == 0) found.first_offset = i * size;
        found.bytes += size;
        note_pixel(found, i, rules.first.info.columns, first[i], second[i]);
    }
}

/// Nothing where the payloads are of different kinds.
PayloadDifference compare_payloads(const StoredEvent& a, std::size_t in_a, const StoredEvent& b, std::size_t in_b,
                                   const DiffRules& rules) {
    PayloadDifference found;
    if (a.info().content == Content::pixels && rules.first.info.columns > 0) {
        compare_pixels(whole_of(a, in_a), whole_of(b, in_b), rules, found);
        return found;
    }
    const wire::ImageShape image = a.info().content == Content::received ? rules.first.image : wire::ImageShape{};
    for_each_overlap(a, in_a, b, in_b, [&](const Overlap& both) { compare_bytes(both, image, found); });
    return found;
}

SourceDifference compare_sources(const StoredEvent& a, std::size_t in_a, const StoredEvent& b, std::size_t in_b,
                                 const DiffRules& rules) {
    const SourceInfo& first = a.info().sources[in_a];
    const SourceInfo& second = b.info().sources[in_b];
    SourceDifference difference{first.id, {}, {}};
    compare_source_infos(first, second, rules.times, difference.changes);
    if (a.info().content != b.info().content) return difference;
    if (a.info().reduced()) {
        const auto units_of = [](const SourceInfo& source, const DiffRules::Payload& payload, bool pixels) {
            return pixels ? source.reduced_bytes / reduce::bytes_of(payload.info.type) : source.reduced_bytes;
        };
        const bool pixels = a.info().content == Content::pixels;
        note(difference.changes, pixels ? "pixels" : "payload_bytes", units_of(first, rules.first, pixels),
             units_of(second, rules.second, pixels));
    }
    PayloadDifference payload = compare_payloads(a, in_a, b, in_b, rules);
    if (payload.bytes > 0) difference.payload = std::move(payload);
    return difference;
}

std::optional<std::size_t> place_of(const EventInfo& event, std::uint32_t source) {
    const auto found = std::ranges::find(event.sources, source, &SourceInfo::id);
    if (found == event.sources.end()) return {};
    return static_cast<std::size_t>(found - event.sources.begin());
}

}  // namespace

StoredEvent::StoredEvent(const RunReader& run, const IndexEntry& entry, std::uint64_t bytes_max) {
    std::optional<PayloadPlacer> placer;
    ScanHooks hooks;
    hooks.begin = [&](const EventInfo& event) {
        if (event.content_bytes() > bytes_max)
            throw core::RunError(
                fmt::format("its payload has {} bytes, at most {} are compared; --max-event raises that",
                            event.content_bytes(), bytes_max));
        info_ = event;
        ranges_.resize(event.sources.size());
        placer.emplace(info_, [this](std::size_t source, std::uint64_t offset, std::span<const std::byte> piece) {
            put(source, offset, piece);
        });
    };
    hooks.payload = [&](std::span<const std::byte> bytes) { placer->take(bytes); };
    const EventInfo whole = run.read(entry, hooks);
    placer.reset();
    info_ = whole;
}

void StoredEvent::put(std::size_t source, std::uint64_t offset, std::span<const std::byte> piece) {
    std::vector<Range>& ranges = ranges_[source];
    // Pieces come in order, and a source's lie one after the other.
    if (!ranges.empty() && ranges.back().end == offset)
        ranges.back().end += piece.size();
    else if (!piece.empty())
        ranges.push_back({offset, offset + piece.size(), bytes_.size()});
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
}

EventDifference compare_events(const StoredEvent& first, const StoredEvent& second, const DiffRules& rules) {
    const EventInfo& a = first.info();
    const EventInfo& b = second.info();
    EventDifference difference{EventDifference::In::both, a.epoch, a.id, {}, {}};
    compare_event_infos(a, b, rules.times, difference.changes);
    const bool pixels = a.content == Content::pixels && b.content == Content::pixels;
    if (pixels && rules.first.info.columns != rules.second.info.columns) {
        note(difference.changes, "columns", rules.first.info.columns, rules.second.info.columns);
        return difference;
    }
    for (std::size_t i = 0; i < a.sources.size(); ++i) {
        const auto other = place_of(b, a.sources[i].id);
        SourceDifference found = other ? compare_sources(first, i, second, *other, rules)
                                       : SourceDifference{a.sources[i].id, {{"source", "there", "not there"}}, {}};
        if (!found.changes.empty() || found.payload) difference.sources.push_back(std::move(found));
    }
    for (const SourceInfo& source : b.sources)
        if (!place_of(a, source.id)) difference.sources.push_back({source.id, {{"source", "not there", "there"}}, {}});
    return difference;
}

}  // namespace weir::store

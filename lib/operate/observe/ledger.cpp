#include "observe/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weir::observe {

using assemble::EventCounter;
using assemble::MessageCounter;
using wire::PacketCounter;

namespace {

bool is(std::string_view name, std::string_view prefix) {
    return name.starts_with(prefix);
}

/// Whether what ends in this counter is missing for it: not what is here already, nor what a reliable sender was told
/// to send again, nor what the operator wants dropped.
bool is_loss(std::size_t counter) {
    switch (static_cast<PacketCounter>(counter)) {
        case PacketCounter::duplicate:
        case PacketCounter::roce_sequence:
        case PacketCounter::roce_not_ready:
        case PacketCounter::flow_rule:
            return false;
        default:
            return is(wire::packet_counters[counter].name, "dropped.");
    }
}

}  // namespace

std::uint64_t Ledger::incomplete() const {
    return get(EventCounter::incomplete_timeout) + get(EventCounter::incomplete_evicted) +
           get(EventCounter::incomplete_end_of_run) + get(EventCounter::incomplete_no_room) +
           get(EventCounter::incomplete_ended) + get(EventCounter::incomplete_node_down);
}

std::uint64_t Ledger::lost_packets() const {
    std::uint64_t lost = rule_dropped_of_streams;
    for (std::size_t i = 0; i < packets.size(); ++i)
        if (is_loss(i)) lost += packets[i];
    return lost;
}

std::uint64_t Ledger::missing_packets() const {
    std::uint64_t missing = 0;
    for (const Source& source : sources) missing += source.missing_packets;
    return missing - std::min(missing, missing_at_end + missing_at_start);
}

bool Ledger::missing_is_guessed() const {
    return missing_packets() > 0 &&
           std::ranges::any_of(sources, [](const Source& source) { return source.missing_guessed > 0; });
}

bool Ledger::all_came() const {
    for (const Source& source : sources)
        if (source.missing_packets > 0) return false;
    if (stream_packets() == 0 || sources.empty() || unread_packets() > 0) return false;
    if (all_sequenced) return true;
    return numbers && numbers->why_unknown().empty() && numbers->missing() == 0 && numbers_unknown_because.empty() &&
           incomplete() == 0 && lost_packets() == 0 && sources_needed >= sources.size();
}

std::uint64_t Ledger::lost_psns() const {
    std::uint64_t lost = 0;
    for (const PsnReport& report : psns) lost += report.lost();
    return lost;
}

std::vector<Ledger::Loss> Ledger::losses() const {
    constexpr std::string_view prefix = "dropped.";
    std::vector<Loss> found;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const std::string_view name = wire::packet_counters[i].name;
        if (packets[i] > 0 && is_loss(i)) found.push_back({name.substr(prefix.size()), packets[i]});
    }
    if (rule_dropped_of_streams > 0) found.push_back({"flow_rule", rule_dropped_of_streams});
    if (const std::uint64_t missed = device_losses(); missed > 0) found.push_back({"device", missed});
    const std::uint64_t missing = missing_packets();
    if (const std::uint64_t dropped = dropped_unplaced(); missing > dropped)
        found.push_back({"missing", missing - dropped});
    std::ranges::stable_sort(found, std::ranges::greater{}, &Loss::packets);
    return found;
}

std::uint64_t Ledger::dropped_unplaced() const {
    // What carries a number was seen, whatever became of it later.
    return device_losses() + (all_sequenced ? unread_packets() : lost_packets());
}

std::uint64_t Ledger::unread_packets() const {
    std::uint64_t unread = rule_dropped_of_streams;
    for (std::size_t i = 0; i < packets.size(); ++i)
        if (is(wire::packet_counters[i].name, "dropped.malformed.") ||
            is(wire::packet_counters[i].name, "dropped.ring_full."))
            unread += packets[i];
    return unread;
}

std::uint64_t Ledger::stream_packets() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < packets.size(); ++i)
        if (!is(wire::packet_counters[i].name, "not_for_us.") &&
            static_cast<PacketCounter>(i) != PacketCounter::unsteered &&
            static_cast<PacketCounter>(i) != PacketCounter::flow_rule)
            sum += packets[i];
    return sum;
}

std::optional<std::uint64_t> Ledger::wire_loss() const {
    // Sequence numbers tell only if nothing that did arrive was thrown away here: it would be missing just the same.
    if (!sequence_known || (!all_sequenced && (lost_packets() > 0 || get(EventCounter::dropped_incomplete) > 0)))
        return std::nullopt;
    if (unread_packets() > 0 || is_unread()) return std::nullopt;
    if (stream_packets() == 0) return std::nullopt;
    // What a device dropped may have been whole events, in which nothing is missing because nothing of them came.
    const std::uint64_t missing = std::max(missing_packets(), device_losses());
    if (missing > 0 && capture && capture->other_link > 0) return std::nullopt;
    if (!numbers || all_sequenced) return missing;
    if (!numbers->why_unknown().empty()) return std::nullopt;
    return std::max(missing_packets() + numbers->missing() * packets_per_event, device_losses());
}

std::string Ledger::imbalance() const {
    std::string text;
    const auto check = [&](const char* what, std::uint64_t left, std::uint64_t right) {
        if (left != right) text += fmt::format("{}{}: {} against {}", text.empty() ? "" : "; ", what, left, right);
    };
    std::uint64_t sum = 0;
    for (const std::uint64_t value : packets) sum += value;
    check("packets received and accounted for", received, sum);
    check("packets still in flight", get(PacketCounter::in_flight), 0);
    std::uint64_t fates = 0;
    for (std::size_t i = 1; i < messages.size(); ++i) fates += messages[i];
    check("messages opened and ended", get(MessageCounter::opened), fates);
    check("events opened and closed", get(EventCounter::opened), get(EventCounter::complete) + incomplete());
    check("events closed and settled", get(EventCounter::complete) + incomplete(),
          get(EventCounter::vetoed) + get(EventCounter::dropped_incomplete) + get(EventCounter::dropped_no_room) +
              get(EventCounter::dropped_reduce_error) + get(EventCounter::dropped_write_error) +
              get(EventCounter::dropped_not_taken) + get(EventCounter::written));
    return text;
}

}  // namespace weir::observe

#include "observe/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace weir::observe {

using assemble::EventCounter;
using assemble::MessageCounter;
using core::Fate;
using core::Place;
using wire::PacketCounter;

std::uint64_t Ledger::sum_of(std::span<const core::CounterInfo> infos, std::span<const std::uint64_t> values,
                             std::initializer_list<Fate> fates) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (std::ranges::find(fates, infos[i].fate) != fates.end()) sum += values[i];
    return sum;
}

std::uint64_t Ledger::lost_packets() const {
    return rule_dropped_of_streams + packets_that_are(Fate::lost, Fate::unread);
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
    std::vector<Loss> found;
    for (std::size_t i = 0; i < packets.size(); ++i) {
        const core::CounterInfo& of = packet_infos[i];
        const bool is_loss = of.fate == Fate::lost || of.fate == Fate::unread;
        if (packets[i] > 0 && is_loss) found.push_back({of.label_value(), packets[i], of.place});
    }
    if (rule_dropped_of_streams > 0)
        found.push_back({info(PacketCounter::flow_rule).label_value(), rule_dropped_of_streams, Place::weir});
    if (const std::uint64_t missed = device_losses(); missed > 0) found.push_back({"device", missed, Place::device});
    const std::uint64_t missing = missing_packets();
    if (const std::uint64_t dropped = dropped_unplaced(); missing > dropped)
        found.push_back({"missing", missing - dropped, Place::way});
    std::ranges::stable_sort(found, std::ranges::greater{}, &Loss::packets);
    return found;
}

std::uint64_t Ledger::dropped_unplaced() const {
    // What carries a number was seen, whatever became of it later.
    return device_losses() + (all_sequenced ? unread_packets() : lost_packets());
}

std::uint64_t Ledger::unread_packets() const {
    return rule_dropped_of_streams + packets_that_are(Fate::unread);
}

std::uint64_t Ledger::stream_packets() const {
    const std::uint64_t all = std::accumulate(packets.begin(), packets.end(), std::uint64_t{0});
    return all - packets_that_are(Fate::foreign);
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
    check("packets received and accounted for", received,
          std::accumulate(packets.begin(), packets.end(), std::uint64_t{0}));
    check("packets still in flight", packets_that_are(Fate::open), 0);
    check("messages opened and ended", get(MessageCounter::opened),
          messages_that_are(Fate::kept, Fate::spared, Fate::lost));
    const std::uint64_t closed = get(EventCounter::complete) + incomplete();
    check("events opened and closed", get(EventCounter::opened), closed);
    check("events closed and settled", closed, events_that_are(Fate::kept, Fate::spared, Fate::lost));
    return text;
}

}  // namespace weir::observe

#include "observe/loss_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weir::observe {

using assemble::EventCounter;

namespace {

std::string packets_text(std::uint64_t count) {
    return fmt::format("{} packet{}", count, count == 1 ? "" : "s");
}

void add_clause(std::string& text, const std::string& clause) {
    if (!clause.empty()) text += (text.empty() ? "" : "; ") + clause;
}

std::string port_text(const Ledger::Device& device) {
    return fmt::format("port {} ({})", device.port, device.driver);
}

bool has_kernel(const Ledger::Device& device) {
    return device.before != Ledger::Before::nothing;
}

/// What is known of a place while it is put together from ports.
struct Sum {
    std::uint64_t packets = 0;
    bool unknown = false;
    std::string evidence;

    [[nodiscard]] LossPlace place(const Ledger& ledger, std::string_view name, std::string_view title) && {
        if (packets > 0 && ledger.all_came()) {
            evidence += "; by their numbers none of them was of a stream";
            packets = 0;
            unknown = false;
        }
        if (unknown && packets > 0) evidence = "at least: " + evidence;
        return {name, title, unknown && packets == 0 ? std::nullopt : std::optional(packets), std::move(evidence)};
    }
};

/// Packets that weir had, or that its own lack of memory cost.
struct Here {
    std::uint64_t no_place = 0;
    std::uint64_t no_buffer = 0;
    std::uint64_t events = 0;   ///< closed and not kept
    std::uint64_t of_them = 0;  ///< packets, by the average

    explicit Here(const Ledger& ledger) : no_place(ledger.lost_packets()) {
        for (const Ledger::Device& device : ledger.devices) no_buffer += device.no_buffer.value_or(0);
        events = ledger.events_that_are(core::Fate::lost);
        const std::uint64_t closed = ledger.get(EventCounter::complete) + ledger.incomplete();
        if (closed > 0)
            of_them =
                static_cast<std::uint64_t>(std::llround(static_cast<double>(events) / static_cast<double>(closed) *
                                                        static_cast<double>(ledger.get(wire::PacketCounter::placed))));
    }
};

/// " (late 10, no_room 2)"
std::string causes_text(const Ledger& ledger) {
    constexpr std::size_t shown_max = 3;
    std::string text;
    std::size_t shown = 0;
    for (const Ledger::Loss& loss : ledger.losses()) {
        if (loss.place != core::Place::weir) continue;
        if (++shown <= shown_max) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", loss.cause, loss.packets);
    }
    if (shown > shown_max) text += ", ...";
    return text.empty() ? text : fmt::format(" ({})", text);
}

LossPlace in_weir(const Ledger& ledger) {
    const Here here(ledger);
    std::string evidence;
    if (here.no_place > 0)
        add_clause(evidence,
                   fmt::format("{} came and found no place{}", packets_text(here.no_place), causes_text(ledger)));
    if (here.no_buffer > 0)
        add_clause(evidence,
                   fmt::format("the driver found no free packet buffer for {}", packets_text(here.no_buffer)));
    if (here.events > 0)
        add_clause(evidence,
                   fmt::format("about {} are in {} closed event{} that {} not kept", packets_text(here.of_them),
                               here.events, here.events == 1 ? "" : "s", here.events == 1 ? "was" : "were"));
    if (evidence.empty())
        evidence = "every packet that came has its place, and no closed event was thrown away or failed to be written";
    return {"weir", "in weir", here.no_place + here.no_buffer + here.of_them, std::move(evidence)};
}

/// A capture says nothing of the machine that it was taken on.
LossPlace of_no_device(std::string_view name, std::string_view title) {
    return {name, title, std::nullopt, "there is no device: a capture does not say what the machine lost that took it"};
}

LossPlace in_nic(const Ledger& ledger) {
    if (ledger.devices.empty()) return of_no_device("nic", "in the NIC");
    Sum sum;
    for (const Ledger::Device& device : ledger.devices) {
        if (device.before == Ledger::Before::kernel) {
            add_clause(sum.evidence, fmt::format("no card is behind {} of {}", device.interface, port_text(device)));
        } else if (device.before == Ledger::Before::kernel_and_card) {
            sum.unknown = true;
            add_clause(sum.evidence, fmt::format("only the kernel knows the card of {}: what it says of it is in the "
                                                 "kernel's count, and ethtool -S {} has the rest",
                                                 port_text(device), device.interface));
        } else if (!device.missed.has_value()) {
            sum.unknown = true;
            add_clause(sum.evidence, fmt::format("the driver of {} does not count them", port_text(device)));
        } else {
            sum.packets += *device.missed;
            add_clause(sum.evidence, *device.missed == 0
                                         ? fmt::format("{} counts none", port_text(device))
                                         : fmt::format("{} counts {} for which its receive queue had no room",
                                                       port_text(device), packets_text(*device.missed)));
        }
    }
    return std::move(sum).place(ledger, "nic", "in the NIC");
}

LossPlace in_kernel(const Ledger& ledger) {
    if (ledger.devices.empty()) return of_no_device("kernel", "in the kernel");
    Sum sum;
    for (const Ledger::Device& device : ledger.devices) {
        if (!has_kernel(device)) continue;
        const std::uint64_t missed = device.missed.value_or(0);
        const std::uint64_t by_interface = std::min(missed, device.missed_by_interface);
        sum.packets += missed;
        sum.unknown |= !device.missed.has_value();
        if (!device.missed.has_value())
            add_clause(sum.evidence, fmt::format("the kernel's counts of {} cannot be read", port_text(device)));
        if (missed > by_interface)
            add_clause(sum.evidence, fmt::format("the kernel's queue for {} had no room for {}", port_text(device),
                                                 packets_text(missed - by_interface)));
        if (by_interface > 0)
            add_clause(sum.evidence,
                       fmt::format("the interface {} gave {} to nobody (too long, damaged, or its backlog was full){}",
                                   device.interface, packets_text(by_interface),
                                   device.before == Ledger::Before::kernel_and_card
                                       ? ", its card's own losses among them as far as it tells"
                                       : ""));
        if (device.missed == 0) add_clause(sum.evidence, fmt::format("it counts none for {}", port_text(device)));
    }
    if (sum.evidence.empty()) sum.evidence = "the kernel is not on the way of these packets";
    return std::move(sum).place(ledger, "kernel", "in the kernel");
}

/// What event numbers say, at the end or so far; null while they say nothing yet.
const NumberReport* numbers_of(const Ledger& ledger) {
    if (ledger.numbers) return &*ledger.numbers;
    return ledger.numbers_so_far ? &*ledger.numbers_so_far : nullptr;
}

/// Events of which nothing came, as far as their numbers tell.
std::uint64_t absent_events(const Ledger& ledger) {
    const NumberReport* numbers = numbers_of(ledger);
    return numbers != nullptr && numbers->why_unknown().empty() ? numbers->missing() : 0;
}

/// What sequences say of the way, and how far that goes.
struct Way {
    std::uint64_t missing = 0;    ///< of all sources
    std::uint64_t elsewhere = 0;  ///< may be among them: what weir and the devices dropped
    std::uint64_t at_least = 0;
    std::string why_not_all;  ///< more may have been lost unseen; empty: it would have shown

    explicit Way(const Ledger& ledger) : missing(ledger.missing_packets()), elsewhere(ledger.dropped_unplaced()) {
        if (!ledger.all_sequenced) missing += absent_events(ledger) * ledger.packets_per_event;
        at_least = missing - std::min(missing, elsewhere);
        // What the PSNs of RoCE miss and weir did not throw away unread is in no other counter.
        const std::uint64_t other = ledger.unread_packets() + ledger.device_losses();
        at_least = std::max(at_least, ledger.lost_psns() - std::min(ledger.lost_psns(), other));
        why_not_all = why(ledger);
    }

private:
    [[nodiscard]] static std::string why(const Ledger& ledger) {
        if (ledger.is_unread()) return "the capture could not be read to its end";
        if (!ledger.sequence_known)
            return "of some sources neither the size of a message is known nor do packets carry sequence numbers";
        if (ledger.all_sequenced) return {};
        if (!ledger.numbers_unknown_because.empty()) return ledger.numbers_unknown_because;
        if (ledger.sources_needed > 0 && ledger.sources_needed < ledger.sources.size())
            return fmt::format("an event is whole with {} of {} sources: what the others sent may be missing",
                               ledger.sources_needed, ledger.sources.size());
        if (ledger.get(EventCounter::dropped_incomplete) > 0)
            return "what incomplete events lacked that were thrown away is not counted";
        if (ledger.events_that_are(core::Fate::refused) > 0)
            return "what events lacked that were refused is not counted";
        const NumberReport* numbers = numbers_of(ledger);
        return numbers != nullptr
                   ? numbers->why_unknown()
                   : "whole events that never came show by their numbers: live some seconds later, in a replay at its end";
    }
};

std::string none_missing_text(const Ledger& ledger) {
    if (ledger.all_sequenced) return "by sequence: every packet carries a number, and none is missing";
    const NumberReport* numbers = numbers_of(ledger);
    const bool so_far = numbers != nullptr && !ledger.numbers && !numbers->run.epochs.empty();
    return fmt::format("by sequence: no packet of an event is missing, and no event number{}",
                       so_far ? fmt::format(" up to {}", numbers->run.epochs.back().last) : "");
}

std::string missing_text(const Ledger& ledger, std::uint64_t missing) {
    std::string text = fmt::format("by sequence: {} never came", packets_text(missing));
    const std::uint64_t events = ledger.all_sequenced ? 0 : absent_events(ledger);
    if (events > 0) text += fmt::format(", those of {} events among them of which nothing came", events);
    return text;
}

LossPlace on_the_way(const Ledger& ledger) {
    LossPlace place{"way", "on the way", std::nullopt, {}};
    if (ledger.stream_packets() == 0) {
        place.evidence = "no packet has come for a stream";
        return place;
    }
    const Way way(ledger);
    const bool explained = way.missing > 0 && way.elsewhere > 0;
    if (way.missing == 0 && way.at_least == 0 && way.why_not_all.empty()) {
        place.packets = 0;
        place.evidence = none_missing_text(ledger);
    } else if (explained) {
        if (way.at_least > 0) place.packets = way.at_least;
        place.evidence = fmt::format("{}by sequence: {} are missing, and {} that weir or a device dropped may be{}",
                                     way.at_least > 0 ? "at least: " : "", packets_text(way.missing), way.elsewhere,
                                     way.at_least > 0 ? " among them" : " all of them");
    } else if (way.at_least > 0) {
        place.packets = way.at_least;
        place.evidence = (way.why_not_all.empty() ? "" : "at least: ") + missing_text(ledger, way.at_least);
    }
    add_clause(place.evidence, way.why_not_all);
    if (ledger.missing_at_end > 0)
        add_clause(place.evidence, fmt::format("{} more may not have been sent when the run ended",
                                               packets_text(ledger.missing_at_end)));
    if (ledger.devices.empty()) add_clause(place.evidence, "what the machine lost that took the capture is part of it");
    return place;
}

}  // namespace

std::array<LossPlace, 4> loss_places(const Ledger& ledger) {
    return {on_the_way(ledger), in_nic(ledger), in_kernel(ledger), in_weir(ledger)};
}

nlohmann::json loss_places_json(const std::array<LossPlace, 4>& places) {
    nlohmann::json list = nlohmann::json::array();
    for (const LossPlace& place : places)
        list.push_back({{"place", place.place},
                        {"title", place.title},
                        {"packets", place.packets ? nlohmann::json(*place.packets) : nlohmann::json(nullptr)},
                        {"evidence", place.evidence}});
    return list;
}

}  // namespace weir::observe

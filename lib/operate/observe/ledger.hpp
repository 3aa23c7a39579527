// The account of a run: the sums of all counters, and whether they balance against what was counted independently of
// them. One struct for the report, the manifest, the terminal and the tests.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "assemble/counters.hpp"
#include "core/counters.hpp"
#include "core/latency_histogram.hpp"
#include "observe/number_report.hpp"
#include "observe/psn_report.hpp"
#include "observe/reduce_report.hpp"
#include "observe/source_ends.hpp"
#include "observe/unmatched_senders.hpp"
#include "roce/responder/answer_counter.hpp"
#include "store/disk_watch.hpp"
#include "wire/decapsulation.hpp"
#include "wire/packet_counter.hpp"

namespace weir::observe {

struct Ledger {
    /// A queue pair that weir answers.
    struct QueuePair {
        std::uint32_t source = 0;
        std::uint32_t qp = 0;
        std::uint32_t peer_qp = 0;  ///< where answers go, as configured
        std::string state;          ///< "reset", "ready" or "error"
        std::uint32_t psn = 0;      ///< expected next
        std::uint32_t msn = 0;      ///< messages completed, modulo 2^24
    };
    struct Sender {
        std::string address;
        std::uint64_t packets = 0;
    };
    struct Source {
        std::uint64_t packets = 0;
        std::uint64_t missing_packets = 0;
        std::uint64_t refused = 0;          ///< came for it and were malformed; 0 where only the header says the source
        std::uint64_t missing_at_end = 0;   ///< of the missing ones, those that may not have been sent yet
        std::uint64_t missing_guessed = 0;  ///< of the missing ones, those whose number is a guess
        /// Where its packets came from, if that is more than one address, and senders = "one": the first one first.
        std::vector<Sender> senders{};
        SourceEnds ends{};
    };
    /// Of the packets, those that came in IP fragments.
    struct IpFragments {
        std::uint64_t fragments = 0;
        std::uint64_t datagrams = 0;              ///< put together from them
        std::uint64_t reused_identification = 0;  ///< of these, with the identification of the one before
        std::string reusing_source;               ///< the first address that did so
    };

    /// What was taken off packets of a port that is asked to.
    struct Decapsulated {
        std::string port{};
        wire::Tunnels tunnels{};
        std::array<std::uint64_t, wire::tunnel_count> taken{};  ///< layers, by wire::Tunnel
    };

    /// What a replay left out.
    struct Capture {
        std::uint64_t skipped = 0;        ///< records outside the range of time that was asked for
        std::uint64_t other_link = 0;     ///< packets of interfaces that are not read
        std::vector<std::string> unread;  ///< sentences: where a file could not be read; once the reader has ended
        std::uint64_t cut_events = 0;     ///< incomplete ones that reach to where it could not, or began later
    };

    /// What packets pass before a device has them.
    enum class Before : std::uint8_t {
        nothing,  ///< the device is the card, or a card that is made up
        kernel,   ///< a kernel interface that is made up: veth, TAP
        kernel_and_card,
    };
    /// A device's own account.
    struct Device {
        std::string port;    ///< name in the configuration
        std::string driver;  ///< "net_af_packet", "sim", ...; "pci" for a PCI address
        std::uint64_t received = 0;
        std::optional<std::uint64_t> missed;     ///< nothing: nobody counts them
        std::optional<std::uint64_t> no_buffer;  ///< nothing: the driver does not count packets
        std::uint64_t missed_by_interface = 0;   ///< of `missed`: what the kernel's interface gave to nobody
        Before before = Before::nothing;
        std::string interface {};  ///< of the kernel; empty: none
    };

    /// A sink that stores events.
    struct Sink {
        std::string kind;
        std::uint64_t written = 0;  ///< events that are in it
        std::uint64_t lost = 0;     ///< events that it was given and lost to its error
        /// Events that it was given and left out, by cause: all causes of its kind. With `written` and `lost` these
        /// are all that it was given.
        std::vector<std::pair<std::string_view, std::uint64_t>> dropped;
        std::uint64_t interrupted = 0;  ///< times that a consumer went away in the middle
        std::uint64_t synced = 0;       ///< of the written ones, those that are on the device
        std::uint64_t bytes = 0;
        std::string error;  ///< empty: none
        store::DiskOutlook disk;
    };

    std::array<std::uint64_t, core::count_of<wire::PacketCounter>> packets{};
    std::array<std::uint64_t, core::count_of<assemble::MessageCounter>> messages{};
    std::array<std::uint64_t, core::count_of<assemble::EventCounter>> events{};
    std::array<std::uint64_t, core::count_of<roce::AnswerCounter>> answers{};
    /// What the counters are called and what becomes of what they count, in the order of the enumerations.
    std::span<const core::CounterInfo> packet_infos = wire::packet_counters;
    std::span<const core::CounterInfo> message_infos = assemble::message_counters;
    std::span<const core::CounterInfo> event_infos = assemble::event_counters;
    std::vector<QueuePair> queue_pairs;  ///< those that weir answers, by source
    std::vector<PsnReport> psns;         ///< of all queue pairs, by source
    /// Why events may join messages that do not belong together; empty: messages say which event is theirs.
    std::string numbers_unknown_because;
    std::uint64_t received = 0;  ///< counted independently: capture records, the device's or the simulator's counter
    std::string received_by;     ///< who counted: "capture reader", ...
    bool is_share = false;       ///< a builder of a cluster: others have other events, and packets came to other nodes
    std::uint64_t received_bytes = 0;
    std::uint64_t placed_bytes = 0;
    std::uint64_t stored_bytes = 0;
    core::Latencies latency;          ///< of complete events in live runs; docs/reference/REPORT.md
    std::uint64_t device_missed = 0;  ///< what devices say they dropped; not every device tells
    std::vector<Device> devices;      ///< live input; empty in a replay
    std::optional<Capture> capture;   ///< nothing in live runs
    IpFragments ip_fragments;
    std::vector<Decapsulated> decapsulated;  ///< ports that take something off, in the order of the configuration
    std::vector<Source> sources;
    std::vector<ReducerReport> reducers;  ///< in the order of the chain
    std::uint64_t missing_together = 0;   ///< of the missing packets, those of events in which every source misses some
    std::uint64_t missing_at_end = 0;     ///< of the missing packets, those that may not have been sent yet
    std::uint64_t missing_at_start = 0;   ///< ... and those that may have been sent before the run began
    std::uint64_t cut_at_end = 0;         ///< incomplete events that lack only the former
    std::uint64_t cut_at_start = 0;       ///< ... only the latter
    bool input_stopped = false;           ///< a capture was not read to its end
    UnmatchedSenders unmatched;           ///< of the unsteered packets
    std::uint64_t rule_dropped_of_streams = 0;  ///< of PacketCounter::flow_rule: packets that belonged to a stream
    /// `[events] overload`, and what Overload::prescale came to: summed over the builders.
    struct Overload {
        std::string policy;        ///< as in the configuration
        bool input_waits = false;  ///< "wait", or a replay without --drop
        std::uint64_t times = 0;   ///< that a builder's overload began
        std::uint64_t kept = 0;    ///< events that were taken while it lasted
    };
    Overload overload;
    std::uint64_t events_open = 0;
    std::uint64_t events_queued = 0;
    std::uint64_t events_synced = 0;  ///< of the written ones, those that are on the device
    store::DiskOutlook disk;          ///< of the file system that is full first; store::disk_text() says it in words
    std::vector<Sink> sinks;          ///< in the order of the configuration
    /// Times that a consumer of a sink that counts went away: what was on its way to it may not have arrived.
    std::uint64_t interrupted = 0;
    /// Every source has a fixed size, so missing packets of seen events are exact, or its packets carry sequence
    /// numbers that tell all.
    bool sequence_known = false;
    std::optional<NumberReport> numbers;  ///< whole events that never came; nothing while the run goes on
    /// While it goes on, of the events up to now of which none can come any more; for whoever asks for it.
    std::optional<NumberReport> numbers_so_far;
    std::uint64_t packets_per_event = 0;  ///< where sequence_known, and not all are sequenced
    std::uint32_t sources_needed = 0;     ///< for a complete event
    bool all_sequenced = false;  ///< all have sequence numbers: what becomes of a packet later makes no difference

    [[nodiscard]] std::uint64_t get(wire::PacketCounter c) const { return packets[static_cast<std::size_t>(c)]; }
    [[nodiscard]] std::uint64_t get(assemble::MessageCounter c) const { return messages[static_cast<std::size_t>(c)]; }
    [[nodiscard]] std::uint64_t get(assemble::EventCounter c) const { return events[static_cast<std::size_t>(c)]; }
    [[nodiscard]] const core::CounterInfo& info(wire::PacketCounter c) const {
        return packet_infos[static_cast<std::size_t>(c)];
    }
    [[nodiscard]] const core::CounterInfo& info(assemble::EventCounter c) const {
        return event_infos[static_cast<std::size_t>(c)];
    }
    /// All packets, messages or events with one of these fates.
    [[nodiscard]] std::uint64_t packets_that_are(std::same_as<core::Fate> auto... fates) const {
        return sum_of(packet_infos, packets, {fates...});
    }
    [[nodiscard]] std::uint64_t messages_that_are(std::same_as<core::Fate> auto... fates) const {
        return sum_of(message_infos, messages, {fates...});
    }
    [[nodiscard]] std::uint64_t events_that_are(std::same_as<core::Fate> auto... fates) const {
        return sum_of(event_infos, events, {fates...});
    }
    [[nodiscard]] std::uint64_t incomplete() const { return events_that_are(core::Fate::partial); }
    /// A capture could not be read to its end: what was open there may be whole, and more may have come.
    [[nodiscard]] bool is_unread() const { return capture && !capture->unread.empty(); }
    /// Packets that weir had and that are not in an event for lack of anything but need; of what flow rules drop only
    /// what belonged to a stream.
    [[nodiscard]] std::uint64_t lost_packets() const;
    /// What was lost, by cause, the largest first: in weir by counter, within its family; "device" for what devices say
    /// they dropped; and "missing", on the way, for packets of incomplete events that never came (where packets are
    /// numbered: of all that never came), less those that may have been dropped: each packet once, as in LossPlace.
    struct Loss {
        std::string_view cause;
        std::uint64_t packets = 0;
        core::Place place = core::Place::weir;
    };
    [[nodiscard]] std::vector<Loss> losses() const;
    /// Packets of incomplete events, or numbered ones, that never came; not those that lie beyond its beginning or end.
    [[nodiscard]] std::uint64_t missing_packets() const;
    /// How many they are is a guess: neither a format nor a sequence number says so.
    [[nodiscard]] bool missing_is_guessed() const;
    /// Numbers prove that every packet of the streams came, from the first to the last: what devices say they dropped
    /// was none of them. They count what others send, too, and some count wrongly.
    [[nodiscard]] bool all_came() const;
    /// What devices say they dropped, as far as it may be data of the streams.
    [[nodiscard]] std::uint64_t device_losses() const { return all_came() ? 0 : device_missed; }
    /// Of them, those that nobody saw by the packet sequence numbers of RoCE: no other counter has them.
    [[nodiscard]] std::uint64_t lost_psns() const;
    /// Packets that weir or a device dropped and that may be among the missing ones.
    [[nodiscard]] std::uint64_t dropped_unplaced() const;
    /// Packets that weir had and did not get as far as to read: their sequence numbers are missing just the same.
    [[nodiscard]] std::uint64_t unread_packets() const;
    /// Packets that came for a stream, whatever became of them: not what a network is full of anyway.
    [[nodiscard]] std::uint64_t stream_packets() const;
    /// Packets that were lost before weir saw them, if that is known.
    [[nodiscard]] std::optional<std::uint64_t> wire_loss() const;
    /// Empty if everything adds up at the end of a run; otherwise which sums differ.
    [[nodiscard]] std::string imbalance() const;

private:
    [[nodiscard]] static std::uint64_t sum_of(std::span<const core::CounterInfo> infos,
                                              std::span<const std::uint64_t> values,
                                              std::initializer_list<core::Fate> fates);
};

}  // namespace weir::observe

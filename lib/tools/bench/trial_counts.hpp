// What became of the packets of one trial: counted apart on every layer, each count from its own source, and judged.
// intended >= offered >= handed over >= on the wire >= arrived >= taken >= received >= assembled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::bench {

/// Of the sender. Packets, unless a unit is named.
struct SenderCounts {
    std::uint64_t ramp = 0;                ///< sent before, and in no other count
    std::uint64_t intended = 0;            ///< the load times the time
    std::uint64_t offered = 0;             ///< whose turn came while the trial lasted
    std::uint64_t handed_over = 0;         ///< that the kernel or the device took
    std::optional<std::uint64_t> on_wire;  ///< that the device says it sent
    double planned_s = 0;
    double took_s = 0;     ///< from the first packet to the last
    double lag_max_s = 0;  ///< the longest that a packet went after its turn
    double jitter_s = 0;   ///< mean distance of a burst from its turn
    double cpu_s = 0;
    std::string stopped;  ///< why it ended before its time; empty if it did not
};

/// Of the receiver. Packets, unless a unit is named.
struct ReceiverCounts {
    std::uint64_t ramp = 0;                       ///< that came before those that count, and are in no other count
    std::optional<std::uint64_t> arrived;         ///< that its device counted
    std::optional<std::uint64_t> device_dropped;  ///< by the device or the driver: no room
    std::optional<std::uint64_t> kernel_dropped;  ///< between device and program: socket or ring full
    std::uint64_t taken =
        0;  ///< that the program got, of this trial: received, duplicates, damaged, and what it lost itself
    std::uint64_t received = 0;  ///< different ones of them, undamaged
    std::uint64_t duplicates = 0;
    std::uint64_t damaged = 0;               ///< whose bytes are not those that were sent
    std::uint64_t others = 0;                ///< that are no packets of this trial
    std::optional<std::uint64_t> assembled;  ///< that ended in whole messages, where messages are assembled
    std::uint64_t messages = 0;              ///< whole ones
    bool settled = true;                     ///< nothing came any more when the counts were read
    double cpu_s = 0;
};

/// One way times, in seconds; of packets, from the sender's stamp to the program.
struct Latency {
    double p50 = 0;
    double p99 = 0;
    double p999 = 0;
    double longest = 0;
};

/// Where packets were lost. Those of `unknown` were lost where nobody counts.
struct Losses {
    std::uint64_t wire = 0;  ///< sent by one device and not counted by the other
    std::uint64_t device = 0;
    std::uint64_t kernel = 0;
    std::uint64_t application = 0;  ///< damaged, lost by the program, or in messages that did not become whole
    std::uint64_t unknown = 0;
    friend bool operator==(const Losses&, const Losses&) = default;
};

/// When a trial says something about the receiver.
struct Rules {
    double unsent_ratio = 0;      ///< of the intended packets, that may stay unsent
    double stretch_ratio = 0.02;  ///< so much longer than planned sending may take
    double stretch_s = 0.005;     ///< and so much more: the first and the last burst
    double lag_s = 0.05;          ///< a sender further behind its schedule sends another load than the one asked for
};

struct Judgement {
    std::string why;        ///< why the trial is invalid; empty: it is valid
    double loss_ratio = 0;  ///< of what was handed over; of a valid trial
    Losses lost;
    [[nodiscard]] bool valid() const noexcept { return why.empty(); }
};

/// Loss is what the receiver did not get of what was handed over: what the sender could not send is never counted as
/// the receiver's.
[[nodiscard]] Judgement judge(const SenderCounts& sender, const ReceiverCounts& receiver, const Rules& rules = {});

}  // namespace weir::bench

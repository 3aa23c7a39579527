// A trial on the receiver's side: a thread that takes packets from a Receiver, checks and counts them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "bench/interface_counters.hpp"
#include "bench/packet_plan.hpp"
#include "bench/receiver.hpp"
#include "bench/trial_counts.hpp"

namespace weir::bench {

class Reception;

/// How far a received packet goes.
enum class Depth : std::uint8_t {
    receive,   ///< counted and checked
    assemble,  ///< and put together to messages
    full,      ///< and reduced and written: by `weir run`
};
/// "receive", "assemble", "full".
[[nodiscard]] std::string_view name_of(Depth depth) noexcept;
/// Throws core::UsageError with the names there are.
[[nodiscard]] Depth depth_named(std::string_view name);

/// What a receiver is made to do wrong, to see that the benchmark finds it.
struct ReceiverFaults {
    double packets_per_s = 0;   ///< it takes no more; 0: as many as it can
    double loss_ratio = 0;      ///< it takes them and forgets them
    double pause_s = 0;         ///< it stops for so long
    double pause_every_s = 60;  ///< once in this time
};

struct TrialSpec {
    PacketPlan plan;
    std::uint64_t packets = 0;  ///< intended, those of the ramp among them
    std::uint64_t ramp = 0;     ///< so many of them come first, and do not count
    double packets_per_s = 0;
    Depth depth = Depth::receive;
    /// The sender joins packets: what the kernel's interface counts may be several of them. Its counts are left out.
    bool joined = false;
};

class Receiving {
public:
    struct Settings {
        std::optional<std::uint32_t> cpu;  ///< to run on
        bool real_time = false;            ///< SCHED_FIFO, where that is allowed
        ReceiverFaults faults;
    };
    /// Throws std::bad_alloc. From here on packets are counted.
    Receiving(Receiver& receiver, std::string interface, const TrialSpec& spec, const Settings& settings);
    ~Receiving();
    Receiving(const Receiving&) = delete;
    Receiving& operator=(const Receiving&) = delete;

    /// Packets seen up to now; for any thread.
    [[nodiscard]] std::uint64_t seen() const noexcept;
    struct Outcome {
        ReceiverCounts counts;
        Latency latency;
        std::string remarks;
    };
    /// The sender has sent `sent`, those of the ramp among them. Waits until they are all here, or none has come for a
    /// while, or, at most, for `patience_s`; stops, and counts.
    [[nodiscard]] Outcome end(std::uint64_t sent, double patience_s = 2);

private:
    void run() noexcept;
    void work();
    [[nodiscard]] std::string prepare_thread() const;

    Receiver& receiver_;
    std::string interface_;
    TrialSpec spec_;
    Settings settings_;
    std::unique_ptr<Reception> reception_;
    std::optional<InterfaceCounters> before_;
    Receiver::Drops drops_before_;
    std::optional<std::uint64_t> arrived_before_;
    Receiver::Refused refused_before_;
    std::atomic<bool> stop_{false};
    // Of the thread, until it has been joined.
    std::uint64_t messages_ = 0;
    std::uint64_t assembled_ = 0;
    double cpu_s_ = 0;
    std::string remarks_;
    std::string failure_;
    std::thread thread_;
};

}  // namespace weir::bench

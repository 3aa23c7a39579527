// A way to put packets into a network, and the schedule that all of them keep to.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bench/packet_plan.hpp"
#include "bench/receiver.hpp"
#include "bench/schedule.hpp"
#include "bench/trial_counts.hpp"

namespace weir::bench {

/// What a sender is made for.
struct SenderSpec {
    Endpoint to;
    std::string device{};       ///< for DPDK: VDEV[,ARGS] or a PCI address; empty: on top of the interface on the way
    std::string own_address{};  ///< IPv4, that packets come from where the kernel does not say
    std::uint32_t bytes = 0;    ///< of a packet, at most
};

/// Used by one thread.
class Sender {
public:
    virtual ~Sender() = default;
    /// Takes what the receiver offers (Receiver::offer()), if that is anything, and answers it. Throws core::RunError
    /// with what this host lacks.
    [[nodiscard]] virtual nlohmann::json accept(const nlohmann::json& /*offer*/) { return nullptr; }
    /// For a new trial: everything that can be done before the first packet.
    virtual void prepare(const PacketPlan& plan) = 0;
    /// Hands over the packets `first` to `first + count` at most; returns how many were taken, 0 when there is no room
    /// now. Throws core::RunError if it cannot send at all.
    [[nodiscard]] virtual std::uint32_t send(std::uint64_t first, std::uint32_t count) = 0;
    /// Packets that its device counts itself as sent, since it was made; nothing: the kernel's interface does.
    [[nodiscard]] virtual std::optional<std::uint64_t> on_wire() { return std::nullopt; }
    /// The kernel, its counters and its drops may take several packets for one, or one for several, so that what it
    /// counts says nothing.
    [[nodiscard]] virtual bool joins_packets() const noexcept { return false; }
    /// Packets that it took and kept back on purpose, since it was made: they are lost on the way.
    [[nodiscard]] virtual std::uint64_t kept_back() const noexcept { return 0; }
    /// The trial is over: what it still has goes out.
    virtual void finish() {}
    /// The most packets that one send() takes.
    [[nodiscard]] virtual std::uint32_t burst() const noexcept = 0;
};

/// What ends sending at once: somebody asked for it, or the other side is gone.
struct StopSigns {
    const std::atomic<bool>& asked;
    const std::atomic<bool>& gone;
    [[nodiscard]] explicit operator bool() const noexcept {
        return asked.load(std::memory_order_relaxed) || gone.load(std::memory_order_relaxed);
    }
};

/// Sends a load by its schedule, and says how well it was kept. What the ramp sends is counted apart, and nothing else
/// is of it. A sender that does not get done ends when the time is over by a tenth. `stop` ends it at once.
/// `interface`: of the kernel, whose counters say what went out where the sender does not. Nobody says it where a
/// sender joins packets: a virtual device passes on, and counts, what was joined as one; others cut it first.
[[nodiscard]] SenderCounts send_load(Sender& sender, const PacketPlan& plan, const Load& load,
                                     const std::string& interface, const StopSigns& stop);

/// The most packets/s that the sender hands over, in `seconds` of no schedule.
[[nodiscard]] double sender_ceiling(Sender& sender, const PacketPlan& plan, double seconds, const StopSigns& stop);

}  // namespace weir::bench

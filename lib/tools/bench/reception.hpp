// Which packets of a trial came, and when: the same account for every way to receive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bench/packet_plan.hpp"
#include "bench/trial_counts.hpp"
#include "core/latency_histogram.hpp"

namespace weir::bench {

class Reception {
public:
    /// Packets are numbered below `packets`; a number beyond counts as damage. The first `ramp` are of the ramp.
    Reception(const PacketPlan& plan, std::uint64_t packets, std::uint64_t ramp = 0);

    /// One packet of the receiver. True if it is a new one and whole.
    bool add(std::span<const std::byte> payload, core::TimeNs now) noexcept;

    /// A packet that the receiver took and lost itself.
    void forget() noexcept;

    /// Packets that came, of any kind; for any thread.
    [[nodiscard]] std::uint64_t seen() const noexcept { return seen_.load(std::memory_order_relaxed); }
    /// A packet that is not of the ramp has come.
    [[nodiscard]] bool counts_now() const noexcept { return counts_.taken > 0; }
    /// `ramp`, and `taken` to `others`; the rest is for others to fill in. After the last add().
    [[nodiscard]] ReceiverCounts counts() const noexcept;
    [[nodiscard]] Latency latency() const;

private:
    PacketChecker checker_;
    std::vector<std::uint64_t> came_;  // a bit for each packet
    std::uint64_t packets_;
    std::uint64_t ramp_;
    std::atomic<std::uint64_t> seen_{0};
    ReceiverCounts counts_;
    std::unique_ptr<core::LatencyHistogram> times_;
};

}  // namespace weir::bench

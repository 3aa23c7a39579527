#include "bench/reception.hpp"

#include <algorithm>

#include "core/one_writer.hpp"

namespace weir::bench {

Reception::Reception(const PacketPlan& plan, std::uint64_t packets, std::uint64_t ramp)
    : checker_(plan),
      came_((packets + 63) / 64),
      packets_(packets),
      ramp_(ramp),
      times_(std::make_unique<core::LatencyHistogram>()) {}

bool Reception::add(std::span<const std::byte> payload, core::TimeNs now) noexcept {
    core::add(seen_);
    const PacketChecker::Packet packet = checker_.check(payload);
    if (packet.is == PacketChecker::Is::other) {
        ++counts_.others;
        return false;
    }
    if (packet.is == PacketChecker::Is::whole && packet.sequence < ramp_) {
        ++counts_.ramp;
        return false;
    }
    ++counts_.taken;
    if (packet.is == PacketChecker::Is::damaged || packet.sequence >= packets_) {
        ++counts_.damaged;
        return false;
    }
    std::uint64_t& word = came_[packet.sequence / 64];
    const std::uint64_t bit = std::uint64_t{1} << packet.sequence % 64;
    if ((word & bit) != 0) {
        ++counts_.duplicates;
        return false;
    }
    word |= bit;
    ++counts_.received;
    times_->add(static_cast<std::uint64_t>(std::max<core::TimeNs>(0, now - packet.sent_ns)));
    return true;
}

void Reception::forget() noexcept {
    core::add(seen_);
    ++counts_.taken;
}

ReceiverCounts Reception::counts() const noexcept {
    return counts_;
}

Latency Reception::latency() const {
    const auto sum = std::make_unique<core::Latencies>();
    sum->add(*times_);
    const auto seconds = [](std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; };
    return {seconds(sum->quantile_ns(0.5)), seconds(sum->quantile_ns(0.99)), seconds(sum->quantile_ns(0.999)),
            seconds(sum->longest_ns())};
}

}  // namespace weir::bench

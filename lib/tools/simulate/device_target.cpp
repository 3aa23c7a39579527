// The simulator's frames through a DPDK device.
#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "simulate/frame_target.hpp"
#include "simulate/reading_peer.hpp"
#include "simulate/sender_port.hpp"

namespace weir::simulate {

namespace {

constexpr auto refill_patience = std::chrono::seconds(10);

class DeviceTarget : public FrameTarget {
public:
    DeviceTarget(const std::string& device, const Simulator& simulator, const std::atomic<bool>& stop,
                 std::uint16_t queues)
        : device_(device), stop_(stop), queues_(queues), port_(device, simulator.frame_bytes_max(), queues) {
        refill(0, slots);
    }
    ~DeviceTarget() override { ::rte_pktmbuf_free_bulk(mbufs_.data(), slots); }

    std::span<std::byte> slot(std::uint32_t index) noexcept override {
        return {rte_pktmbuf_mtod(mbufs_[index], std::byte*), SenderPort::room_bytes};
    }

    std::uint32_t send(std::uint32_t first, std::span<const OutgoingFrame> frames) override {
        for (std::size_t i = 0; i < frames.size(); ++i) {
            rte_mbuf* mbuf = mbufs_[first + i];
            mbuf->data_len = static_cast<std::uint16_t>(frames[i].frame.bytes);
            mbuf->pkt_len = frames[i].frame.bytes;
        }
        // Batch after batch through another queue: the worst that a network with several paths does to the order.
        queue_ = static_cast<std::uint16_t>((queue_ + 1) % queues_);
        std::uint32_t sent = 0;
        std::optional<std::chrono::steady_clock::time_point> stalled;
        while (sent < frames.size()) {
            const auto count = ::rte_eth_tx_burst(port_.id(), queue_, mbufs_.data() + first + sent,
                                                  static_cast<std::uint16_t>(frames.size() - sent));
            sent += count;
            if (count != 0) {
                stalled.reset();
                continue;
            }
            const auto now = std::chrono::steady_clock::now();
            const auto waited = now - stalled.value_or(now);
            if (!may_take_more(device_, waited, [this] { return is_up(); })) {
                std::fill_n(mbufs_.begin() + first, sent, nullptr);  // they are the device's now
                throw core::RunError(fmt::format("device:{}: took no frame for {} s{}", device_,
                                                 std::chrono::floor<std::chrono::seconds>(waited).count(),
                                                 is_up() ? "" : "; its link is down: is the receiver there?"));
            }
            stalled = stalled.value_or(now);
            if (stop_.load(std::memory_order_relaxed)) {
                break;
            }
            std::this_thread::yield();
        }
        refill(first, sent);
        return sent;
    }

    void finish() override {
        rte_eth_stats stats{};
        if (::rte_eth_stats_get(port_.id(), &stats) == 0) {
            lost_ = stats.oerrors;
        }
    }
    std::uint64_t lost() const noexcept override { return lost_; }

private:
    [[nodiscard]] bool is_up() const noexcept {
        rte_eth_link link{};
        return ::rte_eth_link_get_nowait(port_.id(), &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
    }

    void refill(std::uint32_t first, std::uint32_t count) {
        // The device gives buffers back when it needs descriptors; until then the pool may be empty.
        const auto start = std::chrono::steady_clock::now();
        while (count != 0 && ::rte_pktmbuf_alloc_bulk(port_.pool().get(), mbufs_.data() + first, count) != 0) {
            for (std::uint16_t queue = 0; queue < queues_; ++queue) ::rte_eth_tx_done_cleanup(port_.id(), queue, 0);
            if (std::chrono::steady_clock::now() - start > refill_patience) {
                std::fill_n(mbufs_.begin() + first, count, nullptr);
                throw core::RunError(
                    fmt::format("device:{}: keeps all {} packet buffers", device_, SenderPort::buffers(queues_)));
            }
        }
    }

    std::string device_;
    const std::atomic<bool>& stop_;
    std::uint16_t queues_;
    std::uint16_t queue_ = 0;
    SenderPort port_;
    std::array<rte_mbuf*, slots> mbufs_{};
    std::uint64_t lost_ = 0;
};

}  // namespace

std::unique_ptr<FrameTarget> open_device_target(const std::string& device, const Simulator& simulator,
                                                const std::atomic<bool>& stop, std::uint16_t queues) {
    return std::make_unique<DeviceTarget>(device, simulator, stop, queues);
}

}  // namespace weir::simulate

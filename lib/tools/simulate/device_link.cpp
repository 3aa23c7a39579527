// A DPDK device as a link in both directions.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.hpp"
#include "simulate/frame_link.hpp"
#include "simulate/sender_port.hpp"

namespace weir::simulate {

namespace {

class DeviceLink : public FrameLink {
public:
    DeviceLink(const std::string& device, std::uint32_t frame_bytes_max) : port_(device, frame_bytes_max) {
        if (::rte_pktmbuf_alloc_bulk(port_.pool().get(), mbufs_.data(), slots) != 0)
            throw core::RunError("device:" + device + ": no packet buffers");
    }
    ~DeviceLink() override {
        ::rte_pktmbuf_free_bulk(mbufs_.data(), slots);
        give_back();
    }
    DeviceLink(const DeviceLink&) = delete;
    DeviceLink& operator=(const DeviceLink&) = delete;

    std::span<std::byte> slot(std::uint32_t index) noexcept override {
        return {rte_pktmbuf_mtod(mbufs_[index], std::byte*), SenderPort::room_bytes};
    }

    std::uint32_t send(std::uint32_t first, std::span<const std::uint32_t> bytes) noexcept override {
        // New buffers first: what cannot be replaced is not sent, so that every slot has one at any time.
        std::array<rte_mbuf*, slots> fresh;
        auto count = static_cast<std::uint32_t>(bytes.size());
        while (count != 0 && ::rte_pktmbuf_alloc_bulk(port_.pool().get(), fresh.data(), count) != 0) count /= 2;
        if (count == 0) {
            ::rte_eth_tx_done_cleanup(port_.id(), 0, 0);
            return 0;
        }
        for (std::uint32_t i = 0; i < count; ++i) {
            mbufs_[first + i]->data_len = static_cast<std::uint16_t>(bytes[i]);
            mbufs_[first + i]->pkt_len = bytes[i];
        }
        const std::uint16_t sent =
            ::rte_eth_tx_burst(port_.id(), 0, mbufs_.data() + first, static_cast<std::uint16_t>(count));
        std::copy_n(fresh.begin(), sent, mbufs_.begin() + first);
        ::rte_pktmbuf_free_bulk(fresh.data() + sent, count - sent);
        return sent;
    }

    std::uint32_t receive(std::span<std::span<const std::byte>> frames) noexcept override {
        give_back();
        received_ = ::rte_eth_rx_burst(port_.id(), 0, received_mbufs_.data(),
                                       static_cast<std::uint16_t>(std::min<std::size_t>(frames.size(), slots)));
        // Of a frame in several segments the first is read: no answer is as long as that.
        for (std::uint32_t i = 0; i < received_; ++i)
            frames[i] = {rte_pktmbuf_mtod(received_mbufs_[i], const std::byte*), received_mbufs_[i]->data_len};
        return received_;
    }

    bool is_up() noexcept override {
        rte_eth_link link{};
        return ::rte_eth_link_get_nowait(port_.id(), &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
    }

    std::uint64_t lost() noexcept override {
        rte_eth_stats stats{};
        return ::rte_eth_stats_get(port_.id(), &stats) == 0 ? stats.oerrors : 0;
    }

private:
    void give_back() noexcept {
        for (std::uint32_t i = 0; i < received_; ++i) ::rte_pktmbuf_free(received_mbufs_[i]);
        received_ = 0;
    }

    SenderPort port_;
    std::array<rte_mbuf*, slots> mbufs_{};
    std::array<rte_mbuf*, slots> received_mbufs_{};
    std::uint32_t received_ = 0;
};

}  // namespace

std::unique_ptr<FrameLink> open_device_link(const std::string& device, std::uint32_t frame_bytes_max) {
    return std::make_unique<DeviceLink>(device, frame_bytes_max);
}

}  // namespace weir::simulate

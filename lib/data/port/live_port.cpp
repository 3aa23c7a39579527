#include "port/live_port.hpp"

#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "core/one_writer.hpp"
#include "core/tsan.hpp"
#include "port/interface_link.hpp"
#include "wire/network.hpp"

namespace weir::port {

namespace {

/// Of mbuf flags: bit 3 if the device found the checksum of the layer above IP wrong. Both bits set say "not known".
std::uint64_t bad_checksum(std::uint64_t flags) noexcept {
    static_assert(RTE_MBUF_F_RX_L4_CKSUM_BAD == RTE_BIT64(3) && RTE_MBUF_F_RX_L4_CKSUM_GOOD == RTE_BIT64(8));
    return flags & ~(flags >> 5U) & RTE_MBUF_F_RX_L4_CKSUM_BAD;
}

}  // namespace

LivePort::LivePort(const LivePortConfig& config, std::vector<BufferPool*> pools)
    : config_(config), pools_(std::move(pools)), taken_(std::make_unique<Taken[]>(config.queues)) {
    StartedPort port = set_up_port(config_, pools_, answering_);
    id_ = port.id;
    kernel_device_ = std::move(port.kernel_device);
    facts_ = port.facts;
    own_ = port.own;
    kernel_ = std::move(port.kernel);
    clock_ = std::move(port.clock);
    stamp_lag_ns_ = port.stamp_lag_ns;
    answer_pool_ = std::move(port.answer_pool);
    answer_senders_ = std::move(port.answer_senders);
    setup_ = std::move(port.settings);
    remarks_ = std::move(port.remarks);
}

LivePort::~LivePort() {
    if (facts_.driver == "net_memif") let_other_side_leave();
    ::rte_eth_dev_stop(id_);
    ::rte_eth_dev_close(id_);
}

/// DPDK 22.11: when the other side of a memif leaves, a thread of the driver frees what the two had in common, and so
/// does whoever stops the port. Both at once end the process, so a side that is leaving gets a moment to be gone.
void LivePort::let_other_side_leave() const noexcept {
    using namespace std::chrono_literals;
    const auto give_up = std::chrono::steady_clock::now() + 100ms;
    while (link().up && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(50ms);
}

void LivePort::begin() {
    const bool again = std::exchange(began_, true);
    if (!facts_.early && !again) return;
    if (again) setup_.thrown_away = 0;
    const ThrownAway waited = throw_away_packets(id_, config_.queues);
    if (again) forget_counts();
    // What this thread has given back between runs is for the lcores.
    for (BufferPool* const pool : pools_) pool->flush_own_cache();
    const std::uint64_t dropped = kernel_.dropped().all.value_or(0);
    setup_.thrown_away += waited.packets + dropped;
    setup_.too_early = waited.datagrams + dropped;
    kernel_ = InterfaceDrops::find(config::driver_of(config_.device), config_.args.value_or(""));
}

void LivePort::forget_counts() noexcept {
    for (std::uint16_t queue = 0; queue < config_.queues; ++queue) {
        taken_[queue].packets.store(0, std::memory_order_relaxed);
        taken_[queue].stamps_moved.store(0, std::memory_order_relaxed);
    }
    for (auto* count : {&answered_arp_, &answered_icmp_, &unanswered_, &collided_})
        count->store(0, std::memory_order_relaxed);
    rte_eth_stats stats{};
    if (::rte_eth_stats_get(id_, &stats) != 0) return;
    received_before_ = stats.ipackets;
    missed_before_ = stats.imissed;
    no_buffer_before_ = stats.rx_nombuf;
}

void LivePort::idle() noexcept {
    constexpr std::uint16_t bursts_max = 64;
    std::array<rte_mbuf*, 64> burst;
    for (std::uint16_t queue = 0; queue < config_.queues; ++queue) {
        for (std::uint16_t i = 0, count = burst.size(); i < bursts_max && count == burst.size(); ++i) {
            count = ::rte_eth_rx_burst(id_, queue, burst.data(), burst.size());
            for (rte_mbuf* const mbuf : std::span(burst.data(), count)) {
                core::tsan_acquire(mbuf);
                wire::Datagram datagram;
                const std::span frame(rte_pktmbuf_mtod(mbuf, const std::byte*), mbuf->data_len);
                const wire::PacketCounter kind =
                    wire::parse_frame(frame.data(), mbuf->data_len, mbuf->pkt_len, datagram);
                if (kind == wire::PacketCounter::not_for_us_arp || kind == wire::PacketCounter::not_for_us_icmp)
                    answer(frame, kind);
            }
            ::rte_pktmbuf_free_bulk(burst.data(), count);
        }
    }
}

LivePort::Burst LivePort::receive(std::uint16_t queue, std::span<Packet> packets, core::TimeNs now,
                                  core::TimeNs floor) noexcept {
    std::array<rte_mbuf*, 64> burst;
    const auto wanted = static_cast<std::uint16_t>(std::min(packets.size(), burst.size()));
    const std::uint16_t count = ::rte_eth_rx_burst(id_, queue, burst.data(), wanted);
    std::uint64_t bad = 0;
    for (std::uint16_t i = 0; i < count; ++i) {
        core::tsan_acquire(burst[i]);
        bad |= bad_checksum(burst[i]->ol_flags);
        // Of a frame in several segments this is the first one: Packet::scattered().
        packets[i] = {burst[i], now, burst[i]->pkt_len, burst[i]->data_len, static_cast<std::uint8_t>(config_.index)};
    }
    if (count == 0) return {};
    if (clock_ != nullptr) {
        const DeviceClock::Stamps stamps = clock_->stamps();
        std::uint64_t moved = 0;
        for (std::uint16_t i = 0; i < count; ++i) packets[i].time_ns = stamps.time_of(*burst[i], floor, now, moved);
        core::add(taken_[queue].stamps_moved, moved);
    }
    core::add(taken_[queue].packets, count);
    return {count, bad != 0};
}

bool has_bad_checksum(const rte_mbuf& mbuf) noexcept {
    if (bad_checksum(mbuf.ol_flags) == 0) return false;
    wire::Datagram datagram;
    const auto* frame = rte_pktmbuf_mtod(&mbuf, const std::byte*);
    // Of a frame in several segments only the headers are read, which end within this.
    constexpr std::uint16_t headers_bytes_max = 640;
    const std::uint32_t readable = mbuf.data_len >= headers_bytes_max ? mbuf.pkt_len : mbuf.data_len;
    // Whatever else is wrong, or not UDP, has its own place.
    if (wire::parse_frame(frame, readable, mbuf.pkt_len, datagram) != wire::ok) return false;
    const std::byte* checksum = datagram.payload - 2;
    return checksum[0] != std::byte{0} || checksum[1] != std::byte{0};
}

void LivePort::answer(std::span<const std::byte> frame, wire::PacketCounter kind) noexcept {
    if (own_.ip == 0 && !own_.has_ipv6) return;
    // Requests come in through any queue, there is one to send with. They are rare: who finds it taken leaves it, and
    // the other side asks again.
    if (answering_.test_and_set(std::memory_order_acquire)) {
        collided_.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    answer_alone(frame, kind);
    answering_.clear(std::memory_order_release);
}

void LivePort::answer_alone(std::span<const std::byte> frame, wire::PacketCounter kind) noexcept {
    BufferPool& pool = *pools_.front();
    rte_mbuf* reply = pool.allocate();
    if (reply == nullptr) return core::add(unanswered_, 1);  // it may have been due
    const std::size_t bytes = port::answer(frame, own_, {rte_pktmbuf_mtod(reply, std::byte*), pool.room_bytes()});
    if (bytes == 0) {
        ::rte_pktmbuf_free(reply);
        return;
    }
    reply->data_len = static_cast<std::uint16_t>(bytes);
    reply->pkt_len = static_cast<std::uint32_t>(bytes);
    if (::rte_eth_tx_burst(id_, 0, &reply, 1) == 0) {
        ::rte_pktmbuf_free(reply);
        return core::add(unanswered_, 1);
    }
    core::add(kind == wire::PacketCounter::not_for_us_arp ? answered_arp_ : answered_icmp_, 1);
}

LivePort::Answers LivePort::answers() const noexcept {
    return {answered_arp_.load(std::memory_order_relaxed), answered_icmp_.load(std::memory_order_relaxed),
            unanswered_.load(std::memory_order_relaxed) + collided_.load(std::memory_order_relaxed)};
}

std::uint64_t LivePort::stamps_moved() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint16_t queue = 0; queue < config_.queues; ++queue)
        sum += taken_[queue].stamps_moved.load(std::memory_order_relaxed);
    return sum;
}

LivePort::Link LivePort::link() const noexcept {
    rte_eth_link link{};
    if (::rte_eth_link_get_nowait(id_, &link) != 0) return {};
    // Virtual devices name a speed because they must.
    const bool told = facts_.driver == "pci" && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN;
    const std::uint32_t mbps = told ? link.link_speed : 0;
    // Drivers on kernel interfaces say "up" whatever the interface is.
    const bool running = interface_running(setup_.interface).value_or(true);
    return {link.link_status == RTE_ETH_LINK_UP && running, mbps};
}

LivePort::DeviceCounters LivePort::counters() const noexcept {
    rte_eth_stats stats{};
    if (::rte_eth_stats_get(id_, &stats) != 0) return {};
    stats.ipackets -= std::min(stats.ipackets, received_before_);
    stats.imissed -= std::min(stats.imissed, missed_before_);
    stats.rx_nombuf -= std::min(stats.rx_nombuf, no_buffer_before_);
    DeviceCounters counters;
    counters.received = stats.ipackets;
    if (facts_.forgets) {
        counters.received = 0;
        for (std::uint16_t queue = 0; queue < config_.queues; ++queue)
            counters.received += taken_[queue].packets.load(std::memory_order_relaxed);
    }
    if (facts_.loss == config::LossTold::lossless) {
        // Its statistics count attempts to give it buffers; the packets wait where they are.
        counters.missed = counters.no_buffer = 0;
        return counters;
    }
    const InterfaceDrops::Dropped kernel = kernel_.dropped();
    counters.missed_by_interface = kernel.by_interface;
    if (facts_.driver == "net_af_xdp") {
        // The interface counts what the driver may count too.
        const std::uint64_t missed = std::max(kernel.all.value_or(0), std::uint64_t{stats.imissed});
        if (kernel.all.has_value() || missed > 0) counters.missed = missed;
    } else if (facts_.loss == config::LossTold::counted && (kernel.all.has_value() || !kernel_.applies())) {
        counters.missed = stats.imissed + kernel.all.value_or(0);
    } else if (stats.imissed > 0) {
        counters.missed = stats.imissed;
    }
    if (facts_.loss == config::LossTold::counted || stats.rx_nombuf > 0) counters.no_buffer = stats.rx_nombuf;
    return counters;
}

}  // namespace weir::port

#include "port/kernel_device.hpp"

#include <fmt/format.h>
#include <linux/if_ether.h>
#include <rte_dev.h>
#include <rte_mbuf_dyn.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "config/device_facts.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "core/tsan.hpp"
#include "port/device_problem.hpp"
#include "port/interface_drops.hpp"
#include "port/interface_link.hpp"

namespace weir::port {

namespace {

constexpr std::uint32_t addresses_bytes = 12;  // the two MACs; a VLAN tag comes after them
constexpr std::uint32_t tag_bytes = 4;
/// A block that is not full is used up all the same: 256 of them last for 2 s of a slow detector. Older kernels wait
/// for two of their ticks, which are 8 ms with most; newer ones take the millisecond at its word, and 256 ms are no
/// more than a busy machine may hold a thread up for.
constexpr std::uint32_t retire_ms = 8;

BlockRing::Config ring_of(const std::string& args) {
    const std::string device = "kernel," + args;
    if (const std::string problem = config::argument_problem(device); !problem.empty()) throw core::RunError(problem);
    // Small enough for the second-level cache, large enough for what the kernel makes of merged packets (64 KiB).
    constexpr std::uint32_t block_bytes = 256U << 10U;
    return {.block_bytes = block_bytes,
            .blocks = config::kernel_ring_mib(device) * ((1U << 20U) / block_bytes),
            .retire_ms = retire_ms};
}

/// A quarter of the ring at 16 GB/s, more than the kernel can fill it with, and never more than is good for anything.
core::TimeNs nap_of(const std::string& args) {
    constexpr core::TimeNs per_mib_ns = core::ns_per_ms / 64;
    return std::clamp<core::TimeNs>(config::kernel_ring_mib("kernel," + args) * per_mib_ns, 50'000, core::ns_per_ms);
}

std::string next_name() {
    static std::atomic<std::uint32_t> next{0};
    return fmt::format("net_null_kernel{}", next.fetch_add(1));
}

[[noreturn]] void device_failed(const char* step, int code) {
    throw core::RunError(fmt::format("{}: {}", step, rte_strerror(code < 0 ? -code : code)));
}

}  // namespace

void copy_frame(const tpacket3_hdr& header, rte_mbuf& mbuf) noexcept {
    const auto* frame = reinterpret_cast<const std::byte*>(&header) + header.tp_mac;
    auto* to = rte_pktmbuf_mtod(&mbuf, std::byte*);
    std::uint32_t room = rte_pktmbuf_tailroom(&mbuf);
    std::uint32_t bytes = header.tp_snaplen;
    mbuf.pkt_len = header.tp_len;
    mbuf.data_len = 0;
    if ((header.tp_status & TP_STATUS_VLAN_VALID) != 0 && bytes >= addresses_bytes) {
        const bool told = (header.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0;
        const std::uint16_t tag[2] = {rte_cpu_to_be_16(told ? header.hv1.tp_vlan_tpid : std::uint16_t{ETH_P_8021Q}),
                                      rte_cpu_to_be_16(static_cast<std::uint16_t>(header.hv1.tp_vlan_tci))};
        std::memcpy(to, frame, addresses_bytes);
        std::memcpy(to + addresses_bytes, tag, tag_bytes);
        to += addresses_bytes + tag_bytes;
        frame += addresses_bytes;
        bytes -= addresses_bytes;
        room -= addresses_bytes + tag_bytes;
        mbuf.data_len = addresses_bytes + tag_bytes;
        mbuf.pkt_len += tag_bytes;
    }
    const std::uint32_t some = std::min(bytes, room);
    std::memcpy(to, frame, some);
    mbuf.data_len = static_cast<std::uint16_t>(mbuf.data_len + some);
}

KernelDevice::KernelDevice(const std::string& args, BufferPool& pool)
    : interface_(interface_of("kernel", args)),
      ring_(ring_of(args)),
      pool_(pool.get()),
      nap_ns_(nap_of(args)),
      name_(next_name()) {
    if (const int rc = ::rte_eal_hotplug_add("vdev", name_.c_str(), "no-rx=1"); rc != 0) {
        const std::string missing = missing_driver_text("net_null");
        if (!missing.empty()) throw core::RunError("its part below is net_null: " + missing);
        device_failed("creating net_null below it", rc);
    }
    if (const int rc = ::rte_eth_dev_get_port_by_name(name_.c_str(), &id_); rc != 0)
        device_failed("finding net_null below it", rc);
    // What is answered says where it comes from, as if the kernel had answered.
    if (const auto mac = interface_mac(interface_)) {
        rte_ether_addr address;
        std::ranges::copy(*mac, address.addr_bytes);
        ::rte_eth_dev_default_mac_addr_set(id_, &address);
    }
}

/// Whoever stopped the port has closed it.
KernelDevice::~KernelDevice() {
    ::rte_eal_hotplug_remove("vdev", name_.c_str());
}

DeviceAbilities KernelDevice::abilities(bool stamps) const {
    DeviceAbilities device;
    device.driver = "kernel";
    device.rx_offloads = stamps ? RTE_ETH_RX_OFFLOAD_TIMESTAMP : 0;
    device.mtu_max = UINT16_MAX;
    return device;
}

bool KernelDevice::open(std::uint16_t transmit_queues, bool promiscuous) {
    if (const int rc = ::rte_mbuf_dyn_rx_timestamp_register(&stamp_field_, &stamp_flag_); rc != 0)
        device_failed("making a field for time stamps", rte_errno);
    bool called = ::rte_eth_add_rx_callback(id_, 0, on_receive, this) != nullptr;
    for (std::uint16_t queue = 0; queue < transmit_queues; ++queue)
        called = called && ::rte_eth_add_tx_callback(id_, queue, on_send, this) != nullptr;
    if (!called) device_failed("adding to net_null", rte_errno);
    ring_.bind_to(interface_, ETH_P_ALL);
    return !promiscuous || ring_.hear_all();
}

std::unique_ptr<DeviceClock> KernelDevice::clock(std::string& why_not) const {
    const auto read = [] { return std::optional(static_cast<std::uint64_t>(core::clock_ns(CLOCK_REALTIME))); };
    try {
        return std::make_unique<DeviceClock>("the kernel's clock, at its packet socket", read, stamp_field_,
                                             stamp_flag_, "kernel");
    } catch (const core::RunError& error) {
        why_not = error.what();
        return nullptr;
    }
}

core::TimeNs KernelDevice::stamp_lag_ns() noexcept {
    return BlockRing::slowest_ms(retire_ms) * core::ns_per_ms;
}

/// What finds no buffer stays in the ring. The kernel counts what finds no room there.
std::uint16_t KernelDevice::receive(rte_mbuf** mbufs, std::uint16_t wanted) noexcept {
    std::uint16_t count = 0;
    while (count < wanted && (ring_.left() > 0 || ring_.next_block())) {
        const auto some = static_cast<std::uint16_t>(std::min<std::uint32_t>(wanted - count, ring_.left()));
        if (::rte_pktmbuf_alloc_bulk(pool_, mbufs + count, some) != 0) return count;
        core::tsan_acquire(pool_);
        for (const std::uint16_t end = count + some; count < end; ++count) {
            const tpacket3_hdr& header = ring_.take();
            copy_frame(header, *mbufs[count]);
            *RTE_MBUF_DYNFIELD(mbufs[count], stamp_field_, rte_mbuf_timestamp_t*) =
                std::uint64_t{header.tp_sec} * core::ns_per_s + header.tp_nsec;
            mbufs[count]->ol_flags |= stamp_flag_;
        }
        if (ring_.left() == 0) ring_.give_back();
    }
    return count;
}

std::uint16_t KernelDevice::send(rte_mbuf** mbufs, std::uint16_t count) noexcept {
    std::uint16_t sent = 0;
    while (sent < count && mbufs[sent]->nb_segs == 1 &&
           ring_.send({rte_pktmbuf_mtod(mbufs[sent], const std::byte*), mbufs[sent]->data_len}))
        ++sent;
    return sent;
}

std::uint16_t KernelDevice::on_receive(std::uint16_t /*port*/, std::uint16_t /*queue*/, rte_mbuf* mbufs[],
                                       std::uint16_t count, std::uint16_t room, void* self) {
    return static_cast<std::uint16_t>(
        count + static_cast<KernelDevice*>(self)->receive(mbufs + count, static_cast<std::uint16_t>(room - count)));
}

/// What went out is net_null's to free; the rest stays the caller's.
std::uint16_t KernelDevice::on_send(std::uint16_t /*port*/, std::uint16_t /*queue*/, rte_mbuf* mbufs[],
                                    std::uint16_t count, void* self) {
    return static_cast<KernelDevice*>(self)->send(mbufs, count);
}

}  // namespace weir::port

#include "bench/dpdk_receiver.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/dpdk_device.hpp"
#include "bench/neighbour.hpp"
#include "bench/reserved_port.hpp"
#include "bench/roce_target.hpp"
#include "config/device_facts.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "port/buffers.hpp"
#include "port/interface_drops.hpp"
#include "port/interface_link.hpp"
#include "port/live_port.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t headers_bytes = 28;       // IP and UDP
constexpr std::uint32_t roce_headers_bytes = 40;  // and those of RoCE, with its iCRC
constexpr std::uint16_t descriptors = 2048;
static_assert(dpdk_buffers == 2 * Receiver::held_max);
/// EJFAT's; on a link that the kernel does not see any would do.
constexpr std::uint16_t udp_port_alone = 19522;

/// 64 MiB with frames of 16 KiB: as much as the other ways to receive have.
constexpr std::string_view ring = ",framecnt=4096";
/// A frame, 256 bytes of the kernel's and the buffer's header share a page (pmd-config/net_af_xdp.toml).
constexpr std::uint32_t xdp_room_bytes = 3520;
constexpr std::uint32_t ethernet_bytes = 14;

class DpdkReceiver : public Receiver {
public:
    /// `frames`: of RoCE, and then they come to its port.
    DpdkReceiver(const ReceiverSpec& spec, std::string_view driver, FrameKind::Is frames)
        : spec_(spec),
          roce_(frames == FrameKind::Is::udp
                    ? std::nullopt
                    : std::optional<RoceTarget>(std::in_place, frames, spec.bytes, spec.addresses)),
          reserved_(reserved_port(spec, frames)),
          endpoint_(endpoint_of(spec, frames, reserved_)),
          device_(checked(config::with_frame_room(device_of(spec, driver), mtu()), mtu())),
          place_(device_),
          pool_(fmt::format("bench{}", next_dpdk_id()), {.buffers = dpdk_buffers, .room_bytes = room_bytes()}),
          port_(port_config(), {&pool_}) {}
    ~DpdkReceiver() override {
        while (next_ < got_) ::rte_pktmbuf_free(frames_[next_++].mbuf);
    }
    DpdkReceiver(const DpdkReceiver&) = delete;
    DpdkReceiver& operator=(const DpdkReceiver&) = delete;

    [[nodiscard]] Endpoint endpoint() const override { return endpoint_; }
    [[nodiscard]] nlohmann::json offer() const override { return roce_ ? to_json(roce_->frames()) : nlohmann::json(); }
    [[nodiscard]] Refused refused() const override { return refused_; }
    [[nodiscard]] bool lends() const noexcept override { return roce_.has_value(); }

    std::uint32_t receive(std::span<ReceivedPacket> packets) override {
        need_lcore();
        if (next_ == got_) {
            const core::TimeNs now = core::clock_ns(CLOCK_REALTIME);
            got_ =
                port_.receive(0, std::span(frames_).first(std::min<std::size_t>(packets.size(), burst)), now, 0).count;
            next_ = 0;
        }
        if (roce_) roce_->next_burst();
        std::uint32_t count = 0;
        for (; next_ < got_ && count < packets.size(); ++next_) {
            const port::Packet& frame = frames_[next_];
            wire::Datagram datagram;
            const wire::Verdict is =
                wire::parse_frame(port::frame_of(frame), frame.captured_bytes, frame.wire_bytes, datagram);
            if (is != wire::ok || datagram.dport != endpoint_.port) {
                port_.answer({port::frame_of(frame), frame.captured_bytes}, is);
                ::rte_pktmbuf_free(frame.mbuf);
            } else if (!roce_) {
                packets[count++] = {datagram.payload, datagram.payload_bytes, frame.mbuf};
            } else {
                const RoceTarget::Taken taken = roce_->take(datagram);
                if (taken.is == RoceTarget::Is::not_yet) break;
                if (taken.is == RoceTarget::Is::taken)
                    packets[count++] = {taken.payload, taken.bytes, frame.mbuf};
                else
                    refuse(taken.is, frame.mbuf);
            }
        }
        return count;
    }

    [[nodiscard]] assemble::BufferRelease release() const noexcept override {
        return [](void** mbufs, std::uint32_t count) {
            ::rte_pktmbuf_free_bulk(reinterpret_cast<rte_mbuf**>(mbufs), count);
        };
    }

    [[nodiscard]] Drops drops() override {
        const port::LivePort::DeviceCounters counters = port_.counters();
        if (port_.setup().interface.empty()) return {.device = sum(counters.missed, counters.no_buffer), .kernel = {}};
        return {.device = counters.no_buffer, .kernel = counters.missed};
    }
    [[nodiscard]] std::optional<std::uint64_t> arrived() override {
        if (!port_.setup().interface.empty()) return std::nullopt;  // the kernel's interface counts
        const port::LivePort::DeviceCounters counters = port_.counters();
        return counters.received + counters.missed.value_or(0);
    }
    [[nodiscard]] std::string remarks() const override { return port_.remarks(); }

private:
    [[nodiscard]] static std::optional<std::uint64_t> sum(std::optional<std::uint64_t> a,
                                                          std::optional<std::uint64_t> b) {
        if (!a && !b) return std::nullopt;
        return a.value_or(0) + b.value_or(0);
    }
    /// Of the kernel's, so that it does not answer that nobody is there. RoCE's may be taken: by somebody who is.
    static std::optional<ReservedPort> reserved_port(const ReceiverSpec& spec, FrameKind::Is frames) {
        if (spec.interface.empty()) return std::nullopt;
        if (frames == FrameKind::Is::udp) return std::optional<ReservedPort>(std::in_place, spec.address);
        try {
            return std::optional<ReservedPort>(std::in_place, spec.address, wire::roce_port);
        } catch (const core::RunError&) {
            return std::nullopt;
        }
    }
    static Endpoint endpoint_of(const ReceiverSpec& spec, FrameKind::Is frames,
                                const std::optional<ReservedPort>& reserved) {
        if (frames != FrameKind::Is::udp) return {spec.address, wire::roce_port};
        return reserved ? reserved->endpoint() : Endpoint{spec.address, udp_port_alone};
    }
    static std::string device_of(const ReceiverSpec& spec, std::string_view driver) {
        need_eal(spec.device);
        return spec.device.empty() ? fmt::format("{}{},iface={}{}", driver, next_dpdk_id(), spec.interface,
                                                 driver == "net_af_packet" ? ring : "")
                                   : spec.device;
    }
    static std::string checked(std::string device, std::uint32_t mtu) {
        // What the kernel says when it refuses this is lost on the way.
        if (const auto interface = port::interface_mtu(port::interface_of(config::driver_of(device), device));
            device.starts_with("net_af_xdp") && interface && *interface > config::device_facts("net_af_xdp").mtu_max)
            throw core::RunError(fmt::format("an XDP socket needs an interface with an MTU of at most {}, not {}",
                                             config::device_facts("net_af_xdp").mtu_max, *interface));
        const std::uint32_t most = config::device_facts(device).mtu_max;
        if (most != 0 && mtu > most)
            throw core::RunError(fmt::format("{} takes frames of up to {} bytes", config::driver_of(device), most));
        if (std::string problem = config::frame_room_problem(device, mtu); !problem.empty())
            throw core::RunError(problem);
        return device;
    }
    [[nodiscard]] std::uint32_t mtu() const {
        return std::max(1500U, spec_.bytes + headers_bytes + (roce_ ? roce_headers_bytes : 0));
    }
    [[nodiscard]] std::uint32_t room_bytes() const {
        if (config::driver_of(device_) == "net_af_xdp") return xdp_room_bytes;
        return std::max(mtu() + ethernet_bytes, config::buffer_room_bytes(device_, mtu()));
    }
    [[nodiscard]] port::LivePortConfig port_config() const {
        port::LivePortConfig config = dpdk_port_config(device_, mtu());
        config.rx_descriptors = descriptors;
        // Where the kernel does not see what comes, nobody else answers ARP.
        if (!device_.starts_with("net_af_packet")) config.address = address_number(spec_.address);
        return config;
    }

    void refuse(RoceTarget::Is is, rte_mbuf* mbuf) noexcept {
        ++(is == RoceTarget::Is::damaged ? refused_.damaged : refused_.others);
        ::rte_pktmbuf_free(mbuf);
    }

    ReceiverSpec spec_;
    std::optional<RoceTarget> roce_;
    std::optional<ReservedPort> reserved_;
    Endpoint endpoint_;
    std::string device_;
    DpdkPlace place_;
    port::BufferPool pool_;
    port::LivePort port_;
    std::array<port::Packet, burst> frames_;  // from next_ on they have not been looked at
    std::uint32_t next_ = 0;
    std::uint32_t got_ = 0;
    Refused refused_;
};

}  // namespace

std::unique_ptr<Receiver> open_dpdk_receiver(const ReceiverSpec& spec, std::string_view driver) {
    return std::make_unique<DpdkReceiver>(spec, driver, FrameKind::Is::udp);
}

std::unique_ptr<Receiver> open_dpdk_roce_receiver(const ReceiverSpec& spec, FrameKind::Is frames) {
    return std::make_unique<DpdkReceiver>(spec, "net_af_packet", frames);
}

}  // namespace weir::bench

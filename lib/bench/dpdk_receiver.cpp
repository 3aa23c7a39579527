#include "bench/dpdk_receiver.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include <array>
#include <atomic>
#include <cstring>

#include "bench/reserved_port.hpp"
#include "config/device_facts.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "port/buffers.hpp"
#include "port/eal.hpp"
#include "port/interface_drops.hpp"
#include "port/interface_link.hpp"
#include "port/live_port.hpp"
#include "wire/network.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t ip_and_udp_bytes = 28;
constexpr std::uint16_t descriptors = 2048;
constexpr std::uint32_t buffers = 2 * Receiver::held_max;
constexpr std::uint64_t other_memory_bytes = 64U << 20;

/// 64 MiB with frames of 16 KiB: as much as the other ways to receive have.
constexpr std::string_view ring = ",framecnt=4096";
/// A frame, 256 bytes of the kernel's and the buffer's header share a page (pmd-config/net_af_xdp.toml).
constexpr std::uint32_t xdp_room_bytes = 3520;
constexpr std::uint32_t ethernet_bytes = 14;
/// Of a device that takes any frame that is measured.
constexpr std::uint32_t room_bytes_max = 16640;

void need_eal() {
    struct Eal {
        Eal() {
            port::EalConfig config;
            config.memory_bytes =
                port::BufferPool::memory_bytes({.buffers = buffers, .room_bytes = room_bytes_max}) + other_memory_bytes;
            config.pin = false;
            port::start_eal(config);
        }
        ~Eal() { port::stop_eal(); }
    };
    static Eal eal;
}

/// DPDK's pools have caches for threads that they know.
void need_lcore() {
    struct Registered {
        Registered() { ::rte_thread_register(); }
        ~Registered() { ::rte_thread_unregister(); }
    };
    thread_local Registered registered;
}

class DpdkReceiver : public Receiver {
public:
    DpdkReceiver(const ReceiverSpec& spec, std::string_view driver)
        : spec_(spec),
          socket_(spec.address),
          device_(checked(config::with_frame_room(device_of(spec, driver), mtu()), mtu())),
          pool_(fmt::format("bench{}", next_id()), {.buffers = buffers, .room_bytes = room_bytes()}),
          port_(port_config(), {&pool_}) {}

    [[nodiscard]] Endpoint endpoint() const override { return socket_.endpoint(); }

    std::uint32_t receive(std::span<ReceivedPacket> packets) override {
        need_lcore();
        std::array<port::Packet, burst> frames;
        const core::TimeNs now = core::clock_ns(CLOCK_REALTIME);
        const auto got =
            port_.receive(0, std::span(frames).first(std::min<std::size_t>(packets.size(), burst)), now, 0);
        std::uint32_t count = 0;
        for (std::uint32_t i = 0; i < got.count; ++i) {
            const port::Packet& frame = frames[i];
            wire::Datagram datagram;
            const wire::Verdict is =
                wire::parse_frame(port::frame_of(frame), frame.captured_bytes, frame.wire_bytes, datagram);
            if (is == wire::ok && datagram.dport == socket_.endpoint().port) {
                packets[count++] = {datagram.payload, datagram.payload_bytes, frame.mbuf};
                continue;
            }
            port_.answer({port::frame_of(frame), frame.captured_bytes}, is);
            ::rte_pktmbuf_free(frame.mbuf);
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
    static std::string device_of(const ReceiverSpec& spec, std::string_view driver) {
        need_eal();
        return spec.device.empty() ? fmt::format("{}{},iface={}{}", driver, next_id(), spec.interface,
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
    /// Two devices or pools of one name would be the same.
    static std::uint32_t next_id() {
        static std::atomic<std::uint32_t> next{0};
        return next.fetch_add(1);
    }
    [[nodiscard]] std::uint32_t mtu() const { return std::max(1500U, spec_.bytes + ip_and_udp_bytes); }
    [[nodiscard]] std::uint32_t room_bytes() const {
        if (config::driver_of(device_) == "net_af_xdp") return xdp_room_bytes;
        return std::max(mtu() + ethernet_bytes, config::buffer_room_bytes(device_, mtu()));
    }
    [[nodiscard]] port::LivePortConfig port_config() const {
        port::LivePortConfig config;
        config.name = "bench";
        const std::size_t comma = device_.find(',');
        config.device = device_.substr(0, comma);
        if (!config::is_pci_address(device_)) config.args = comma == std::string::npos ? "" : device_.substr(comma + 1);
        config.mtu = static_cast<std::uint16_t>(mtu());
        config.rx_descriptors = descriptors;
        config.options.timestamps = config::Timestamps::software;
        // Where the kernel does not see what comes, nobody else answers ARP.
        in_addr address{};
        ::inet_pton(AF_INET, spec_.address.c_str(), &address);
        if (!device_.starts_with("net_af_packet")) config.address = ntohl(address.s_addr);
        return config;
    }

    ReceiverSpec spec_;
    ReservedPort socket_;
    std::string device_;
    port::BufferPool pool_;
    port::LivePort port_;
};

}  // namespace

std::unique_ptr<Receiver> open_dpdk_receiver(const ReceiverSpec& spec, std::string_view driver) {
    return std::make_unique<DpdkReceiver>(spec, driver);
}

}  // namespace weir::bench

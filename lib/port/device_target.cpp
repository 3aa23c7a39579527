// The simulator's frames through a DPDK device.
#include <fmt/format.h>
#include <net/if.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "port/buffers.hpp"
#include "port/device_facts.hpp"
#include "port/eal.hpp"
#include "port/frame_target.hpp"
#include "port/live_port.hpp"

namespace weir::port {

namespace {

// Frames of net_af_packet's ring and of what is received beside; more than any jumbo frame.
constexpr std::uint32_t room_bytes = 16640;
// The descriptors of both queues, the batch, and what lies in the pool's cache.
constexpr std::uint32_t buffers = 1024 + 256 + FrameTarget::slots + 2 * BufferPool::cache_buffers;
constexpr std::uint32_t ethernet_bytes = 14;
constexpr auto patience = std::chrono::seconds(5);

// The kernel drops what is longer than the interface's MTU, and the driver counts it as sent.
void check_interface(const std::string& device, std::uint32_t frame_bytes_max) {
    const std::size_t at = device.find("iface=");
    if (!device.starts_with("net_af_packet") || at == std::string::npos) {
        return;
    }
    const std::string interface = device.substr(at + 6, device.find(',', at) - at - 6);
    ifreq request{};
    interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool known = ::ioctl(socket, SIOCGIFMTU, &request) == 0;
    ::close(socket);
    if (known && frame_bytes_max > static_cast<std::uint32_t>(request.ifr_mtu) + ethernet_bytes) {
        throw core::RunError(
            fmt::format("device:{}: {} has an MTU of {}, and would lose frames of {} bytes; ip link set {} mtu 9000",
                        device, interface, request.ifr_mtu, frame_bytes_max, interface));
    }
}

EalConfig eal_config(const std::string& device) {
    EalConfig config;
    config.memory_bytes = BufferPool::memory_bytes({buffers, room_bytes}) + (64U << 20);
    if (is_pci_address(device)) config.pci.push_back(device);
    config.pin = false;
    return config;
}

struct Eal {
    explicit Eal(const EalConfig& config) { start_eal(config); }
    ~Eal() { stop_eal(); }
    Eal(const Eal&) = delete;
    Eal& operator=(const Eal&) = delete;
};

class DeviceTarget : public FrameTarget {
public:
    DeviceTarget(const std::string& device, const Simulator& simulator, const std::atomic<bool>& stop)
        : device_(device),
          stop_(stop),
          eal_(eal_config(device)),
          pool_("send", {buffers, room_bytes}),
          port_(port_config(device, simulator), {&pool_}) {
        refill(0, slots);
    }
    ~DeviceTarget() override { ::rte_pktmbuf_free_bulk(mbufs_.data(), slots); }

    std::span<std::byte> slot(std::uint32_t index) noexcept override {
        return {rte_pktmbuf_mtod(mbufs_[index], std::byte*), room_bytes};
    }

    std::uint32_t send(std::uint32_t first, std::span<const OutgoingFrame> frames) override {
        for (std::size_t i = 0; i < frames.size(); ++i) {
            rte_mbuf* mbuf = mbufs_[first + i];
            mbuf->data_len = static_cast<std::uint16_t>(frames[i].frame.bytes);
            mbuf->pkt_len = frames[i].frame.bytes;
        }
        std::uint32_t sent = 0;
        std::optional<std::chrono::steady_clock::time_point> stalled;
        while (sent < frames.size()) {
            const auto count = ::rte_eth_tx_burst(port_.id(), 0, mbufs_.data() + first + sent,
                                                  static_cast<std::uint16_t>(frames.size() - sent));
            sent += count;
            if (count != 0) {
                stalled.reset();
                continue;
            }
            const auto now = std::chrono::steady_clock::now();
            if (now - stalled.value_or(now) > patience) {
                std::fill_n(mbufs_.begin() + first, sent, nullptr);  // they are the device's now
                throw core::RunError(fmt::format("device:{}: took no frame for {} s", device_, patience.count()));
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
    static LivePortConfig port_config(const std::string& device, const Simulator& simulator) {
        LivePortConfig config;
        config.name = "send";
        const std::size_t comma = device.find(',');
        config.device = device.substr(0, comma);
        if (!is_pci_address(device)) config.args = comma == std::string::npos ? "" : device.substr(comma + 1);
        config.mtu = static_cast<std::uint16_t>(std::clamp(simulator.frame_bytes_max() - ethernet_bytes, 1500U, 9600U));
        return config;
    }

    void refill(std::uint32_t first, std::uint32_t count) {
        // The device gives buffers back when it needs descriptors; until then the pool may be empty.
        const auto start = std::chrono::steady_clock::now();
        while (count != 0 && ::rte_pktmbuf_alloc_bulk(pool_.get(), mbufs_.data() + first, count) != 0) {
            ::rte_eth_tx_done_cleanup(port_.id(), 0, 0);
            if (std::chrono::steady_clock::now() - start > patience) {
                std::fill_n(mbufs_.begin() + first, count, nullptr);
                throw core::RunError(fmt::format("device:{}: keeps all {} packet buffers", device_, buffers));
            }
        }
    }

    std::string device_;
    const std::atomic<bool>& stop_;
    Eal eal_;
    BufferPool pool_;
    LivePort port_;
    std::array<rte_mbuf*, slots> mbufs_{};
    std::uint64_t lost_ = 0;
};

}  // namespace

std::unique_ptr<FrameTarget> open_device_target(const std::string& device, const Simulator& simulator,
                                                const std::atomic<bool>& stop) {
    if (simulator.frame_bytes_max() > room_bytes) {
        throw core::UsageError(fmt::format("--mtu: frames of {} bytes are too long for a device; up to {} are sent",
                                           simulator.frame_bytes_max(), room_bytes));
    }
    check_interface(device, simulator.frame_bytes_max());
    const std::uint32_t mtu = simulator.frame_bytes_max() - ethernet_bytes;
    const std::string complete = with_frame_room(device, mtu);
    if (const std::string problem = frame_room_problem(complete, mtu); !problem.empty())
        throw core::UsageError(fmt::format("device:{}: {}", device, problem));
    return std::make_unique<DeviceTarget>(complete, simulator, stop);
}

}  // namespace weir::port

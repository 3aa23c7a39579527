#include "bench/dpdk_sender.hpp"

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <variant>

#include "bench/control_connection.hpp"
#include "bench/dpdk_device.hpp"
#include "bench/frame_kind.hpp"
#include "bench/frame_maker.hpp"
#include "bench/neighbour.hpp"
#include "bench/roce_frame_maker.hpp"
#include "bench/sending_socket.hpp"
#include "config/device_facts.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "port/interface_link.hpp"
#include "simulate/frame_link.hpp"
#include "simulate/neighbour.hpp"
#include "simulate/reading_peer.hpp"
#include "wire/network.hpp"

namespace weir::bench {
namespace {

constexpr double address_patience_s = 3;
constexpr auto link_patience = std::chrono::seconds(5);
constexpr auto link_look = std::chrono::milliseconds(5);
constexpr std::uint32_t headers_max = 68;  // of IP, UDP and RoCE
constexpr std::uint16_t source_port = 49152;

/// Beside what a device may keep: a burst in hand, and what the cache holds.
constexpr std::uint32_t sent_descriptors = 1024;
constexpr std::uint32_t sent_buffers = sent_descriptors + 64 + 2 * port::BufferPool::cache_buffers;
constexpr std::uint32_t heard_buffers = 1024 + 2 * port::BufferPool::cache_buffers;

/// The way there as the kernel knows it, where the device sits on one of its interfaces.
struct KernelsWay {
    FileDescriptor port;  // only so that it is nobody else's, and for the address
    Neighbour neighbour;
    explicit KernelsWay(const Endpoint& to) : port(connected_socket(to)), neighbour(neighbour_of(port.get())) {}
};

/// To ask for an address with.
class PortLink : public simulate::FrameLink {
public:
    PortLink(std::uint16_t id, port::BufferPool& pool) : id_(id), pool_(pool) {}
    ~PortLink() override { give_back(); }
    PortLink(const PortLink&) = delete;
    PortLink& operator=(const PortLink&) = delete;

    std::span<std::byte> slot(std::uint32_t /*index*/) noexcept override { return frame_; }
    std::uint32_t send(std::uint32_t /*first*/, std::span<const std::uint32_t> bytes) noexcept override {
        rte_mbuf* mbuf = pool_.allocate();
        if (mbuf == nullptr) return 0;
        std::copy_n(frame_.begin(), bytes[0], rte_pktmbuf_mtod(mbuf, std::byte*));
        mbuf->data_len = static_cast<std::uint16_t>(bytes[0]);
        mbuf->pkt_len = bytes[0];
        if (::rte_eth_tx_burst(id_, 0, &mbuf, 1) == 1) return 1;
        ::rte_pktmbuf_free(mbuf);
        return 0;
    }
    std::uint32_t receive(std::span<std::span<const std::byte>> frames) noexcept override {
        give_back();
        heard_ = ::rte_eth_rx_burst(id_, 0, mbufs_.data(),
                                    static_cast<std::uint16_t>(std::min<std::size_t>(frames.size(), slots)));
        for (std::uint32_t i = 0; i < heard_; ++i)
            frames[i] = {rte_pktmbuf_mtod(mbufs_[i], const std::byte*), mbufs_[i]->data_len};
        return heard_;
    }

private:
    void give_back() noexcept {
        ::rte_pktmbuf_free_bulk(mbufs_.data(), heard_);
        heard_ = 0;
    }

    std::uint16_t id_;
    port::BufferPool& pool_;
    std::array<std::byte, 128> frame_{};
    std::array<rte_mbuf*, slots> mbufs_{};
    std::uint32_t heard_ = 0;
};

class DpdkSender : public Sender {
public:
    static constexpr std::uint32_t most = 64;

    explicit DpdkSender(const SenderSpec& spec)
        : spec_(spec),
          kernel_(kernels_way(spec)),
          device_(checked(device_of(spec, kernel_), mtu())),
          heard_(fmt::format("heard{}", next_dpdk_id()),
                 {.buffers = heard_buffers,
                  .room_bytes = std::max(mtu() + 14, config::buffer_room_bytes(device_, mtu()))}),
          pool_(fmt::format("sent{}", next_dpdk_id()), {.buffers = sent_buffers, .room_bytes = mtu() + 14 + 4}) {
        if (kernel_) mac_ = kernel_->neighbour.mac;
        open_port();
    }
    ~DpdkSender() override {
        simulate::take_leave_of(device_);
        ::rte_pktmbuf_free_bulk(mbufs_.data(), ready_);
    }
    DpdkSender(const DpdkSender&) = delete;
    DpdkSender& operator=(const DpdkSender&) = delete;

    nlohmann::json accept(const nlohmann::json& offer) override {
        frames_ = frames_from_json(offer);
        return nullptr;
    }

    void prepare(const PacketPlan& plan) override {
        need_lcore();
        const wire::FrameSpec frame = frame_spec();
        if (frames_.is == FrameKind::Is::udp)
            maker_.emplace(FrameMaker(frame, plan));
        else
            maker_.emplace(RoceFrameMaker(frame, frames_, plan));
        own_bodies_ = plan.content != nullptr;
        // Each buffer gets its body here, unless each packet has one of its own. Buffers that the device still has are
        // of a trial that is over.
        std::visit(
            [this](auto& maker) {
                ::rte_mempool_obj_iter(
                    pool_.get(),
                    [](rte_mempool*, void* of, void* object, unsigned) {
                        auto* const mbuf = static_cast<rte_mbuf*>(object);
                        auto* const room = static_cast<std::byte*>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM;
                        static_cast<std::remove_reference_t<decltype(maker)>*>(of)->write_body(0, room);
                    },
                    &maker);
            },
            *maker_);
    }

    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        count = ready(std::min(count, most));
        if (count == 0) return 0;
        const core::TimeNs now = core::monotonic_ns();
        std::visit(
            [&](const auto& maker) {
                for (std::uint32_t i = 0; i < count; ++i) {
                    if (own_bodies_) maker.write_body(first + i, rte_pktmbuf_mtod(mbufs_[i], std::byte*));
                    maker.write_head(first + i, now, rte_pktmbuf_mtod(mbufs_[i], std::byte*));
                    mbufs_[i]->data_len = static_cast<std::uint16_t>(maker.frame_bytes());
                    mbufs_[i]->pkt_len = maker.frame_bytes();
                }
            },
            *maker_);
        const std::uint16_t sent = ::rte_eth_tx_burst(port_->id(), 0, mbufs_.data(), static_cast<std::uint16_t>(count));
        std::copy(mbufs_.begin() + sent, mbufs_.begin() + ready_, mbufs_.begin());
        ready_ -= sent;
        return sent;
    }

    [[nodiscard]] std::optional<std::uint64_t> on_wire() override {
        if (!port_->setup().interface.empty()) return std::nullopt;  // the kernel's interface counts
        rte_eth_stats stats{};
        if (::rte_eth_stats_get(port_->id(), &stats) != 0) return std::nullopt;
        return stats.opackets;
    }

    [[nodiscard]] std::uint32_t burst() const noexcept override { return most; }

private:
    /// Starts the device and waits for its link. What needs the other side from the start on (net_memif) may be a
    /// moment too early for it, and is begun again.
    void open_port() {
        const auto give_up = std::chrono::steady_clock::now() + link_patience;
        while (!port_) {
            try {
                place_.emplace(device_);
                port_.emplace(port_config(), std::vector<port::BufferPool*>{&heard_});
            } catch (const core::RunError&) {
                if (!lossless() || std::chrono::steady_clock::now() > give_up) throw;
                place_.reset();
                std::this_thread::sleep_for(10 * link_look);
            }
        }
        while (!port_->link().up) {
            if (std::chrono::steady_clock::now() > give_up)
                throw core::RunError(
                    fmt::format("{}: its link is down, {} s after it was started: is the other side there?",
                                config::driver_of(device_), link_patience.count()));
            std::this_thread::sleep_for(link_look);
        }
    }
    static std::optional<KernelsWay> kernels_way(const SenderSpec& spec) {
        const std::string interface = port::interface_of(config::driver_of(spec.device), spec.device);
        if (!spec.device.empty() && interface.empty()) return std::nullopt;
        std::optional<KernelsWay> way(std::in_place, spec.to);
        if (!interface.empty() && way->neighbour.interface != interface)
            throw core::RunError(fmt::format("{} is reached by way of {}, not of {}", spec.to.address,
                                             way->neighbour.interface, interface));
        return way;
    }
    static std::string device_of(const SenderSpec& spec, const std::optional<KernelsWay>& kernel) {
        need_eal(spec.device);
        if (!spec.device.empty()) return spec.device;
        return fmt::format("net_af_packet{},iface={}", next_dpdk_id(), kernel->neighbour.interface);
    }
    /// `device` with what frames of this MTU need.
    static std::string checked(const std::string& device, std::uint32_t mtu) {
        if (mtu + 14 > room_bytes_max)
            throw core::RunError(fmt::format("dpdk sends frames of up to {} bytes", room_bytes_max));
        std::string complete = config::with_frame_room(device, mtu);
        if (const std::string problem = config::frame_room_problem(complete, mtu); !problem.empty())
            throw core::RunError(problem);
        return complete;
    }
    [[nodiscard]] std::uint32_t mtu() const { return std::max(1500U, spec_.bytes + headers_max); }
    [[nodiscard]] port::LivePortConfig port_config() const {
        port::LivePortConfig config = dpdk_port_config(device_, mtu());
        config.receives = false;
        config.rx_descriptors = 512;
        return config;
    }
    [[nodiscard]] bool lossless() const { return config::device_facts(device_).loss == config::LossTold::lossless; }

    /// Who has the address is asked for when the receiver is at work: it is who answers.
    [[nodiscard]] wire::FrameSpec frame_spec() {
        wire::FrameSpec frame{.vlan = {},
                              .src = address_number(kernel_ ? kernel_->neighbour.own.address : spec_.own_address),
                              .dst = address_number(spec_.to.address),
                              .sport = kernel_ ? kernel_->neighbour.own.port : source_port,
                              .dport = spec_.to.port};
        if (kernel_) {
            frame.source_mac = kernel_->neighbour.own_mac;
        } else if (rte_ether_addr own{}; ::rte_eth_macaddr_get(port_->id(), &own) == 0) {
            std::copy_n(static_cast<const std::uint8_t*>(own.addr_bytes), frame.source_mac.size(),
                        frame.source_mac.begin());
        }
        if (!mac_) {
            PortLink link(port_->id(), heard_);
            const std::atomic<bool> stop{false};
            mac_ = simulate::resolve_neighbour(frame, link, address_patience_s, stop);
            if (!mac_)
                throw RefusedError(fmt::format("dpdk: nobody on {} answers ARP for {} within {:g} s",
                                               config::driver_of(device_), spec_.to.address, address_patience_s));
        }
        frame.destination_mac = *mac_;
        return frame;
    }

    /// So many buffers are in hand, `count` or fewer.
    std::uint32_t ready(std::uint32_t count) noexcept {
        if (ready_ < count) {
            if (::rte_pktmbuf_alloc_bulk(pool_.get(), mbufs_.data() + ready_, count - ready_) == 0)
                ready_ = count;
            else
                ::rte_eth_tx_done_cleanup(port_->id(), 0, 0);
        }
        return std::min(ready_, count);
    }

    SenderSpec spec_;
    std::optional<KernelsWay> kernel_;
    std::string device_;
    port::BufferPool heard_;  // not of pool_: what comes would be written over bodies
    port::BufferPool pool_;
    std::optional<DpdkPlace> place_;
    std::optional<port::LivePort> port_;
    std::optional<port::MacAddress> mac_;
    std::optional<std::variant<FrameMaker, RoceFrameMaker>> maker_;
    std::array<rte_mbuf*, most> mbufs_{};
    std::uint32_t ready_ = 0;
    bool own_bodies_ = false;
    FrameKind frames_;  // that the receiver takes
};

}  // namespace

std::unique_ptr<Sender> open_dpdk_sender(const SenderSpec& spec) {
    return std::make_unique<DpdkSender>(spec);
}

}  // namespace weir::bench

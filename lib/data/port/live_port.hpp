// One DPDK port: configured, started, polled. Every return code is checked, because several PMDs crash when they are
// polled half configured. Answers ARP and ping for its address.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/device_facts.hpp"
#include "port/answer_sender.hpp"
#include "port/arp_responder.hpp"
#include "port/buffers.hpp"
#include "port/device_clock.hpp"
#include "port/interface_drops.hpp"
#include "port/port_setup.hpp"
#include "wire/packet_counter.hpp"

namespace weir::port {

class LivePort {
public:
    /// `pools`: of each queue, which must outlive the port. Throws core::RunError naming the step that failed and the
    /// driver's answer.
    LivePort(const LivePortConfig& config, std::vector<BufferPool*> pools);
    ~LivePort();
    LivePort(const LivePort&) = delete;
    LivePort& operator=(const LivePort&) = delete;

    /// Packets count from now on: what came earlier is thrown away, with the counts of what was missed of it, and all
    /// counts are those of this run. For the thread that starts the lcores, before it does. Some devices keep packets
    /// from the moment that they are started, and making the rest of a run takes so long that their queues may be full
    /// before anybody looks; all of them do between two runs.
    void begin();
    /// Between runs, when no lcore polls: answers ARP, neighbour solicitations and ping, so that senders do not forget
    /// where the port is, and throws away what comes. For one thread, many times a second.
    void idle() noexcept;

    struct Burst {
        std::uint32_t count = 0;
        bool bad_checksums = false;  ///< the device says so of at least one of them
    };
    /// Up to `packets.size()` frames. They arrived at `now`, or when the device says, but not before `floor`, which was
    /// promised to be over.
    Burst receive(std::uint16_t queue, std::span<Packet> packets, core::TimeNs now, core::TimeNs floor) noexcept;
    /// No packet that arrived before this comes any more, after a poll at `now`.
    [[nodiscard]] core::TimeNs over(core::TimeNs now) const noexcept { return now - stamp_lag_ns_; }
    /// Sends the answer that an ARP request, a neighbour solicitation or a ping is due; the frame stays the caller's.
    /// `kind` is what the frame is counted as.
    void answer(std::span<const std::byte> frame, wire::PacketCounter kind) noexcept;
    /// For answers to RoCE requests, on the lcore that the transmit queue belongs to. Null without answer_queues.
    [[nodiscard]] AnswerSender* answer_sender(std::uint16_t queue) noexcept {
        return queue < answer_senders_.size() ? &answer_senders_[queue] : nullptr;
    }

    struct DeviceCounters {
        std::uint64_t received = 0;
        /// Dropped by the device, or by the kernel in front of it: the queue was full. Nothing: nobody counts them.
        std::optional<std::uint64_t> missed;
        std::uint64_t missed_by_interface = 0;  ///< of them, those that the kernel's interface gave to nobody
        /// Dropped by the driver: the pool was empty. Nothing: it does not count packets.
        std::optional<std::uint64_t> no_buffer;
    };
    /// How long its queues may be left alone before they are half full, at rates that the device is good for.
    [[nodiscard]] core::TimeNs nap_ns() const noexcept {
        return kernel_device_ != nullptr ? kernel_device_->nap_ns() : nap_ns_default;
    }
    static constexpr core::TimeNs nap_ns_default = 50'000;
    /// For one thread.
    [[nodiscard]] DeviceCounters counters() const noexcept;
    [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
    /// What the driver would not do, in words; empty if nothing.
    [[nodiscard]] const std::string& remarks() const noexcept { return remarks_; }

    struct Link {
        bool up = false;
        std::uint32_t mbps = 0;  ///< 0: not known
    };
    /// For one thread.
    [[nodiscard]] Link link() const noexcept;
    /// Keeps the device's clock in step with the system's; for one thread, many times a second.
    void look() noexcept {
        if (clock_ != nullptr) clock_->look();
    }

    using Setup = PortSettings;
    [[nodiscard]] const Setup& setup() const noexcept { return setup_; }
    /// Null: packets get the time of the poll.
    [[nodiscard]] const DeviceClock* clock() const noexcept { return clock_.get(); }

    /// Answers that were sent, by what they answered, and those that were due and could not be.
    struct Answers {
        std::uint64_t arp = 0;
        std::uint64_t icmp = 0;  ///< ping, and neighbour solicitations
        std::uint64_t failed = 0;
    };
    [[nodiscard]] Answers answers() const noexcept;
    [[nodiscard]] std::uint16_t queues() const noexcept { return config_.queues; }
    /// Packets that were taken from a queue.
    [[nodiscard]] std::uint64_t taken(std::uint16_t queue) const noexcept {
        return taken_[queue].packets.load(std::memory_order_relaxed);
    }
    /// Packets whose stamp was not believed: before what was promised, or ahead of the system's clock.
    [[nodiscard]] std::uint64_t stamps_moved() const noexcept;

private:
    void let_other_side_leave() const noexcept;
    void forget_counts() noexcept;
    void answer_alone(std::span<const std::byte> frame, wire::PacketCounter kind) noexcept;

    LivePortConfig config_;
    std::vector<BufferPool*> pools_;  ///< per queue
    config::DeviceFacts facts_;
    PortAddress own_;
    mutable InterfaceDrops kernel_;  ///< asking changes it
    /// Packets taken from each queue, for drivers that forget; written by the lcore of the queue.
    struct alignas(core::cache_line_bytes) Taken {
        std::atomic<std::uint64_t> packets{0};
        std::atomic<std::uint64_t> stamps_moved{0};
    };
    std::unique_ptr<Taken[]> taken_;
    std::unique_ptr<KernelDevice> kernel_device_;
    std::unique_ptr<DeviceClock> clock_;
    std::unique_ptr<BufferPool> answer_pool_;
    std::vector<AnswerSender> answer_senders_;  ///< per transmit queue, if RoCE requests are answered
    core::TimeNs stamp_lag_ns_ = 0;
    std::uint16_t id_ = 0;
    // Written by the lcore that answers.
    std::atomic<std::uint64_t> answered_arp_{0};
    std::atomic<std::uint64_t> answered_icmp_{0};
    std::atomic<std::uint64_t> unanswered_{0};
    std::atomic<std::uint64_t> collided_{0};         ///< unanswered too: another lcore was at it
    std::atomic_flag answering_ = ATOMIC_FLAG_INIT;  ///< an lcore has the transmit queue
    Setup setup_;
    std::string remarks_;
    bool began_ = false;
    /// Of drivers that do not forget what they counted: before this run.
    std::uint64_t received_before_ = 0;
    std::uint64_t missed_before_ = 0;
    std::uint64_t no_buffer_before_ = 0;
};

/// The device found the checksum of this datagram wrong; one of 0 says that there is none (RFC 768).
[[nodiscard]] bool has_bad_checksum(const rte_mbuf& mbuf) noexcept;

}  // namespace weir::port

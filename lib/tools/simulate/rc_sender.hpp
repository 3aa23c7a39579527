// Sends the simulator's messages over reliable connections: one initiator per source, the faults of a bad network below
// them, answers from the link, pacing, and the account. Not here: the device (frame_link.hpp), and what an answer means
// (roce/initiator/initiator.hpp).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "port/arp_responder.hpp"
#include "roce/initiator/initiator.hpp"
#include "roce/perftest.hpp"
#include "simulate/frame_link.hpp"
#include "simulate/pacer.hpp"
#include "simulate/simulator.hpp"

namespace weir::simulate {

class RcSender {
public:
    struct Config {
        std::uint32_t window = 128;    ///< packets of a queue pair without an acknowledgement
        std::uint32_t depth = 8;       ///< events under way: what a source may be ahead of the slowest
        std::uint32_t ack_every = 64;  ///< as in roce::Initiator::Config, like the next three
        core::TimeNs timeout_ns = 67'108'864;
        std::uint32_t retries = 7;
        std::uint32_t rnr_retries = roce::Initiator::no_limit;
        std::uint32_t local_qp = 0;  ///< ours, of source 0; the others count on. 0: the number of the responder's
        /// What the exchange with the receiver said of its queue pairs, one per source; empty: as the simulator is
        /// configured.
        std::vector<roce::PerftestEnd> peers{};
        double drop_answers = 0;  ///< probability that an answer is thrown away
        Pacer::Config pace;       ///< events per second: of new messages. Gb/s: of all frames
        double duration_s = 0;    ///< begin no event after this; 0: no limit
        double grace_s = 5;       ///< after being asked to stop: to get what is under way acknowledged
        std::function<void(double seconds)> on_progress;  ///< about once a second
    };
    /// One queue pair. Frames: planned by the initiator - dropped + duplicated = emitted.
    struct Source {
        roce::Initiator::Account account;
        std::uint64_t dropped = 0;
        std::uint64_t duplicated = 0;
        std::uint64_t truncated = 0;
        std::uint64_t corrupted = 0;
        std::uint64_t emitted = 0;
        std::uint64_t frame_bytes = 0;
        std::uint64_t answers = 0;          ///< received; a part of them was then dropped
        std::uint64_t answers_dropped = 0;  ///< by drop_answers
        std::uint64_t notifications = 0;    ///< of congestion (CNP): counted, nothing slows down
        /// Messages from the first event on that were acknowledged: all but those after a failure.
        std::uint64_t acknowledged = 0;
        std::uint32_t next_psn = 0;  ///< where a next sender to the same queue pair goes on
        /// Why the queue pair is in error; acknowledged: it is not.
        roce::SendStatus status = roce::SendStatus::acknowledged;
    };
    struct Result {
        std::vector<Source> sources;
        std::uint64_t events = 0;               ///< begun
        std::uint64_t events_acknowledged = 0;  ///< the first so many, all their messages
        std::uint64_t message_bytes = 0;        ///< of what was acknowledged
        std::uint64_t bad_answers = 0;          ///< damaged on the way: iCRC, lengths
        std::uint64_t stray_answers = 0;        ///< acknowledgements for queue pairs that are not ours
        std::uint32_t stray_qp = 0;             ///< of the first of them
        std::uint32_t local_qp = 0;             ///< ours, of source 0
        std::uint64_t other_frames = 0;         ///< that are nothing to us
        Pacer pacer{{}};
        double seconds = 0;
        double cpu_seconds = 0;
        bool interrupted = false;

        [[nodiscard]] Source total() const noexcept;
    };

    /// Messages of a source that `depth` events under way are, at most. Throws core::UsageError where that is too many.
    [[nodiscard]] static std::uint32_t messages_under_way(const Simulator& simulator, std::uint32_t depth);

    /// Throws core::UsageError naming the option. `destination` is the responder's MAC address.
    RcSender(Simulator& simulator, FrameLink& link, const Config& config, const port::MacAddress& destination,
             const std::atomic<bool>& stop);

    /// Sends until every message is acknowledged or has failed; `stop` and the duration end what begins new ones.
    Result send();
    /// What has been counted so far, for on_progress.
    [[nodiscard]] const Result& so_far() const noexcept { return result_; }

private:
    struct Planned {
        std::uint64_t place;  ///< in the order of emission; where it is shared, the later packet goes first
        std::uint64_t sequence;
        std::uint32_t source;
        bool truncated;
        bool corrupted;
        roce::SendPacket packet;
    };
    struct Later {
        bool operator()(const Planned& a, const Planned& b) const noexcept {
            return a.place != b.place ? a.place > b.place : a.sequence < b.sequence;
        }
    };

    [[nodiscard]] roce::SendMessage message_of(std::uint32_t source, std::uint64_t index) const noexcept;
    [[nodiscard]] core::TimeNs elapsed_ns() const;
    void stop_if_asked(core::TimeNs now);
    bool post(core::TimeNs now);
    [[nodiscard]] std::uint64_t slowest() const noexcept;
    bool plan_next(core::TimeNs now) noexcept;
    void enqueue(const Planned& packet) noexcept;
    bool take_planned(core::TimeNs now, Planned& out) noexcept;
    bool fill(core::TimeNs now) noexcept;
    void write(const Planned& planned) noexcept;
    bool transmit() noexcept;
    bool receive(core::TimeNs now) noexcept;
    void hear(std::span<const std::byte> frame, core::TimeNs now) noexcept;
    void answer_neighbour(std::span<const std::byte> frame) noexcept;
    void collect() noexcept;
    [[nodiscard]] bool ended() const noexcept;
    void wait(core::TimeNs now);

    Simulator& simulator_;
    const std::uint32_t per_event_;  ///< messages of a source
    FrameLink& link_;
    Config config_;
    const std::atomic<bool>& stop_;
    std::vector<wire::FrameSpec> specs_;
    std::vector<roce::Initiator> initiators_;
    std::vector<std::uint64_t> posted_;  ///< messages, per source
    std::vector<std::uint64_t> done_;    ///< results taken, per source
    Result result_;
    std::vector<std::byte> scratch_;  ///< payload of one packet

    std::uint64_t begun_ = 0;       ///< events that may be posted
    std::uint64_t events_end_ = 0;  ///< so many and no more
    std::uint32_t turn_ = 0;
    std::vector<Planned> waiting_;  ///< heap, at most reorder + 2
    std::uint64_t sequence_ = 0;
    std::array<std::uint32_t, FrameLink::slots> bytes_{};
    std::uint32_t filled_ = 0;
    std::uint32_t sent_ = 0;
    core::TimeNs due_ns_ = 0;  ///< of the next frame, with a rate in Gb/s

    std::chrono::steady_clock::time_point start_;
    core::TimeNs stopped_ns_ = -1;
    std::uint32_t idle_ = 0;
};

}  // namespace weir::simulate

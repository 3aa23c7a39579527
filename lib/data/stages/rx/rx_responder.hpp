// Queue pairs that weir answers, on the rx lcore that owns them: the responder rules, what it accepts is assembled, and
// what it has to say goes to RxAnswers. A reliable connection's packets are assembled by the in-order receiver, WRITEs
// into memory by FrameMemory, and what is not repeated (UC, UD) by the listener, for it has gaps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "assemble/message_table.hpp"
#include "port/buffers.hpp"
#include "roce/listener/listener.hpp"
#include "roce/responder/frame_memory.hpp"
#include "roce/responder/in_order_receiver.hpp"
#include "roce/responder/queue_pair_control.hpp"
#include "roce/responder/responder.hpp"
#include "roce/responder/start_queue.hpp"
#include "stages/rx/rx_answers.hpp"
#include "stages/rx/rx_sources.hpp"
#include "steer/steering.hpp"

namespace weir::stages {

class RxResponder {
public:
    using TimeNs = core::TimeNs;
    struct Config {
        roce::Responder::Config responder;
        std::vector<roce::MessageSource> messages{};  ///< of all sources of `responder`
        roce::InOrderReceiver::Config in_order{};     ///< its sources: those that are reliable connections
        std::uint32_t sources = 0;                    ///< of the run
        bool waits_for_room = false;                  ///< a replay takes packets only when there is room for them
        TimeNs timeout_ns = 0;
        bool touch = false;                             ///< make memory resident at once
        roce::QueuePairControl* queue_pairs = nullptr;  ///< from where they are connected during the run; may be null
    };

    /// Everything that is referred to outlives this object. `listener` may be null if all sources are reliable
    /// connections.
    RxResponder(Config config, roce::Listener* listener, assemble::MessageTable& table, RxSources& sources,
                RxAnswers& answers);

    /// Whether packets of this source come here.
    [[nodiscard]] bool serves(std::uint32_t source) const noexcept { return responder_.serves(source); }
    /// Takes over a packet of a source that is served: answers it, and assembles or counts it. `verdict` is
    /// decode_roce's: ok, malformed_roce_length or not_for_us_roce_request.
    void respond(const port::Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
                 const wire::RocePacket& roce, wire::Verdict verdict) noexcept;

    /// Does what a thread wants that connects or disconnects a queue pair; returns how many commands it took.
    [[nodiscard]] std::size_t take_command(TimeNs now) noexcept;
    /// Messages and frames in memory whose end is overdue end.
    void expire(TimeNs now) noexcept;
    void expire_messages(TimeNs now) noexcept { in_order_.expire(now); }
    /// End of run, or of a pass: all messages and frames in memory end.
    void finish(TimeNs now) noexcept;
    /// The same packets come once more: every queue pair is as it was configured.
    void begin_pass(TimeNs now) noexcept;
    /// When the message was begun that has been collected for longest; the latest time there is, if there is none.
    [[nodiscard]] TimeNs oldest_ns() const noexcept;
    void evict_oldest(TimeNs now) noexcept;

    /// For any thread.
    [[nodiscard]] roce::Responder::Status status(std::uint32_t source) const noexcept;
    /// Whether the source's packets are assembled in order, and not by the listener.
    [[nodiscard]] bool is_in_order(std::uint32_t source) const noexcept { return in_order_.serves(source); }
    [[nodiscard]] roce::PsnCounts::Values psn_counts(std::uint32_t source) const noexcept {
        return in_order_.psn_counts(source);
    }

private:
    struct Held {
        port::Packet packet;
        wire::Datagram datagram;
        wire::RocePacket roce;
        wire::Verdict verdict{};
    };
    using Starts = roce::StartQueue<Held>;

    [[nodiscard]] bool hold(const port::Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
                            const wire::RocePacket& roce, wire::Verdict verdict) noexcept;
    void take(const port::Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
              const wire::RocePacket& roce, wire::Verdict verdict, bool answers = true) noexcept;
    void begin_with(const port::Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
                    const wire::RocePacket& roce, wire::Verdict verdict, std::uint32_t start) noexcept;
    void take_held(std::uint32_t source, std::uint32_t start, std::optional<std::uint32_t> end, TimeNs now,
                   bool answers = true) noexcept;
    void reject_held(std::uint32_t source) noexcept;
    void end_held(std::uint32_t source, TimeNs now) noexcept;
    [[nodiscard]] TimeNs oldest_held_ns() const noexcept;
    [[nodiscard]] roce::Room room_for(std::uint32_t source, const wire::RocePacket& packet,
                                      wire::Verdict verdict) noexcept;
    [[nodiscard]] bool continues_frame(std::uint32_t source, const wire::RocePacket& packet) const noexcept;
    void assemble(const port::Packet& packet, std::uint32_t source, const wire::RocePacket& roce,
                  const roce::Ruling& ruling) noexcept;
    void forget_peer(std::uint32_t source, TimeNs now, std::optional<std::uint32_t> first_psn = {}) noexcept;
    void expire_others(std::uint32_t source, TimeNs now) noexcept;
    void skip(std::uint32_t source, const wire::RocePacket& roce, TimeNs now) noexcept;
    void note(std::uint32_t source, const wire::RocePacket& roce, TimeNs now) noexcept;
    void publish(std::uint32_t source) noexcept;

    Config config_;
    roce::Listener* listener_;
    assemble::MessageTable& table_;
    RxSources& sources_;
    RxAnswers& answers_;
    roce::InOrderReceiver in_order_;
    std::unique_ptr<roce::FrameMemory> frames_;       ///< only where WRITEs go into memory
    std::vector<Starts> starts_;                      ///< by source; reliable connections whose first PSN is unknown
    std::uint32_t holding_ = 0;                       ///< how many of them are not empty
    roce::Responder responder_;                       ///< after `frames_`, which tells it what is lent
    std::vector<std::atomic<std::uint64_t>> status_;  ///< per source, packed
};

}  // namespace weir::stages

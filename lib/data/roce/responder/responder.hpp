// The RoCEv2 responder: a gate in front of what makes messages. For each packet of a queue pair that weir answers it
// rules whether the packet goes on, and what is sent back. It keeps no payload and no buffers: what it lets through
// goes to the InOrderReceiver (RC) or to the Listener (UC, UD) and makes messages there; what it refuses ends in the
// counter that it names.
//
// An acknowledgement means: admitted to reserved event memory. The caller says with each packet whether there is room,
// and what was let through with room is never refused for lack of it.
//
// Each rule and where it was learnt: docs/reference/ROCE_ANSWERS.md. In short: Linux
// drivers/infiniband/sw/rxe/rxe_resp.c, except where a detector readout needs something else, which the page says.
#pragma once

#include <cstdint>
#include <vector>

#include "core/units.hpp"
#include "roce/queue_pair.hpp"
#include "roce/responder/answer_counter.hpp"
#include "wire/fragment.hpp"
#include "wire/packet_counter.hpp"
#include "wire/roce.hpp"
#include "wire/roce_answer.hpp"

namespace weir::roce {

using core::TimeNs;

/// What the event memory has room for at the moment.
struct Room {
    bool packet = true;   ///< one more packet of a message that has been admitted
    bool message = true;  ///< one more message, and the event that it may open
};

/// What becomes of a packet.
struct Ruling {
    /// in_flight: it goes on to become part of a message. Anything else: it ends here.
    wire::PacketCounter counter = wire::PacketCounter::in_flight;
    /// What `answer` is counted as; count_: nothing is sent.
    AnswerCounter sent = AnswerCounter::count_;
    wire::RoceAnswer answer;
    /// Besides, the peer is told that the path is congested (then `notification` is sent).
    bool notify = false;
    wire::RoceAnswer notification;
    /// Set for an accepted WRITE into backed memory, which is FrameMemory's: where its payload goes.
    const Region* region = nullptr;
    std::uint64_t va = 0;
    /// The queue pair has just gone to error: what its peer had begun ends now.
    bool failed = false;

    [[nodiscard]] bool accepted() const noexcept { return counter == wire::PacketCounter::in_flight; }
    [[nodiscard]] bool answers() const noexcept { return sent != AnswerCounter::count_; }
};

class Responder {
public:
    struct SourceConfig {
        std::uint32_t source = 0;  ///< run-wide source id
        QueuePair queue_pair;
        bool ready = true;  ///< false: in reset until it is configured
    };
    struct Config {
        std::vector<SourceConfig> sources;
    };

    explicit Responder(const Config& config);

    /// Whether packets of this source come here first.
    [[nodiscard]] bool serves(std::uint32_t source) const noexcept {
        return source < slot_by_source_.size() && slot_by_source_[source] != no_slot;
    }
    /// Rules on a packet of a source that it serves. `decoded` is decode_roce's answer: ok, malformed_roce_length or
    /// not_for_us_roce_request; anything else does not belong here.
    [[nodiscard]] Ruling rule(std::uint32_t source, const wire::RocePacket& packet, wire::Verdict decoded, Room room,
                              TimeNs now) noexcept;

    /// Where a WRITE goes that begins with this packet. Null: to no region of its queue pair, or it is no such packet.
    [[nodiscard]] const Region* region_of(std::uint32_t source, const wire::RocePacket& packet) const noexcept;

    /// A packet that would decide, alone, at which PSN the peer of a reliable connection begins, because nobody said
    /// it: rule() believes it. Who wants a second witness first holds it back (start_queue.hpp).
    [[nodiscard]] bool decides_start(std::uint32_t source, const wire::RocePacket& packet,
                                     wire::Verdict decoded) const noexcept;
    /// Whether the PSN at which the peer begins may still turn out to be this one.
    [[nodiscard]] bool may_begin_at(std::uint32_t source, std::uint32_t psn) const noexcept;
    /// It does, and the peer has this address.
    void begin_at(std::uint32_t source, std::uint32_t psn, std::uint64_t address) noexcept;

    /// Connects, or connects anew. What makes its messages has to forget the source at the same time.
    void configure(std::uint32_t source, const QueuePair& queue_pair) noexcept;
    /// Disconnects. Likewise.
    void reset(std::uint32_t source) noexcept;
    /// The same packets come once more (a looped capture): every queue pair is as it was configured.
    void begin_pass() noexcept;

    struct Status {
        QueuePairState state = QueuePairState::reset;
        bool psn_known = false;
        std::uint32_t psn = 0;  ///< that is expected next
        std::uint32_t msn = 0;  ///< messages completed
    };
    [[nodiscard]] Status status(std::uint32_t source) const noexcept;

private:
    static constexpr std::uint32_t no_slot = 0xffffffff;
    enum class Collecting : std::uint8_t { nothing, send, write };
    /// How far the message is that is being collected.
    struct Progress {
        Collecting kind = Collecting::nothing;
        std::uint32_t dma_length = 0;
        std::uint64_t bytes = 0;
        const Region* region = nullptr;  ///< WRITE: where it goes
        std::uint64_t va = 0;            ///< and from where on
        void add(const wire::RocePacket& packet) noexcept;
    };
    struct State {
        QueuePair config;
        QueuePairState state = QueuePairState::reset;
        bool psn_known = false;
        bool start_assumed =
            false;  ///< rc: nobody said at which PSN the peer starts, the first message came at `start`
        bool start_answered = false;  ///< rc: the peer has been told of a PSN, so it takes all before for delivered
        bool nak_sent = false;        ///< until the expected packet comes, what is ahead of it is not answered again
        bool dropping = false;        ///< uc: until the next message starts
        std::uint32_t psn = 0;        ///< expected
        std::uint32_t start = 0;
        std::uint32_t msn = 0;
        std::uint32_t path_mtu = 0;  ///< 0: not seen yet
        Progress progress;
        std::uint32_t unacknowledged = 0;  ///< packets
        std::uint32_t repeated = 0;        ///< uc: packets in a row that have been before, from the start of a message
        std::uint32_t repeated_next = 0;
        Progress repeated_progress;
        bool peer_known = false;
        std::uint64_t peer_address = 0;
        bool notified = false;
        TimeNs notified_ns = 0;
    };

    [[nodiscard]] static wire::PacketCounter admission(const State& qp, const wire::RocePacket& packet) noexcept;
    static void start_at(State& qp, std::uint32_t psn) noexcept;
    [[nodiscard]] Ruling rule_rc(State& qp, const wire::RocePacket& packet, wire::Verdict decoded, Room room) noexcept;
    [[nodiscard]] static bool is_new_start(State& qp, const wire::RocePacket& packet, Ruling& ruling) noexcept;
    [[nodiscard]] Ruling rule_uc(State& qp, const wire::RocePacket& packet, wire::Verdict decoded) noexcept;
    [[nodiscard]] Ruling rule_ud(const State& qp, const wire::RocePacket& packet, wire::Verdict decoded) noexcept;
    [[nodiscard]] Ruling rule_repeated(State& qp, const wire::RocePacket& packet, wire::Verdict decoded) noexcept;
    /// `progress` learns where a WRITE goes that starts here.
    [[nodiscard]] static wire::PacketCounter check(const State& qp, Progress& progress, const wire::RocePacket& packet,
                                                   wire::Verdict decoded) noexcept;
    [[nodiscard]] static wire::PacketCounter check_write(const State& qp, Progress& progress,
                                                         const wire::RocePacket& packet) noexcept;
    [[nodiscard]] static wire::PacketCounter check_message(const State& qp, std::uint64_t bytes_before,
                                                           const wire::RocePacket& packet) noexcept;
    [[nodiscard]] static bool place(const Progress& progress, const wire::RocePacket& packet, Ruling& ruling) noexcept;
    static void accept(State& qp, const wire::RocePacket& packet) noexcept;
    static void answer(const State& qp, std::uint8_t syndrome, std::uint32_t psn, AnswerCounter as,
                       Ruling& ruling) noexcept;
    static void fail(State& qp, const wire::RocePacket& packet, Ruling& ruling) noexcept;
    static void notify(State& qp, const wire::RocePacket& packet, TimeNs now, Ruling& ruling) noexcept;

    std::vector<std::uint32_t> slot_by_source_;
    std::vector<State> states_;
};

}  // namespace weir::roce

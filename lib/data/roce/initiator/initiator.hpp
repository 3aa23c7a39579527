// The sending side of one RoCEv2 queue pair: messages become packets, and with a reliable connection (RC) answers
// decide what is sent again. Knows no device, no clock and no payload: the caller asks for the next packet, fills in
// the bytes that it names, and hands in what was answered; so bytes are made again rather than kept.
//
// Where a rule comes from is said beside it. "rxe" is Linux, drivers/infiniband/sw/rxe: rxe_req.c (what is sent),
// rxe_comp.c (what answers mean). Read there and not copied from there.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "core/units.hpp"
#include "roce/psn.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

using core::TimeNs;

/// How a message of an initiator ended.
enum class SendStatus : std::uint8_t {
    acknowledged,          ///< RC: the responder has it, whole
    sent,                  ///< UC, UD: on its way; nobody will say more
    retries_exceeded,      ///< RC: sent again as often as allowed, and never answered
    rnr_retries_exceeded,  ///< RC: the responder was not ready more often than allowed
    invalid_request,       ///< RC: refused by the responder (NAK 0x61): the queue pair is in error
    access_error,          ///< RC: refused, key, bounds or permission (NAK 0x62)
    operation_error,       ///< RC: refused, the responder could not (NAK 0x63, and codes without a meaning)
    flushed,               ///< after a message that failed, or given up by abort()
};
[[nodiscard]] const char* to_string(SendStatus status) noexcept;

/// A message to be sent.
struct SendMessage {
    std::uint64_t id = 0;  ///< the caller's name for it
    std::uint32_t bytes = 0;
    std::optional<std::uint32_t> immediate{};
    std::uint64_t va = 0;  ///< WRITE: where it goes
};

/// A packet that is to be sent now. `packet` is whole but for `payload`: bytes `offset` .. `offset + packet.bytes` of
/// the message.
struct SendPacket {
    wire::RocePacket packet;
    std::uint64_t id = 0;
    std::uint32_t offset = 0;
    bool again = false;  ///< it has been sent before
};

struct SendResult {
    std::uint64_t id = 0;
    SendStatus status = SendStatus::flushed;
};

/// What an ACKNOWLEDGE packet says: its PSN, and its AETH (wire/roce.hpp).
struct Acknowledgement {
    std::uint32_t psn = 0;  ///< 24 bits
    std::uint8_t syndrome = 0;
    std::uint32_t msn = 0;  ///< 24 bits: messages that the responder has completed
};

/// Messages that the 5 credit bits of an ACK allow beyond its MSN; nothing: it does not say (0x1f).
[[nodiscard]] std::optional<std::uint32_t> credits_of(std::uint8_t code) noexcept;

class Initiator {
public:
    /// rnr_retries: wait for ever (verbs and rxe have it so).
    static constexpr std::uint32_t no_limit = 7;
    static constexpr std::uint32_t window_max = 1U << 22;

    struct Config {
        wire::RoceTransport service = wire::RoceTransport::rc;  ///< rc, uc or ud
        bool is_write = false;                                  ///< WRITE, not SEND; not for ud
        std::uint32_t qp = 0;                                   ///< the responder's
        std::uint32_t source_qp = 0;                            ///< UD: ours, for the DETH
        std::uint32_t psn = 0;                                  ///< of the first packet, 24 bits
        std::uint32_t path_mtu = 4096;
        std::uint32_t rkey = 0;
        std::uint32_t qkey = 0;
        /// RC: packets on the way without an acknowledgement, 1 to window_max (rxe: 128).
        std::uint32_t window = 128;
        std::uint32_t messages_max = 64;  ///< that can be posted at once, and whose results were not taken yet
        /// RC: an acknowledgement is asked for at the end of a message, at the end of the window, and after so many
        /// packets at the latest (rxe: 64).
        std::uint32_t ack_every = 64;
        /// RC: from asking for an acknowledgement until the packets are sent again. Doubled by every further one that
        /// brings nothing, up to 16 times as long. 67 ms is what verbs programs ask for (4.096 us x 2^14).
        TimeNs timeout_ns = 67'108'864;
        /// RC: times that packets are sent again without any progress, by time-outs and NAKs together.
        std::uint32_t retries = 7;
        std::uint32_t rnr_retries = no_limit;  ///< 0 to 6; no_limit: for ever
    };

    /// What happened, for the sender's account. packets = first sendings + retransmitted.
    struct Account {
        std::uint64_t posted = 0;
        std::uint64_t acknowledged = 0;  ///< RC
        std::uint64_t sent = 0;          ///< UC, UD: all their packets went out
        std::uint64_t failed = 0;        ///< flushed ones too
        std::uint64_t packets = 0;
        std::uint64_t retransmitted = 0;
        std::uint64_t acks = 0;           ///< that brought something
        std::uint64_t stale_answers = 0;  ///< of any kind, for what is acknowledged, or is being sent again, already
        std::uint64_t ghost_answers = 0;  ///< for packets that were never sent
        std::uint64_t sequence_naks = 0;  ///< that made us send again
        std::uint64_t rnr_waits = 0;
        std::uint64_t timeouts = 0;
        std::uint64_t fatal_naks = 0;
        std::uint64_t credit_waits = 0;  ///< messages that went out with one packet first, because no credit was left
    };

    explicit Initiator(const Config& config);

    /// False: no room (messages_max), or the queue pair is in error. UD: at most path_mtu bytes.
    bool post(const SendMessage& message) noexcept;
    /// The packet that is to be sent now; false if there is none. Then next_ns() says when to ask again.
    bool next(TimeNs now, SendPacket& out) noexcept;
    /// RC: an answer to one of our packets.
    void answered(const Acknowledgement& answer, TimeNs now) noexcept;
    /// When time alone can bring the next packet or failure; `never` if only an answer or a message can.
    static constexpr TimeNs never = std::numeric_limits<TimeNs>::max();
    [[nodiscard]] TimeNs next_ns() const noexcept;
    /// Takes the results one by one, in the order of posting. False: none.
    bool take(SendResult& out) noexcept;
    /// Gives up: what was not acknowledged is flushed, and the queue pair is in error.
    void abort() noexcept;

    [[nodiscard]] bool in_error() const noexcept { return in_error_; }
    /// Nothing posted that has no result.
    [[nodiscard]] bool idle() const noexcept { return pending_ == 0; }
    [[nodiscard]] const Account& account() const noexcept { return account_; }
    [[nodiscard]] const Config& config() const noexcept { return config_; }
    /// The oldest packet without an acknowledgement, and the one after the last that was ever sent.
    [[nodiscard]] Psn unacknowledged() const noexcept { return unacknowledged_; }
    [[nodiscard]] Psn sent_end() const noexcept { return sent_end_; }

private:
    struct Pending {
        SendMessage message;
        Psn first = 0;
        std::uint32_t packets = 0;
        std::uint64_t consumes = 0;  ///< receive requests that the responder needs up to and with this message
        bool limited = false;        ///< its first packet went out without credit
    };
    static constexpr TimeNs at_once = std::numeric_limits<TimeNs>::min();

    [[nodiscard]] Pending& at(std::uint32_t index) noexcept { return ring_[(head_ + index) % ring_.size()]; }
    [[nodiscard]] bool is_rc() const noexcept { return config_.service == wire::RoceTransport::rc; }
    [[nodiscard]] bool may_send(Pending& pending) noexcept;
    void make(const Pending& pending, SendPacket& out) const noexcept;
    void expire(TimeNs now) noexcept;
    bool accept(Psn up_to) noexcept;
    void go_back() noexcept;
    void note_credits(const Acknowledgement& answer) noexcept;
    void sequence_nak() noexcept;
    void not_ready(std::uint8_t syndrome, TimeNs now) noexcept;
    void fail(SendStatus status) noexcept;
    void finish_head(SendStatus status) noexcept;
    void restart_timer(TimeNs now) noexcept;

    Config config_;
    Account account_;
    std::vector<Pending> ring_;
    std::uint32_t head_ = 0;     ///< of ring_: the oldest message without a result
    std::uint32_t pending_ = 0;  ///< messages from head_ on
    std::uint32_t cursor_ = 0;   ///< from head_: the message that next_ belongs to
    std::vector<SendResult> results_;
    std::uint32_t results_head_ = 0;
    std::uint32_t results_count_ = 0;

    Psn unacknowledged_ = 0;
    Psn next_ = 0;
    Psn sent_end_ = 0;
    Psn posted_end_ = 0;
    Psn ack_requested_end_ = 0;  ///< after the last packet that asked for an acknowledgement
    std::uint32_t since_request_ = 0;
    std::uint32_t attempts_ = 0;      ///< without progress
    std::uint32_t rnr_attempts_ = 0;  ///< without progress
    bool recovering_ = false;         ///< unacknowledged_ is being sent again, or waited for
    bool in_error_ = false;
    TimeNs deadline_ns_ = never;
    TimeNs ready_ns_ = at_once;  ///< after an RNR NAK: not before

    std::uint64_t consumed_ = 0;  ///< by all that was posted
    std::uint64_t credit_limit_ = std::numeric_limits<std::uint64_t>::max();
    std::optional<std::uint32_t> msn_base_;  ///< the responder's MSN when it had nothing of ours
};

}  // namespace weir::roce

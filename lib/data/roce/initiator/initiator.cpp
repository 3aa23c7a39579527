#include "roce/initiator/initiator.hpp"

#include <algorithm>
#include <cassert>

#include "roce/queue_pair.hpp"
#include "wire/encode.hpp"

namespace weir::roce {

namespace {

constexpr std::uint32_t backoff_shift_max = 4;

// AETH syndrome: the kind in bits 7..5.
constexpr std::uint8_t kind_of(std::uint8_t syndrome) {
    return syndrome >> 5;
}
constexpr std::uint8_t kind_ack = kind_of(wire::roce_ack_unlimited);
constexpr std::uint8_t kind_rnr = kind_of(wire::roce_rnr_nak);
constexpr std::uint8_t code_bits = 0x1f;

/// `psn` as far from `near` as 24 bits can say (wire-formats: signed difference, half range 2^23).
Psn extend(std::uint32_t psn, Psn near) noexcept {
    return near + psn_distance(psn, static_cast<std::uint32_t>(near));
}

}  // namespace

const char* to_string(SendStatus status) noexcept {
    switch (status) {
        case SendStatus::acknowledged:
            return "acknowledged";
        case SendStatus::sent:
            return "sent";
        case SendStatus::retries_exceeded:
            return "retries_exceeded";
        case SendStatus::rnr_retries_exceeded:
            return "rnr_retries_exceeded";
        case SendStatus::invalid_request:
            return "invalid_request";
        case SendStatus::access_error:
            return "access_error";
        case SendStatus::operation_error:
            return "operation_error";
        case SendStatus::flushed:
            return "flushed";
    }
    return "?";
}

std::optional<std::uint32_t> credits_of(std::uint8_t code) noexcept {
    code &= code_bits;
    if (code == code_bits) return std::nullopt;
    if (code < 4) return code;
    // 4, 6, 8, 12, 16, 24, ... 32768: powers of two and, between them, one and a half times as much.
    const std::uint32_t power = 1U << (code / 2);
    return code % 2 == 0 ? power : power + power / 2;
}

Initiator::Initiator(const Config& config)
    : config_(config), ring_(config.messages_max), results_(config.messages_max) {
    config_.window = std::clamp(config_.window, 1U, window_max);
    config_.ack_every = std::max(config_.ack_every, 1U);
    unacknowledged_ = next_ = sent_end_ = posted_end_ = ack_requested_end_ = config_.psn & psn_mask;
}

bool Initiator::post(const SendMessage& message) noexcept {
    if (in_error_ || pending_ + results_count_ == ring_.size()) return false;
    assert(config_.service != wire::RoceTransport::ud || message.bytes <= config_.path_mtu);
    Pending& pending = at(pending_++);
    pending.message = message;
    pending.limited = false;
    pending.first = posted_end_;
    pending.packets = std::max(1U, (message.bytes + config_.path_mtu - 1) / config_.path_mtu);
    // A SEND, and an immediate, use up a receive request of the responder.
    consumed_ += !config_.is_write || message.immediate.has_value() ? 1 : 0;
    pending.consumes = consumed_;
    posted_end_ += pending.packets;
    ++account_.posted;
    return true;
}

/// RC: whether the packet next_ may go. UC and UD know neither window nor credits.
bool Initiator::may_send(Pending& pending) noexcept {
    if (!is_rc()) return true;
    if (next_ - unacknowledged_ >= config_.window) return false;
    const bool credit = pending.consumes <= credit_limit_;
    if (next_ > pending.first) return !pending.limited || credit || unacknowledged_ > pending.first;
    // Without credit one packet of a message may go, alone; its acknowledgement lets the rest of it go.
    if (!credit && next_ != unacknowledged_) return false;
    account_.credit_waits += !credit && !pending.limited ? 1 : 0;
    pending.limited = !credit;
    return true;
}

void Initiator::make(const Pending& pending, SendPacket& out) const noexcept {
    const auto index = static_cast<std::uint32_t>(next_ - pending.first);
    const SendMessage& message = pending.message;
    wire::RocePacket& packet = out.packet;
    packet = {};
    packet.opcode =
        wire::roce_opcode(config_.service, config_.is_write, index, pending.packets, message.immediate.has_value());
    packet.qp = config_.qp;
    packet.psn = static_cast<std::uint32_t>(next_) & psn_mask;
    packet.transport = config_.service;
    packet.is_write = config_.is_write;
    out.offset = index * config_.path_mtu;
    packet.bytes = std::min(config_.path_mtu, message.bytes - out.offset);
    const bool last = index + 1 == pending.packets;
    packet.place = last ? (index == 0 ? wire::RocePlace::only : wire::RocePlace::last)
                        : (index == 0 ? wire::RocePlace::first : wire::RocePlace::middle);
    packet.has_immediate = last && message.immediate.has_value();
    packet.immediate = message.immediate.value_or(0);
    packet.va = message.va;
    packet.rkey = config_.rkey;
    packet.dma_length = message.bytes;
    packet.source_qp = config_.source_qp;
    packet.qkey = config_.qkey;
    const bool window_ends = next_ + 1 - unacknowledged_ >= config_.window;
    const bool credit_ends = pending.limited && index == 0;
    packet.ack_request = is_rc() && (last || window_ends || credit_ends || since_request_ + 1 >= config_.ack_every);
    out.id = message.id;
    out.again = next_ < sent_end_;
}

bool Initiator::next(TimeNs now, SendPacket& out) noexcept {
    expire(now);
    if (in_error_ || cursor_ == pending_ || now < ready_ns_) return false;
    ready_ns_ = at_once;
    Pending& pending = at(cursor_);
    if (!may_send(pending)) return false;
    make(pending, out);
    ++account_.packets;
    account_.retransmitted += out.again ? 1 : 0;
    ++next_;
    sent_end_ = std::max(sent_end_, next_);
    const bool message_ends = next_ == pending.first + pending.packets;
    if (!is_rc()) {
        // Nobody answers: what has gone is done.
        unacknowledged_ = next_;
        if (message_ends) finish_head(SendStatus::sent);
        return true;
    }
    cursor_ += message_ends ? 1 : 0;
    ++since_request_;
    if (out.packet.ack_request) {
        since_request_ = 0;
        ack_requested_end_ = next_;
        if (deadline_ns_ == never) restart_timer(now);
    }
    return true;
}

/// The time runs while an acknowledgement is owed, and packets are not held back anyway.
void Initiator::restart_timer(TimeNs now) noexcept {
    const bool owed = ack_requested_end_ > unacknowledged_ && next_ > unacknowledged_;
    deadline_ns_ = owed ? now + (config_.timeout_ns << std::min(attempts_, backoff_shift_max)) : never;
}

void Initiator::expire(TimeNs now) noexcept {
    if (now < deadline_ns_) return;
    ++account_.timeouts;
    if (attempts_++ >= config_.retries) return fail(SendStatus::retries_exceeded);
    go_back();
}

TimeNs Initiator::next_ns() const noexcept {
    const bool waits = ready_ns_ != at_once && cursor_ < pending_;
    return in_error_ ? never : std::min(deadline_ns_, waits ? ready_ns_ : never);
}

/// Everything from the oldest packet without an acknowledgement is sent again (rxe: req_retry).
void Initiator::go_back() noexcept {
    next_ = unacknowledged_;
    cursor_ = 0;
    since_request_ = 0;
    recovering_ = true;
    ack_requested_end_ = unacknowledged_;
    deadline_ns_ = never;  // until the first of them asks for an acknowledgement
}

/// Packets before `up_to` have arrived. True if that was not known.
bool Initiator::accept(Psn up_to) noexcept {
    if (up_to <= unacknowledged_) return false;
    unacknowledged_ = up_to;
    attempts_ = rnr_attempts_ = 0;
    recovering_ = false;
    ready_ns_ = at_once;
    while (pending_ > 0 && at(0).first + at(0).packets <= up_to) finish_head(SendStatus::acknowledged);
    if (next_ < up_to) {
        next_ = up_to;
        cursor_ = 0;  // the head has not ended, or begins here
    }
    return true;
}

void Initiator::finish_head(SendStatus status) noexcept {
    results_[(results_head_ + results_count_++) % results_.size()] = {at(0).message.id, status};
    switch (status) {
        case SendStatus::acknowledged:
            ++account_.acknowledged;
            break;
        case SendStatus::sent:
            ++account_.sent;
            break;
        default:
            ++account_.failed;
    }
    head_ = (head_ + 1) % static_cast<std::uint32_t>(ring_.size());
    --pending_;
    cursor_ -= cursor_ > 0 ? 1 : 0;
}

void Initiator::fail(SendStatus status) noexcept {
    in_error_ = true;
    deadline_ns_ = never;
    cursor_ = 0;
    for (bool first = true; pending_ > 0; first = false) finish_head(first ? status : SendStatus::flushed);
}

void Initiator::abort() noexcept {
    fail(SendStatus::flushed);
}

bool Initiator::take(SendResult& out) noexcept {
    if (results_count_ == 0) return false;
    out = results_[results_head_];
    results_head_ = (results_head_ + 1) % static_cast<std::uint32_t>(results_.size());
    --results_count_;
    return true;
}

/// The limit counts from the responder's MSN. It may have served others before us, so what its first answer says of our
/// messages tells where it began.
void Initiator::note_credits(const Acknowledgement& answer) noexcept {
    const std::optional<std::uint32_t> credits = credits_of(answer.syndrome);
    if (!credits) {
        credit_limit_ = std::numeric_limits<std::uint64_t>::max();
        return;
    }
    // All messages count in the MSN, those that use up a receive request in the limit; they are the same or all but the
    // plain WRITEs, for which there is no limit.
    const auto done = static_cast<std::uint32_t>(account_.acknowledged);
    if (!msn_base_) msn_base_ = (answer.msn - done) & psn_mask;
    const Psn completed = extend((answer.msn - *msn_base_) & psn_mask, static_cast<Psn>(account_.acknowledged));
    credit_limit_ = static_cast<std::uint64_t>(std::max<Psn>(completed, 0)) + *credits;
}

/// rxe: a NAK acknowledges what is before it; while packets are sent again already, further ones change nothing.
void Initiator::sequence_nak() noexcept {
    if (recovering_) {
        ++account_.stale_answers;
        return;
    }
    ++account_.sequence_naks;
    if (attempts_++ >= config_.retries) return fail(SendStatus::retries_exceeded);
    go_back();
}

void Initiator::not_ready(std::uint8_t syndrome, TimeNs now) noexcept {
    if (now < ready_ns_) {
        ++account_.stale_answers;
        return;
    }
    ++account_.rnr_waits;
    if (config_.rnr_retries < no_limit && rnr_attempts_++ >= config_.rnr_retries)
        return fail(SendStatus::rnr_retries_exceeded);
    // What follows the refused packet on the wire will be answered as out of sequence; that is known then.
    go_back();
    ready_ns_ = now + TimeNs{rnr_timer_us(syndrome & code_bits)} * 1000;
}

void Initiator::answered(const Acknowledgement& answer, TimeNs now) noexcept {
    if (in_error_ || !is_rc()) return;
    const Psn psn = extend(answer.psn, unacknowledged_);
    if (psn >= sent_end_) {
        ++account_.ghost_answers;
        return;
    }
    if (psn < unacknowledged_) {
        ++account_.stale_answers;
        return;
    }
    const std::uint8_t kind = kind_of(answer.syndrome);
    // Whatever it is, it acknowledges what is before it (rxe: a NAK of any kind completes earlier messages).
    const bool progress = accept(kind == kind_ack ? psn + 1 : psn);
    if (kind == kind_ack) {
        ++account_.acks;
        note_credits(answer);
        restart_timer(now);
        return;
    }
    if (kind == kind_rnr) return not_ready(answer.syndrome, now);
    if (progress) restart_timer(now);
    if (answer.syndrome == wire::roce_nak_sequence) return sequence_nak();
    ++account_.fatal_naks;
    fail(answer.syndrome == wire::roce_nak_invalid_request ? SendStatus::invalid_request
         : answer.syndrome == wire::roce_nak_remote_access ? SendStatus::access_error
                                                           : SendStatus::operation_error);
}

}  // namespace weir::roce

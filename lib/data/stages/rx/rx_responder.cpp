#include "stages/rx/rx_responder.hpp"

#include <algorithm>

namespace weir::stages {

using port::Packet;
using wire::PacketCounter;

namespace {

/// Whether a packet that ended like this was the connection's, and does not come again for it: its PSN has been used.
bool is_of_connection(PacketCounter counter) noexcept {
    switch (counter) {
        case PacketCounter::duplicate:
        case PacketCounter::no_room:
        case PacketCounter::roce_gap:
        case PacketCounter::roce_access:
        case PacketCounter::roce_operation:
        case PacketCounter::roce_invalid_request:
            return true;
        default:
            return false;
    }
}

/// Fills in the configuration's regions that are in memory; null if there are none.
std::unique_ptr<roce::FrameMemory> make_frames(RxResponder::Config& config, assemble::MessageTable& table) {
    if (std::ranges::none_of(config.responder.sources, [](const roce::Responder::SourceConfig& source) {
            return roce::FrameMemory::memory_bytes(source.queue_pair) > 0;
        }))
        return nullptr;
    return std::make_unique<roce::FrameMemory>(config.responder.sources, config.messages, config.timeout_ns, table,
                                               config.touch);
}

}  // namespace

RxResponder::RxResponder(Config config, roce::Listener* listener, assemble::MessageTable& table, RxSources& sources,
                         RxAnswers& answers)
    : config_(std::move(config)),
      listener_(listener),
      table_(table),
      sources_(sources),
      answers_(answers),
      in_order_(config_.in_order, table),
      frames_(make_frames(config_, table)),
      starts_(config_.sources),
      responder_(config_.responder),
      status_(config_.sources) {
    for (const roce::Responder::SourceConfig& source : config_.responder.sources) publish(source.source);
}

/// A replay waits for room before it takes packets. Otherwise what is acknowledged has to have its place: a reference,
/// a message, and in the builder an event.
roce::Room RxResponder::room_for(std::uint32_t source, const wire::RocePacket& packet, wire::Verdict verdict) noexcept {
    if (config_.waits_for_room) return {};
    roce::Room room{.packet = table_.has_room(1), .message = true};
    if (verdict == wire::ok && packet.transport == wire::RoceTransport::rc && packet.starts() &&
        !continues_frame(source, packet))
        room.message = table_.messages_free() > 0 && table_.claim_event();
    return room;
}

/// All WRITEs of a frame in memory are one message of one event, whose place was claimed by the first of them.
bool RxResponder::continues_frame(std::uint32_t source, const wire::RocePacket& packet) const noexcept {
    if (frames_ == nullptr) return false;
    const roce::Region* region = responder_.region_of(source, packet);
    return region != nullptr && frames_->collects(*region, packet.va);
}

void RxResponder::respond(const Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
                          const wire::RocePacket& roce, wire::Verdict verdict) noexcept {
    if (holding_ > 0 || responder_.decides_start(source, roce, verdict)) [[unlikely]] {
        if (hold(packet, datagram, source, roce, verdict)) return;
    }
    take(packet, datagram, source, roce, verdict);
}

/// This packet, and before and after it those that were held.
void RxResponder::begin_with(const Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
                             const wire::RocePacket& roce, wire::Verdict verdict, std::uint32_t start) noexcept {
    responder_.begin_at(source, start, roce.address);
    const TimeNs now = packet.time_ns;
    // From who got no answer the same packet came twice.
    take_held(source, start, (roce.psn + 1) & roce::psn_mask, now);
    take(packet, datagram, source, roce, verdict);
    take_held(source, start, {}, now);
}

/// At which PSN the peer begins is not known: true if the packet waits for another one that bears it out, or has been
/// taken after those that it bears out. Else its turn has come.
bool RxResponder::hold(const Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
                       const wire::RocePacket& roce, wire::Verdict verdict) noexcept {
    Starts& starts = starts_[source];
    if (!starts.empty()) {
        const auto start = starts.start_by(roce);
        if (start && responder_.may_begin_at(source, *start)) {
            begin_with(packet, datagram, source, roce, verdict, *start);
            return true;
        }
        if (!responder_.may_begin_at(source, starts.oldest().roce.psn)) reject_held(source);
    }
    if (!responder_.decides_start(source, roce, verdict)) return false;
    holding_ += starts.empty() ? 1 : 0;
    if (const auto gone = starts.hold({packet, datagram, roce, verdict})) {
        sources_.count(source);
        table_.reject(gone->packet.mbuf, PacketCounter::roce_sequence);
    }
    return true;
}

/// In the order of PSNs, from `start` on and up to `end`.
void RxResponder::take_held(std::uint32_t source, std::uint32_t start, std::optional<std::uint32_t> end, TimeNs now,
                            bool answers) noexcept {
    if (starts_[source].empty()) return;
    TimeNs latest = 0;
    while (auto held = starts_[source].take_next(start, end)) {
        // They may have come in another order; time never runs backwards.
        latest = std::min(now, std::max(latest, held->packet.time_ns));
        held->packet.time_ns = latest;
        take(held->packet, held->datagram, source, held->roce, held->verdict, answers);
    }
    holding_ -= starts_[source].empty() ? 1 : 0;
}

/// Where the peer has begun they are what came before it.
void RxResponder::reject_held(std::uint32_t source) noexcept {
    const auto counter = responder_.status(source).psn_known ? PacketCounter::unbound : PacketCounter::roce_sequence;
    holding_ -= starts_[source].empty() ? 0 : 1;
    while (const auto held = starts_[source].take_next(0)) {
        sources_.count(source);
        table_.reject(held->packet.mbuf, counter);
    }
}

/// Nothing more comes to bear it out. All of one sender are believed if there was none before; of several, nobody knows
/// which.
void RxResponder::end_held(std::uint32_t source, TimeNs now) noexcept {
    const auto start = starts_[source].only_start();
    const bool begun = responder_.status(source).psn_known;
    if (!start || begun || !responder_.may_begin_at(source, *start)) return reject_held(source);
    responder_.begin_at(source, *start, starts_[source].oldest().roce.address);
    take_held(source, *start, {}, now, false);
}

void RxResponder::take(const Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
                       const wire::RocePacket& roce, wire::Verdict verdict, bool answers) noexcept {
    if (frames_ != nullptr) frames_->expire(table_.due_by(packet.time_ns));
    const roce::Ruling ruling = responder_.rule(source, roce, verdict, room_for(source, roce, verdict), packet.time_ns);
    // Answers are made from the packet's own headers, which are gone once it has been handed on.
    if (answers && ruling.answers()) answers_.send(packet, datagram, ruling.answer, ruling.sent);
    if (answers && ruling.notify) [[unlikely]]
        answers_.send(packet, datagram, ruling.notification, roce::AnswerCounter::congestion);
    sources_.count(source);
    if (ruling.accepted()) {
        assemble(packet, source, roce, ruling);
    } else {
        if (is_of_connection(ruling.counter)) note(source, roce, packet.time_ns);
        table_.reject(packet.mbuf, ruling.counter);
    }
    table_.drop_claim();
    if (ruling.failed) [[unlikely]]
        forget_peer(source, packet.time_ns);
    publish(source);
}

void RxResponder::assemble(const Packet& packet, std::uint32_t source, const wire::RocePacket& roce,
                           const roce::Ruling& ruling) noexcept {
    expire_others(source, packet.time_ns);
    if (ruling.region != nullptr) {
        skip(source, roce, packet.time_ns);
        return frames_->write(ruling, roce, packet.mbuf, packet.time_ns);
    }
    if (frames_ != nullptr) frames_->pass_by(source);
    if (is_in_order(source))
        in_order_.add(source, roce, packet.mbuf, packet.time_ns);
    else
        listener_->add(source, roce, packet.mbuf, packet.time_ns);
}

/// Each of the two ends what is due before it takes a packet. The other one does so, too, so that no result depends on
/// how often time is looked at.
void RxResponder::expire_others(std::uint32_t source, TimeNs now) noexcept {
    const TimeNs due = table_.due_by(now);
    if (!is_in_order(source))
        in_order_.expire(due);
    else if (listener_ != nullptr)
        listener_->expire_messages(due);
}

/// The PSN is used, lest it is waited for.
void RxResponder::skip(std::uint32_t source, const wire::RocePacket& roce, TimeNs now) noexcept {
    if (is_in_order(source)) return in_order_.skip(source, roce, now);
    wire::RocePacket used = roce;
    used.dma_length = 0;
    listener_->skip(source, used, now);
}

void RxResponder::note(std::uint32_t source, const wire::RocePacket& roce, TimeNs now) noexcept {
    if (is_in_order(source)) return in_order_.note(source, roce);
    listener_->note(source, roce, now);
}

/// What it has begun ends.
void RxResponder::forget_peer(std::uint32_t source, TimeNs now, std::optional<std::uint32_t> first_psn) noexcept {
    if (is_in_order(source))
        in_order_.forget(source, now, first_psn);
    else
        listener_->forget(source, now, first_psn);
    if (frames_ != nullptr) frames_->forget(source);
}

std::size_t RxResponder::take_command(TimeNs now) noexcept {
    const roce::QueuePairCommand* command = config_.queue_pairs != nullptr ? config_.queue_pairs->take() : nullptr;
    if (command == nullptr) return 0;
    const std::uint32_t source = command->source;
    roce::Responder::Status status;
    if (responder_.serves(source)) {
        reject_held(source);
        const bool configures = command->kind == roce::QueuePairCommand::Kind::configure;
        forget_peer(source, now, configures ? command->queue_pair.psn : std::nullopt);
        if (configures) {
            roce::QueuePair queue_pair = command->queue_pair;
            if (frames_ != nullptr) frames_->tell(source, queue_pair);
            responder_.configure(source, queue_pair);
        } else {
            responder_.reset(source);
        }
        status = responder_.status(source);
        publish(source);
    }
    config_.queue_pairs->finish(status);
    return 1;
}

void RxResponder::expire(TimeNs now) noexcept {
    in_order_.expire(now);
    if (frames_ != nullptr) frames_->expire(now);
}

void RxResponder::finish(TimeNs now) noexcept {
    for (std::uint32_t source = 0; source < starts_.size() && holding_ > 0; ++source)
        if (!starts_[source].empty()) end_held(source, now);
    in_order_.finish(now);
    if (frames_ != nullptr) frames_->finish();
}

core::TimeNs RxResponder::oldest_ns() const noexcept {
    const TimeNs collected =
        std::min(in_order_.oldest_ns(), frames_ != nullptr ? frames_->oldest_ns() : roce::FrameMemory::never);
    return std::min(collected, oldest_held_ns());
}

core::TimeNs RxResponder::oldest_held_ns() const noexcept {
    TimeNs oldest = roce::InOrderReceiver::never;
    if (holding_ == 0) return oldest;
    for (const Starts& starts : starts_)
        if (!starts.empty()) oldest = std::min(oldest, starts.oldest().packet.time_ns);
    return oldest;
}

void RxResponder::evict_oldest(TimeNs now) noexcept {
    if (const TimeNs held = oldest_held_ns(); held != roce::InOrderReceiver::never && held <= oldest_ns()) {
        const auto starts = std::ranges::find_if(
            starts_, [held](const Starts& one) { return !one.empty() && one.oldest().packet.time_ns == held; });
        return end_held(static_cast<std::uint32_t>(starts - starts_.begin()), now);
    }
    if (frames_ != nullptr && frames_->oldest_ns() < in_order_.oldest_ns()) return frames_->evict_oldest();
    static_cast<void>(in_order_.evict_oldest(now));
}

void RxResponder::begin_pass(TimeNs now) noexcept {
    finish(now);
    in_order_.begin_pass(now);
    responder_.begin_pass();
}

void RxResponder::publish(std::uint32_t source) noexcept {
    const roce::Responder::Status status = responder_.status(source);
    const std::uint64_t packed = std::uint64_t{status.psn} | std::uint64_t{status.msn} << 24U |
                                 std::uint64_t{status.psn_known} << 48U |
                                 static_cast<std::uint64_t>(status.state) << 49U;
    status_[source].store(packed, std::memory_order_relaxed);
}

roce::Responder::Status RxResponder::status(std::uint32_t source) const noexcept {
    const std::uint64_t packed = status_[source].load(std::memory_order_relaxed);
    return {static_cast<roce::QueuePairState>(packed >> 49U & 3U), (packed >> 48U & 1U) != 0,
            static_cast<std::uint32_t>(packed & 0xffffff), static_cast<std::uint32_t>(packed >> 24U & 0xffffff)};
}

}  // namespace weir::stages

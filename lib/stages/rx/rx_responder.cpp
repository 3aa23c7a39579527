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
    if (frames_ != nullptr) frames_->expire(table_.due_by(packet.time_ns));
    const roce::Ruling ruling = responder_.rule(source, roce, verdict, room_for(source, roce, verdict), packet.time_ns);
    // Answers are made from the packet's own headers, which are gone once it has been handed on.
    if (ruling.answers()) answers_.send(packet, datagram, ruling.answer, ruling.sent);
    if (ruling.notify) [[unlikely]]
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
    in_order_.finish(now);
    if (frames_ != nullptr) frames_->finish();
}

TimeNs RxResponder::oldest_ns() const noexcept {
    return std::min(in_order_.oldest_ns(), frames_ != nullptr ? frames_->oldest_ns() : roce::FrameMemory::never);
}

void RxResponder::evict_oldest(TimeNs now) noexcept {
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

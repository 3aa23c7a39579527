// Queue pairs that weir answers, on the rx lcore that owns them: the responder rules, the listener assembles, and the
// answer leaves through the port that the packet came from. In a replay nobody hears it; it can be kept in a file.
#include "stages/rx/rx_stage.hpp"

#include <algorithm>

#include "wire/roce_answer.hpp"

namespace weir::pipeline {

using core::AnswerCounter;
using core::PacketCounter;
using port::Packet;

namespace {

const std::byte* bytes_of(const Packet& packet) noexcept {
    return rte_pktmbuf_mtod(packet.mbuf, const std::byte*);
}

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

}  // namespace

/// Whether a responder has a say: only where enough of the packet is known to be said something about.
bool RxStage::answers(const flow::Route& route, wire::Verdict verdict) const noexcept {
    if (responder_ == nullptr || route.stream == flow::Steering::none || !responder_->serves(route.source))
        return false;
    return verdict == wire::ok || verdict == PacketCounter::malformed_roce_length ||
           verdict == PacketCounter::not_for_us_roce_request;
}

/// A replay waits for room before it takes packets. Otherwise what is acknowledged has to have its place: a reference,
/// a run and a message, and in the builder an event.
roce::Room RxStage::room_for(std::uint32_t source, const wire::RocePacket& packet, wire::Verdict verdict) noexcept {
    if (config_.wait) return {};
    roce::Room room{.packet = table_.has_room(1), .message = true};
    if (verdict == wire::ok && packet.transport == wire::RoceTransport::rc && packet.starts() &&
        !continues_frame(source, packet))
        room.message = table_.messages_free() > 0 && listener_->has_room() && table_.claim_event();
    return room;
}

/// All WRITEs of a frame in memory are one message of one event, whose place was claimed by the first of them.
bool RxStage::continues_frame(std::uint32_t source, const wire::RocePacket& packet) const noexcept {
    if (frames_ == nullptr) return false;
    const roce::Region* region = responder_->region_of(source, packet);
    return region != nullptr && frames_->collects(*region, packet.va);
}

void RxStage::respond(const Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
                      const wire::RocePacket& roce, wire::Verdict verdict) noexcept {
    if (frames_ != nullptr) frames_->expire(table_.due_by(packet.time_ns));
    const roce::Ruling ruling =
        responder_->rule(source, roce, verdict, room_for(source, roce, verdict), packet.time_ns);
    // Answers are made from the packet's own headers, which are gone once it has been handed on.
    if (ruling.answers()) send_answer(packet, datagram, ruling.answer, ruling.sent);
    if (ruling.notify) [[unlikely]]
        send_answer(packet, datagram, ruling.notification, AnswerCounter::congestion);
    count_source(source);
    if (ruling.accepted()) {
        take_accepted(packet, source, roce, ruling);
    } else {
        if (is_of_connection(ruling.counter)) listener_->note(source, roce, packet.time_ns);
        table_.reject(packet.mbuf, ruling.counter);
    }
    table_.drop_claim();
    if (ruling.failed) [[unlikely]]
        forget_peer(source, packet.time_ns);
    publish_queue_pair(source);
}

void RxStage::take_accepted(const Packet& packet, std::uint32_t source, const wire::RocePacket& roce,
                            const roce::Ruling& ruling) noexcept {
    expect_headers(packet, roce.payload);
    if (ruling.region == nullptr) return listener_->add(source, roce, packet.mbuf, packet.time_ns);
    // The listener is told that the PSN is used, lest it waits for it.
    wire::RocePacket used = roce;
    used.dma_length = 0;
    listener_->skip(source, used, packet.time_ns);
    frames_->write(ruling, roce, packet.mbuf, packet.time_ns);
}

/// What it has begun ends.
void RxStage::forget_peer(std::uint32_t source, TimeNs now, std::optional<std::uint32_t> first_psn) noexcept {
    listener_->forget(source, now, first_psn);
    if (frames_ != nullptr) frames_->forget(source);
}

void RxStage::make_responder() {
    if (std::ranges::any_of(config_.responder.sources, [](const roce::Responder::SourceConfig& source) {
            return roce::FrameMemory::memory_bytes(source.queue_pair) > 0;
        }))
        frames_ = std::make_unique<roce::FrameMemory>(config_.responder.sources, config_.table.timeout_ns, table_,
                                                      config_.table.touch);
    responder_ = std::make_unique<roce::Responder>(config_.responder);
    for (const roce::Responder::SourceConfig& source : config_.responder.sources) publish_queue_pair(source.source);
}

void RxStage::send_answer(const Packet& packet, const wire::Datagram& datagram, const wire::RoceAnswer& answer,
                          AnswerCounter counter) noexcept {
    answers_.add(counter);
    if (!config_.answer_ports.empty()) {
        port::AnswerSender* sender = config_.answer_ports[packet.port];
        unsent_answers_ = true;  // or failed: flush_answers counts it
        const std::span<std::byte> room = sender->begin();
        if (!room.empty()) sender->commit(wire::write_roce_answer(bytes_of(packet), datagram, answer, room));
    } else if (config_.answer_log != nullptr) {
        AnswerRecord* record = config_.answer_log->begin();
        const std::size_t bytes =
            record != nullptr ? wire::write_roce_answer(bytes_of(packet), datagram, answer, record->frame) : 0;
        if (bytes == 0) return answers_.add(AnswerCounter::not_sent);
        record->time_ns = packet.time_ns;
        record->bytes = static_cast<std::uint32_t>(bytes);
        config_.answer_log->commit();
    }
}

void RxStage::flush_answers() noexcept {
    if (!unsent_answers_) return;
    unsent_answers_ = false;
    for (port::AnswerSender* sender : config_.answer_ports) {
        if (sender == nullptr) continue;
        sender->flush();
        unsent_answers_ = unsent_answers_ || !sender->empty();
        if (const std::uint32_t failures = sender->take_failures(); failures > 0)
            answers_.add(AnswerCounter::not_sent, failures);
    }
}

void RxStage::publish_queue_pair(std::uint32_t source) noexcept {
    const roce::Responder::Status status = responder_->status(source);
    const std::uint64_t packed = std::uint64_t{status.psn} | std::uint64_t{status.msn} << 24U |
                                 std::uint64_t{status.psn_known} << 48U |
                                 static_cast<std::uint64_t>(status.state) << 49U;
    queue_pairs_[source].store(packed, std::memory_order_relaxed);
}

roce::Responder::Status RxStage::queue_pair(std::uint32_t source) const noexcept {
    const std::uint64_t packed = queue_pairs_[source].load(std::memory_order_relaxed);
    return {static_cast<roce::QueuePairState>(packed >> 49U & 3U), (packed >> 48U & 1U) != 0,
            static_cast<std::uint32_t>(packed & 0xffffff), static_cast<std::uint32_t>(packed >> 24U & 0xffffff)};
}

/// From a thread that connects or disconnects a queue pair.
std::size_t RxStage::take_queue_pair_command() noexcept {
    const roce::QueuePairCommand* command = config_.queue_pairs != nullptr ? config_.queue_pairs->take() : nullptr;
    if (command == nullptr) return 0;
    const std::uint32_t source = command->source;
    roce::Responder::Status status;
    if (responder_ != nullptr && responder_->serves(source)) {
        const bool configures = command->kind == roce::QueuePairCommand::Kind::configure;
        forget_peer(source, time_, configures ? command->queue_pair.psn : std::nullopt);
        if (configures)
            responder_->configure(source, command->queue_pair);
        else
            responder_->reset(source);
        status = responder_->status(source);
        publish_queue_pair(source);
    }
    config_.queue_pairs->finish(status);
    return 1;
}

}  // namespace weir::pipeline

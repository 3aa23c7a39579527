#include "roce/responder/responder.hpp"

#include <algorithm>
#include <array>

#include "roce/psn.hpp"

namespace weir::roce {

using wire::PacketCounter;
using wire::RocePacket;
using wire::RocePlace;
using wire::RoceTransport;
using wire::Verdict;

namespace {

/// As the Listener has it: so many packets in a row that have all been before are a sender that begins anew.
constexpr std::uint32_t restart_packets = 32;
/// Half of how far PSNs can be compared. No sender has so many packets under way.
constexpr std::int32_t start_matters_for = 1 << 22;

constexpr std::uint8_t opcode_send_last_invalidate = 0x16;
constexpr std::uint8_t opcode_send_only_invalidate = 0x17;

/// Linux drivers/infiniband/sw/rxe/rxe_comp.c has the same times, by code.
constexpr std::array<std::uint32_t, 32> rnr_timers_us = {
    655360, 10,   20,   30,   40,    60,    80,    120,   160,   240,   320,   480,    640,    960,    1280,   1920,
    2560,   3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520};

RoceTransport transport_of(Service service) noexcept {
    return service == Service::rc ? RoceTransport::rc : service == Service::uc ? RoceTransport::uc : RoceTransport::ud;
}

/// Partitions match on 15 bits, and one of the two must be a full member (the highest bit): rxe_recv.c, check_keys.
bool same_partition(std::uint16_t a, std::uint16_t b) noexcept {
    constexpr unsigned full_member = 0x8000;
    return ((a ^ b) & 0x7fff) == 0 && ((a | b) & full_member) != 0;
}

AnswerCounter counter_of_nak(PacketCounter counter) noexcept {
    if (counter == PacketCounter::roce_access) return AnswerCounter::nak_remote_access;
    if (counter == PacketCounter::roce_operation) return AnswerCounter::nak_remote_operation;
    return AnswerCounter::nak_invalid_request;
}

std::uint8_t syndrome_of_nak(PacketCounter counter) noexcept {
    if (counter == PacketCounter::roce_access) return wire::roce_nak_remote_access;
    if (counter == PacketCounter::roce_operation) return wire::roce_nak_remote_operation;
    return wire::roce_nak_invalid_request;
}

const Region* find_region(const QueuePair& queue_pair, const RocePacket& packet) noexcept {
    const Region* end = queue_pair.regions.data() + queue_pair.region_count;
    const Region* region = std::find_if(queue_pair.regions.data(), end, [&](const Region& at) {
        return at.rkey == packet.rkey && at.remote_write && at.holds(packet.va, packet.dma_length);
    });
    return region != end ? region : nullptr;
}

}  // namespace

std::uint8_t rnr_timer_code(std::uint32_t microseconds) noexcept {
    for (std::size_t code = 1; code < rnr_timers_us.size(); ++code)
        if (rnr_timers_us[code] >= microseconds) return static_cast<std::uint8_t>(code);
    return 0;
}

std::uint32_t rnr_timer_us(std::uint8_t code) noexcept {
    return rnr_timers_us[code & 0x1fU];
}

Responder::Responder(const Config& config) {
    states_.reserve(config.sources.size());
    for (const SourceConfig& source : config.sources) {
        if (source.source >= slot_by_source_.size()) slot_by_source_.resize(source.source + 1, no_slot);
        slot_by_source_[source.source] = static_cast<std::uint32_t>(states_.size());
        states_.emplace_back();
        if (source.ready) configure(source.source, source.queue_pair);
    }
}

void Responder::configure(std::uint32_t source, const QueuePair& queue_pair) noexcept {
    State qp;
    qp.config = queue_pair;
    qp.state = QueuePairState::ready;
    qp.psn_known = queue_pair.psn.has_value();
    qp.psn = queue_pair.psn.value_or(0) & psn_mask;
    qp.path_mtu = queue_pair.path_mtu;
    qp.peer_known = queue_pair.peer_address.has_value();
    qp.peer_address = queue_pair.peer_address.value_or(0);
    states_[slot_by_source_[source]] = qp;
}

void Responder::reset(std::uint32_t source) noexcept {
    states_[slot_by_source_[source]] = State{};
}

void Responder::begin_pass() noexcept {
    for (std::uint32_t source = 0; source < slot_by_source_.size(); ++source)
        if (serves(source) && status(source).state != QueuePairState::reset)
            configure(source, states_[slot_by_source_[source]].config);
}

Responder::Status Responder::status(std::uint32_t source) const noexcept {
    const State& qp = states_[slot_by_source_[source]];
    return {qp.state, qp.psn_known, qp.psn, qp.msn};
}

Ruling Responder::rule(std::uint32_t source, const RocePacket& packet, Verdict decoded, Room room,
                       TimeNs now) noexcept {
    State& qp = states_[slot_by_source_[source]];
    Ruling ruling;
    ruling.counter = admission(qp, packet);
    if (!ruling.accepted()) {
        // What cannot be attributed to the queue pair's transport is malformed before it is anything else.
        if (ruling.counter == PacketCounter::roce_service && decoded != wire::ok) ruling.counter = decoded;
        return ruling;
    }
    if (qp.config.service == Service::rc) {
        ruling = rule_rc(qp, packet, decoded, room);
        // In memory a frame has its place, and its message no second beginning.
        qp.start_answered |= ruling.answers() || ruling.region != nullptr;
    } else {
        ruling = qp.config.service == Service::uc ? rule_uc(qp, packet, decoded) : rule_ud(qp, packet, decoded);
    }
    // Not by a packet that is none of the connection's: then anybody's first one would shut out the real peer.
    if (!qp.peer_known && ruling.accepted()) [[unlikely]] {
        qp.peer_known = true;
        qp.peer_address = packet.address;
    }
    if (packet.congestion) [[unlikely]]
        notify(qp, packet, now, ruling);
    return ruling;
}

bool Responder::decides_start(std::uint32_t source, const RocePacket& packet, Verdict decoded) const noexcept {
    const State& qp = states_[slot_by_source_[source]];
    if (qp.psn_known && !qp.start_assumed) [[likely]]
        return false;
    if (qp.config.service != Service::rc || admission(qp, packet) != PacketCounter::in_flight) return false;
    const bool request = decoded == Verdict::not_for_us_roce_request;
    if (!qp.psn_known) return request || packet.starts();
    return !request && packet.starts() && !qp.start_answered && psn_distance(packet.psn, qp.start) < 0;
}

bool Responder::may_begin_at(std::uint32_t source, std::uint32_t psn) const noexcept {
    const State& qp = states_[slot_by_source_[source]];
    if (qp.state != QueuePairState::ready) return false;
    return !qp.psn_known || (qp.start_assumed && !qp.start_answered && psn_distance(psn, qp.start) < 0);
}

void Responder::begin_at(std::uint32_t source, std::uint32_t psn, std::uint64_t address) noexcept {
    State& qp = states_[slot_by_source_[source]];
    qp.psn_known = qp.start_assumed = qp.peer_known = true;
    qp.peer_address = address;
    start_at(qp, psn);
}

void Responder::start_at(State& qp, std::uint32_t psn) noexcept {
    qp.psn = qp.start = psn;
    qp.msn = 0;
    qp.progress = {};
}

/// Whether the packet is the queue pair's at all. What is not gets no answer (rxe_recv.c, hdr_check).
PacketCounter Responder::admission(const State& qp, const RocePacket& packet) noexcept {
    if (qp.state != QueuePairState::ready)
        return qp.state == QueuePairState::reset ? PacketCounter::roce_reset : PacketCounter::roce_flushed;
    if (packet.transport != transport_of(qp.config.service)) return PacketCounter::roce_service;
    if (!same_partition(packet.pkey, qp.config.pkey)) return PacketCounter::roce_key;
    if (qp.config.service == Service::ud)
        return packet.qkey == qp.config.qkey ? PacketCounter::in_flight : PacketCounter::roce_key;
    return !qp.peer_known || packet.address == qp.peer_address ? PacketCounter::in_flight : PacketCounter::roce_peer;
}

Ruling Responder::rule_rc(State& qp, const RocePacket& packet, Verdict decoded, Room room) noexcept {
    Ruling ruling;
    const bool request = decoded == Verdict::not_for_us_roce_request;
    if (!qp.psn_known) [[unlikely]] {
        // Nobody said where it starts. In the middle of a message there is no telling what was before.
        if (!request && !packet.starts()) {
            ruling.counter = PacketCounter::roce_sequence;
            return ruling;
        }
        qp.psn_known = qp.start_assumed = true;
        qp.psn = qp.start = packet.psn;
    }
    if (qp.start_assumed && !request && psn_distance(packet.psn, qp.start) < 0) [[unlikely]] {
        if (!is_new_start(qp, packet, ruling)) return ruling;
    }
    const std::int32_t distance = psn_distance(packet.psn, qp.psn);
    if (distance > 0) {
        ruling.counter = PacketCounter::roce_sequence;
        if (!qp.nak_sent) answer(qp, wire::roce_nak_sequence, qp.psn, AnswerCounter::nak_sequence, ruling);
        qp.nak_sent = true;
        return ruling;
    }
    if (distance < 0) {
        // READs and atomics were never executed, so there is nothing to repeat.
        ruling.counter = request ? Verdict::not_for_us_roce_request : PacketCounter::duplicate;
        if (!request) answer(qp, wire::roce_ack_unlimited, (qp.psn - 1) & psn_mask, AnswerCounter::ack, ruling);
        return ruling;
    }
    qp.nak_sent = false;
    ruling.counter = check(qp, qp.progress, packet, decoded);
    if (!ruling.accepted()) [[unlikely]] {
        fail(qp, packet, ruling);
        return ruling;
    }
    if (!place(qp.progress, packet, ruling) || !room.packet || (packet.starts() && !room.message)) [[unlikely]] {
        ruling.counter = PacketCounter::roce_not_ready;
        answer(qp, static_cast<std::uint8_t>(wire::roce_rnr_nak | (qp.config.rnr_timer & 0x1fU)), packet.psn,
               AnswerCounter::rnr_nak, ruling);
        qp.nak_sent = true;  // what was sent after it comes again, too
        return ruling;
    }
    accept(qp, packet);
    ++qp.unacknowledged;
    const std::uint32_t every = qp.config.ack_every;
    if (packet.ack_request || (every != 0 && (packet.ends() || qp.unacknowledged >= every))) {
        answer(qp, wire::roce_ack_unlimited, packet.psn, AnswerCounter::ack, ruling);
        qp.unacknowledged = 0;
    }
    return ruling;
}

/// What was sent before the message that was taken for the first: that one had been lost on its way, and comes again.
/// As long as the peer has been told nothing, it sends everything after it again as well, so it may start here. Else it
/// is lost: the answers meant for later packets have acknowledged it, too.
bool Responder::is_new_start(State& qp, const RocePacket& packet, Ruling& ruling) noexcept {
    if (packet.starts() && !qp.start_answered) {
        start_at(qp, packet.psn);
        return true;
    }
    ruling.counter = PacketCounter::unbound;
    if (qp.start_answered) answer(qp, wire::roce_ack_unlimited, (qp.psn - 1) & psn_mask, AnswerCounter::ack, ruling);
    return false;
}

/// Unreliable, and behind what is due. The network does not say whether it delivered a packet twice or the sender began
/// anew. The Listener finds out, for it knows what has been here; it takes what can be a new beginning: packets in
/// order from the start of a message on. Its rule decides here, too.
Ruling Responder::rule_repeated(State& qp, const RocePacket& packet, Verdict decoded) noexcept {
    Ruling ruling;
    const bool continues = qp.repeated > 0 && packet.psn == qp.repeated_next;
    if (!continues) {
        qp.repeated = 0;
        qp.repeated_progress = {};
        ruling.counter = PacketCounter::duplicate;
        if (!packet.starts()) return ruling;
    }
    ruling.counter = check(qp, qp.repeated_progress, packet, decoded);
    // A frame in memory has no place for what may be old.
    if (ruling.accepted() && packet.is_write && qp.repeated_progress.region != nullptr &&
        qp.repeated_progress.region->lent != nullptr)
        ruling.counter = PacketCounter::duplicate;
    if (!ruling.accepted()) {
        qp.repeated = 0;
        return ruling;
    }
    qp.repeated_progress.add(packet);
    qp.repeated_next = (packet.psn + 1) & psn_mask;
    if (++qp.repeated < restart_packets) return ruling;
    qp.psn = qp.repeated_next;
    qp.progress = qp.repeated_progress;
    qp.dropping = false;
    qp.repeated = 0;
    return ruling;
}

Ruling Responder::rule_uc(State& qp, const RocePacket& packet, Verdict decoded) noexcept {
    const std::int32_t distance = qp.psn_known ? psn_distance(packet.psn, qp.psn) : 0;
    if (distance < 0) [[unlikely]]
        return rule_repeated(qp, packet, decoded);
    Ruling ruling;
    qp.repeated = 0;
    if (packet.starts()) {
        qp.dropping = false;
        qp.progress = {};  // a message that has not come to its end has lost it
    } else if (distance > 0 || qp.dropping || !qp.psn_known) {
        qp.dropping = true;
        ruling.counter = PacketCounter::roce_gap;
        return ruling;
    }
    ruling.counter = check(qp, qp.progress, packet, decoded);
    if (ruling.accepted() && !place(qp.progress, packet, ruling)) ruling.counter = PacketCounter::no_room;
    if (ruling.accepted()) {
        accept(qp, packet);
        qp.psn_known = true;
    } else {
        qp.dropping = true;
    }
    return ruling;
}

Ruling Responder::rule_ud(const State& qp, const RocePacket& packet, Verdict decoded) noexcept {
    Ruling ruling;
    if (decoded != wire::ok || packet.is_write || packet.bytes > (qp.path_mtu != 0 ? qp.path_mtu : wire::roce_mtu_max))
        ruling.counter = PacketCounter::roce_invalid_request;
    else
        ruling.counter = check_message(qp, 0, packet);
    return ruling;
}

/// What is wrong with the packet that is due: in_flight if nothing.
PacketCounter Responder::check(const State& qp, Progress& progress, const RocePacket& packet,
                               Verdict decoded) noexcept {
    constexpr auto invalid = PacketCounter::roce_invalid_request;
    // READ and atomics: no permission is ever given, and there is nothing to be read.
    if (decoded != wire::ok) return invalid;
    if (packet.opcode == opcode_send_last_invalidate || packet.opcode == opcode_send_only_invalidate) return invalid;
    const Collecting kind = packet.is_write ? Collecting::write : Collecting::send;
    if (packet.starts() ? progress.kind != Collecting::nothing : progress.kind != kind) return invalid;
    const std::uint32_t path_mtu = qp.path_mtu != 0 ? qp.path_mtu : wire::roce_mtu_max;
    const bool full = packet.place == RocePlace::first || packet.place == RocePlace::middle;
    if (packet.bytes > path_mtu || (full && qp.path_mtu != 0 && packet.bytes != qp.path_mtu)) return invalid;
    const std::uint64_t bytes = progress.bytes + packet.bytes;
    if (bytes > qp.config.max_message_bytes) return invalid;
    if (packet.is_write)
        if (const PacketCounter wrong = check_write(qp, progress, packet); wrong != PacketCounter::in_flight)
            return wrong;
    // A frame in memory is made of many WRITEs, of which only the last has a number.
    const bool framed = packet.is_write && progress.region != nullptr && progress.region->lent != nullptr;
    return framed ? PacketCounter::in_flight : check_message(qp, progress.bytes, packet);
}

/// What is wrong with a WRITE's lengths and with where it goes.
PacketCounter Responder::check_write(const State& qp, Progress& progress, const RocePacket& packet) noexcept {
    constexpr auto invalid = PacketCounter::roce_invalid_request;
    const std::uint32_t length = packet.starts() ? packet.dma_length : progress.dma_length;
    const std::uint64_t bytes = progress.bytes + packet.bytes;
    if (length > qp.config.max_message_bytes) return invalid;
    if (packet.ends() ? bytes != length : bytes >= length) return invalid;
    if (!packet.starts()) return PacketCounter::in_flight;
    progress.region = find_region(qp.config, packet);
    progress.va = packet.va;
    // Of no bytes, it may name any memory.
    return progress.region == nullptr && length > 0 ? PacketCounter::roce_access : PacketCounter::in_flight;
}

const Region* Responder::region_of(std::uint32_t source, const RocePacket& packet) const noexcept {
    if (!packet.is_write || !packet.starts()) return nullptr;
    return find_region(states_[slot_by_source_[source]].config, packet);
}

/// Whether an event can be made of the message that ends here.
PacketCounter Responder::check_message(const State& qp, std::uint64_t bytes_before, const RocePacket& packet) noexcept {
    if (!packet.ends()) return PacketCounter::in_flight;
    const bool lacks_number = qp.config.needs_immediate && !packet.has_immediate;
    const std::uint32_t expected = qp.config.message_bytes;
    const bool wrong_size = expected != 0 && bytes_before + packet.bytes != expected;
    return lacks_number || wrong_size ? PacketCounter::roce_operation : PacketCounter::in_flight;
}

/// Where the payload goes, if into memory. False: an event still takes its bytes from there.
bool Responder::place(const Progress& progress, const RocePacket& packet, Ruling& ruling) noexcept {
    if (!packet.is_write || progress.region == nullptr || progress.region->lent == nullptr) return true;
    ruling.region = progress.region;
    ruling.va = progress.va + progress.bytes;
    return progress.region->lent[progress.region->index_of(progress.va)] == 0;
}

void Responder::Progress::add(const RocePacket& packet) noexcept {
    if (packet.ends()) {
        *this = {};
        return;
    }
    if (packet.place == RocePlace::first) {
        kind = packet.is_write ? Collecting::write : Collecting::send;
        dma_length = packet.dma_length;
        bytes = 0;
    }
    bytes += packet.bytes;
}

void Responder::accept(State& qp, const RocePacket& packet) noexcept {
    qp.psn = (packet.psn + 1) & psn_mask;
    // Long ago, and soon it would look as if what comes now had been sent before it.
    if (qp.start_assumed && psn_distance(qp.psn, qp.start) >= start_matters_for) qp.start_assumed = false;
    if (packet.ends()) qp.msn = (qp.msn + 1) & psn_mask;
    if (packet.place == RocePlace::first) qp.path_mtu = packet.bytes;
    qp.progress.add(packet);
}

void Responder::answer(const State& qp, std::uint8_t syndrome, std::uint32_t psn, AnswerCounter as,
                       Ruling& ruling) noexcept {
    if (!qp.config.peer_qp.has_value()) return;
    ruling.sent = as;
    ruling.answer = {.syndrome = syndrome, .pkey = qp.config.pkey, .qp = *qp.config.peer_qp, .psn = psn, .msn = qp.msn};
}

void Responder::fail(State& qp, const RocePacket& packet, Ruling& ruling) noexcept {
    answer(qp, syndrome_of_nak(ruling.counter), packet.psn, counter_of_nak(ruling.counter), ruling);
    qp.state = QueuePairState::error;
    ruling.failed = true;
}

void Responder::notify(State& qp, const RocePacket& packet, TimeNs now, Ruling& ruling) noexcept {
    const bool datagram = qp.config.service == Service::ud;
    const TimeNs interval_ns = TimeNs{qp.config.congestion_interval_us} * 1000;
    if (interval_ns == 0 || (!datagram && !qp.config.peer_qp.has_value())) return;
    if (qp.notified && now - qp.notified_ns < interval_ns) return;
    qp.notified = true;
    qp.notified_ns = now;
    ruling.notify = true;
    ruling.notification = {.kind = wire::RoceAnswer::Kind::congestion,
                           .pkey = qp.config.pkey,
                           .qp = datagram ? packet.source_qp : *qp.config.peer_qp};
}

}  // namespace weir::roce

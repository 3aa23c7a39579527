#include "stages/rx/rx_stage.hpp"

#include <rte_prefetch.h>

#include <algorithm>
#include <utility>

#include "core/one_writer.hpp"
#include "stages/rx/packet_chain.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::stages {

using port::frame_of;
using port::Packet;
using wire::PacketCounter;

namespace {

RxEdges::Config edges_of(const RxStage::Config& config) {
    return {config.wait, config.steer_in, config.steer_out, config.descriptors, config.commands, config.recycle};
}

RxResponder::Config responder_of(const RxStage::Config& config) {
    return {.responder = config.responder,
            .sources = config.table.sources,
            .waits_for_room = config.wait,
            .timeout_ns = config.table.timeout_ns,
            .touch = config.table.touch,
            .queue_pairs = config.queue_pairs};
}

/// Ports, feeders, and blocks of a cluster.
std::size_t own_inputs(const RxStage::Config& config) {
    return config.ports.size() + config.rings.size() + (config.blocks != nullptr ? 1U : 0U);
}

}  // namespace

RxStage::RxStage(const Config& config, const std::vector<StreamRuntime>& streams, RxSignals& own, const RunSignals& run)
    : config_(config),
      streams_(streams),
      run_(run),
      decapsulation_(config.decapsulate),
      rules_(config.rules),
      notes_(streams, config.table.sources),
      sources_(streams, config.table.sources, notes_),
      table_(config.table, packets_, messages_, port::release_buffers),
      passes_(config.passes, config.index),
      times_(own_inputs(config), config.steer_in.size()),
      edges_(edges_of(config), own, table_, times_, own_inputs(config), passes_),
      pieces_(config.reassembly, config.header_bytes, {streams, sources_, notes_, table_, packets_, config.converter}),
      steered_pieces_max_(std::min(port::IpReassembly::pieces_max, config.reassembly.buffers_max)),
      answers_(config.answer_ports, config.answer_log),
      roce_(config.listener, responder_of(config), {streams, sources_, notes_, table_, packets_, answers_}),
      blocks_(config.blocks, config.blocks_max, {sources_, table_}) {}

std::size_t RxStage::poll(TimeNs now) noexcept {
    std::size_t work = edges_.take_commands(time_);
    work += roce_.take_command(time_);
    edges_.send_descriptors();
    if (flush_steered() && !done_ && may_take()) {
        work += take_own(now);
        work += take_steered();
        if (passes_.must_close()) close_first_pass();
        expire();
        edges_.send_descriptors();
        static_cast<void>(edges_.flush());
    }
    answers_.flush();
    table_.end_burst();
    time_ = std::max(time_, edges_.publish(own_ended_));
    finish_if_done();
    publish_buffers();
    return work;
}

/// A burst may be taken only when what was steered before has left: there is room for one.
bool RxStage::flush_steered() noexcept {
    const bool empty = edges_.flush();
    if (!empty) blocked(Blocked::steer);
    return empty;
}

bool RxStage::may_take() noexcept {
    // Every packet of a burst may complete a datagram of pieces that wait, here; the one that is next in the ring of
    // another lcore may have as many as there are.
    const std::uint32_t most = config_.wait && edges_.inputs() > 1 ? std::max(burst, steered_pieces_max_) : burst;
    const bool room = table_.has_room(most + pieces_.held()) &&
                      (config_.pool == nullptr || config_.pool->available() >= pool_reserve);
    edges_.ask_for_room(!room);
    if (!room) {
        // What proves nothing goes first, here; open events are the builder's to end.
        if (!table_.cancel_oldest_probation() && run_.builders_empty()) roce_.make_room(time_);
        if (config_.wait) {
            blocked(Blocked::memory);
            return false;
        }
    }
    if (!config_.wait) return true;
    if (!answers_.has_room(burst)) {
        blocked(Blocked::answers);
        return false;
    }
    if (config_.record != nullptr && !config_.record->has_room()) {
        blocked(Blocked::recorder);
        return false;
    }
    if (!table_.all_sent()) {
        blocked(Blocked::descriptors);
        return false;
    }
    if (table_.messages_free() <= burst) {
        if (!table_.cancel_oldest_probation() && run_.builders_empty()) roce_.make_room(time_);
        blocked(Blocked::memory);
        return false;
    }
    return true;
}

/// From ports and feeders. Ends when there are none left that still bring packets.
std::size_t RxStage::take_own(TimeNs now) noexcept {
    std::size_t work = 0;
    bool ended = true;
    for (std::size_t i = 0; i < config_.ports.size(); ++i) {
        if (run_.stop_input.load(std::memory_order_relaxed)) {
            times_.end(i);
            continue;
        }
        ended = false;
        if (!flush_steered()) break;
        work += take_port(i, now);
    }
    for (std::size_t i = 0; i < config_.rings.size(); ++i) {
        if (!flush_steered()) {
            ended = false;
            break;
        }
        work += take_feeder(i, ended);
    }
    if (config_.blocks != nullptr) work += take_blocks(ended);
    own_ended_ = ended;
    times_.end_own_turn();
    return work;
}

std::size_t RxStage::take_port(std::size_t input, TimeNs now) noexcept {
    PortInput& from = config_.ports[input];
    const port::LivePort::Burst got = from.port->receive(from.queue, taken_.room(), now, times_.own());
    taken_.filled(got.count);
    Packets packets = taken_.take();
    count_received(packets);
    // While the queue is not empty, its next packets may have come any time since the last of these.
    const TimeNs over = from.port->over(now);
    const TimeNs next = got.count < burst ? over : std::min(over, packets.back().time_ns);
    if (got.count > 0) table_.hold_time(times_.all_but(input));
    if (config_.record != nullptr) config_.record->add(packets, from.queue);
    if (got.bad_checksums) packets = without_bad_checksums(packets);
    if (decapsulation_.any()) {
        packets = decapsulated(packets);
        // Which of two checksums it means, a device does not say.
        if (got.bad_checksums) packets = without_bad_checksums(packets);
    }
    if (!rules_.empty()) packets = by_rules(packets, &from);
    from.was_empty |= got.count < burst;
    process(packets, from.port);
    times_.advance(input, next);
    time_ = std::max(time_, over);
    return got.count;
}

std::size_t RxStage::take_feeder(std::size_t index, bool& ended) noexcept {
    const RingInput& from = config_.rings[index];
    const std::size_t input = config_.ports.size() + index;
    const bool last = from.ended->load(std::memory_order_acquire);
    const std::uint32_t count = taken_.pull_from(*from.ring);
    Packets packets = taken_.take();
    count_received(packets);
    if (count > 0) {
        times_.advance(input, packets.back().time_ns);
        table_.hold_time(times_.all_but(input));
    } else if (last) {
        times_.end(input);
    }
    if (config_.record != nullptr) config_.record->add(packets, 0);
    if (decapsulation_.any()) packets = decapsulated(packets);
    if (!rules_.empty()) packets = by_rules(packets, nullptr);
    process(packets, nullptr);
    passes_.count_processed(count);
    if (count > 0 || !last) ended = false;
    return count;
}

std::size_t RxStage::take_blocks(bool& ended) noexcept {
    const std::size_t input = config_.ports.size() + config_.rings.size();
    const RxBlocks::Taken taken = blocks_.take(burst);
    core::add(received_packets_, taken.packets);
    core::add(received_bytes_, taken.bytes);
    if (taken.work > 0) {
        times_.advance(input, taken.newest_ns);
        time_ = std::max(time_, taken.newest_ns);
    }
    if (blocks_.has_ended())
        times_.end(input);
    else
        ended = false;
    return taken.work;
}

std::size_t RxStage::take_steered() noexcept {
    std::size_t work = 0;
    for (std::size_t i = 0; i < edges_.inputs(); ++i) {
        edges_.take_steered(i, taken_);
        const Packets packets = taken_.take();
        process(packets, nullptr);
        passes_.count_processed(static_cast<std::uint32_t>(packets.size()));
        work += packets.size();
    }
    times_.end_steered_turn();
    return work;
}

void RxStage::count_received(std::span<const Packet> packets) noexcept {
    std::uint64_t bytes = 0;
    for (const Packet& packet : packets) bytes += packet.wire_bytes;
    core::add(received_packets_, packets.size());
    core::add(received_bytes_, bytes);
}

/// Those that the device calls bad end here; the others move together.
RxStage::Packets RxStage::without_bad_checksums(Packets packets) noexcept {
    std::size_t good = 0;
    for (const Packet& packet : packets) {
        if (port::has_bad_checksum(*packet.mbuf))
            table_.reject(packet.mbuf, PacketCounter::malformed_udp_checksum);
        else
            packets[good++] = packet;
    }
    return packets.first(good);
}

/// What is inside of them, of ports that are asked to take something off; the rest ends here. Nothing that the device
/// said of the packets is believed of what is inside, but that a checksum is wrong.
RxStage::Packets RxStage::decapsulated(Packets packets) noexcept {
    for (const Packet& packet : packets) rte_prefetch0(frame_of(packet));
    std::size_t kept = 0;
    for (Packet& packet : packets) {
        if (decapsulation_.lies_apart(packet)) {
            const std::optional<Packet> whole = pieces_.in_one_buffer(packet);
            if (!whole) continue;
            packet = *whole;
        }
        const wire::Verdict verdict = decapsulation_.take_off(packet);
        if (verdict == wire::ok)
            packets[kept++] = packet;
        else
            reject(table_, packet, verdict);
    }
    return packets.first(kept);
}

/// What the rules leave of a burst; the rest ends here. `input` is null for a capture.
RxStage::Packets RxStage::by_rules(Packets packets, const PortInput* input) noexcept {
    const std::uint32_t kept = input != nullptr ? rules_.apply(packets, input->queue, input->was_empty)
                                                : rules_.apply(packets, std::nullopt, false);
    for (const RxRules::Dropped& dropped : rules_.dropped()) {
        const Packet& packet = dropped.packet;
        wire::Datagram datagram;
        const bool scattered = packet.scattered();
        const std::byte* const frame = scattered ? pieces_.head_of(packet).data() : frame_of(packet);
        const std::uint32_t bytes = scattered ? packet.wire_bytes : packet.captured_bytes;
        const bool read = wire::parse_frame(frame, bytes, packet.wire_bytes, datagram) == wire::ok;
        if (read && route_of(packet, datagram).stream != steer::Steering::none) rules_.count_of_stream(dropped);
        reject(table_, packet, PacketCounter::flow_rule);
    }
    return packets.first(kept);
}

/// A burst of one input. While packets are being worked on, the headers of the next ones are on their way from memory.
void RxStage::process(std::span<const Packet> packets, port::LivePort* from) noexcept {
    if (packets.empty()) return;
    if (packets.back().pass != passes_.current()) return process_passes(packets, from);
    const auto some_from = [&](std::size_t at) {
        return at < packets.size() ? packets.subspan(at, std::min<std::size_t>(packets.size() - at, prefetched))
                                   : std::span<const Packet>();
    };
    headers_.aim(some_from(0));
    headers_.rest();
    for (std::size_t at = 0; at < packets.size(); at += prefetched) {
        headers_.aim(some_from(at + prefetched));
        process_some(some_from(at), from);
        headers_.rest();
    }
}

/// A burst in which a pass over the captures begins.
void RxStage::process_passes(std::span<const Packet> packets, port::LivePort* from) noexcept {
    while (!packets.empty()) {
        const std::uint8_t pass = packets.front().pass;
        const auto end = std::ranges::find_if(packets, [&](const Packet& packet) { return packet.pass != pass; });
        if (pass != passes_.current()) begin_pass(pass);
        const auto count = static_cast<std::size_t>(end - packets.begin());
        process(packets.first(count), from);
        packets = packets.subspan(count);
    }
}

/// Which stream a datagram belongs to, that a rule's mark may tell apart from others.
steer::Route RxStage::route_of(const Packet& packet, const wire::Datagram& datagram) const noexcept {
    const steer::Steering& steering = *config_.steering[packet.port];
    if (!steering.uses_marks()) [[likely]]
        return steering.is_roce(datagram) ? steering.route_roce(datagram) : steering.route_udp(datagram);
    const auto mark = mark_of(packet);
    return steering.is_roce(datagram) ? steering.route_roce(datagram, mark) : steering.route_udp(datagram, mark);
}

/// The same for UDP that mostly comes again and again.
steer::Route RxStage::route_of_most(const Packet& packet, const wire::Datagram& datagram) noexcept {
    const std::uint32_t key = datagram.dport;
    if (const steer::Route* known = routes_.find(packet.port, datagram, key); known != nullptr) return *known;
    const steer::Route route = route_of(packet, datagram);
    if (!config_.steering[packet.port]->uses_marks()) routes_.remember(packet.port, datagram, key, route);
    return route;
}

steer::Route RxStage::route_of_roce(const Packet& packet, const wire::Datagram& datagram) noexcept {
    const std::optional<std::uint32_t> key = wire::roce_queue_pair(datagram);
    if (!key) return {steer::Steering::none, 0, 0};
    if (const steer::Route* known = roce_routes_.find(packet.port, datagram, *key); known != nullptr) return *known;
    const steer::Route route = route_of(packet, datagram);
    if (!config_.steering[packet.port]->uses_marks()) roce_routes_.remember(packet.port, datagram, *key, route);
    return route;
}

/// A packet in several buffers is odd whatever is in it: process_chain parses it.
inline wire::Verdict RxStage::parse(const Packet& packet, wire::Datagram& datagram) noexcept {
    if (packet.chained()) [[unlikely]]
        return PacketCounter::malformed_truncated;
    return wire::parse_frame(frame_of(packet), packet.captured_bytes, packet.wire_bytes, datagram);
}

/// The way of each packet: to another lcore, or into a run. Most are like one that came before, and join the run.
void RxStage::process_some(std::span<const Packet> packets, port::LivePort* from) noexcept {
    for (const Packet& packet : packets) {
        time_ = std::max(time_, packet.time_ns);
        const steer::Route* const known = flows_.find(packet, packet_run_.next());
        if (known != nullptr && known->stream == packet_run_.stream && known->owner == config_.index) [[likely]]
            packet_run_.join(packet, known->source);
        else if (known == nullptr)
            process_new(packet, from);
        else if (known->stream != PacketRun::roce || !join_known_roce(packet))
            follow(packet, *known);
    }
    end_run();
}

/// A packet of a known flow of RoCE: in a run of RoCE, and like one that came before.
inline bool RxStage::join_known_roce(const Packet& packet) noexcept {
    if (packet_run_.stream != PacketRun::roce) return false;
    const std::uint32_t place = packet_run_.count;
    const steer::Route* const route = roce_.find(packet, packet_run_.next(), packet_run_.roce_packets[place]);
    if (route == nullptr) return false;
    packet_run_.join_roce(packet, *route, true);
    return true;
}

/// One that has to be parsed.
void RxStage::process_new(const Packet& packet, port::LivePort* from) noexcept {
    wire::Datagram& datagram = packet_run_.next();
    if (const wire::Verdict verdict = parse(packet, datagram); verdict != wire::ok) {
        end_run();
        return process_odd(packet, verdict, datagram, from);
    }
    const steer::Steering& steering = *config_.steering[packet.port];
    const steer::Route route = steering.is_roce(datagram) ? PacketRun::to_queue_pairs : route_of_most(packet, datagram);
    if (route.stream == steer::Steering::none) {
        notes_.unmatched_udp(datagram, frame_of(packet));
        return table_.reject(packet.mbuf, PacketCounter::unsteered);
    }
    if (!steering.uses_marks()) flows_.remember(packet, datagram, route);
    follow(packet, route);
}

/// A packet that has been parsed goes this way.
void RxStage::follow(const Packet& packet, const steer::Route& route) noexcept {
    if (route.stream == PacketRun::roce) return follow_roce(packet, route_of_roce(packet, packet_run_.next()));
    if (route.owner != config_.index) return edges_.steer(packet, route.owner);
    begin_run(route.stream);
    packet_run_.join(packet, route.source);
}

void RxStage::follow_roce(const Packet& packet, const steer::Route& route) noexcept {
    if (route.stream != steer::Steering::none && route.owner != config_.index) return edges_.steer(packet, route.owner);
    begin_run(PacketRun::roce);
    HeaderPrefetch::until(wire::roce_headers_end(packet_run_.next()));
    packet_run_.join_roce(packet, route, false);
}

/// Of this stream, or of RoCE, with the packet that has just been parsed.
void RxStage::begin_run(std::uint16_t stream) noexcept {
    if (stream != packet_run_.stream && packet_run_.count > 0) {
        const wire::Datagram parsed = packet_run_.next();
        end_run();
        packet_run_.next() = parsed;
    }
    packet_run_.stream = stream;
}

void RxStage::end_run() noexcept {
    const std::uint32_t count = std::exchange(packet_run_.count, 0);
    if (count == 0) return;
    if (packet_run_.stream == PacketRun::roce)
        roce_.add_burst({{packet_run_.packets.data(), count},
                         packet_run_.datagrams.data(),
                         packet_run_.routes.data(),
                         packet_run_.decoded.data(),
                         packet_run_.roce_packets.data()},
                        headers_);
    else
        assemble_run(count);
}

/// A packet in several buffers, a piece of a datagram, or one that ends here.
void RxStage::process_odd(const Packet& packet, wire::Verdict verdict, const wire::Datagram& datagram,
                          port::LivePort* from) noexcept {
    if (packet.chained()) return process_chain(packet, from);
    if (verdict != PacketCounter::malformed_ip_fragment) return end_packet(packet, verdict, from);
    if (const std::optional<Packet> whole = pieces_.join(packet, datagram, time_)) process_chain(*whole, from);
}

/// The same for a packet in several buffers, or a datagram of several packets.
void RxStage::process_chain(const Packet& packet, port::LivePort* from) noexcept {
    const bool one_packet = packet.scattered();
    if (one_packet && packet.mbuf->nb_segs > RxPieces::segments_max)
        return reject(table_, packet, PacketCounter::malformed_truncated);
    // Only headers are read, and they are all in `head`, or the frame is no longer than that.
    const std::byte* const head = pieces_.head_of(packet).data();
    wire::Datagram datagram;
    const wire::Verdict verdict = wire::parse_frame(head, packet.wire_bytes, packet.wire_bytes, datagram);
    const bool roce = verdict == wire::ok && config_.steering[packet.port]->is_roce(datagram);
    // These are read as a whole; a RoCE packet's checksum goes over all of it.
    if (one_packet && (roce || verdict == PacketCounter::malformed_ip_fragment ||
                       verdict == PacketCounter::not_for_us_arp || verdict == PacketCounter::not_for_us_icmp)) {
        if (const std::optional<Packet> whole = pieces_.in_one_buffer(packet)) process_some({&*whole, 1}, from);
        return;
    }
    if (verdict != wire::ok) return reject(table_, packet, verdict);
    const steer::Route route = route_of(packet, datagram);
    if (route.stream == steer::Steering::none) {
        if (!roce) notes_.unmatched_udp(datagram, head);
        const bool missed = decapsulation_.missed(packet.port, datagram);
        reject(table_, packet, missed ? PacketCounter::ip_fragment_encapsulated : PacketCounter::unsteered);
    } else if (roce) {
        reject(table_, packet, PacketCounter::ip_fragment_roce);
    } else if (route.owner != config_.index) {
        edges_.steer(packet, route.owner);
    } else {
        pieces_.assemble(packet, head, datagram, route);
    }
}

void RxStage::end_packet(const Packet& packet, PacketCounter counter, port::LivePort* from) noexcept {
    if (from != nullptr && (counter == PacketCounter::not_for_us_arp || counter == PacketCounter::not_for_us_icmp))
        from->answer({frame_of(packet), packet.captured_bytes}, counter);
    if (counter == PacketCounter::not_for_us_ethertype || counter == PacketCounter::not_for_us_ip_protocol)
        notes_.foreign({frame_of(packet), packet.captured_bytes});
    table_.reject(packet.mbuf, counter);
}

/// The first `count` packets of the run, which are all of one stream: decoded together, then collected.
void RxStage::assemble_run(std::uint32_t count) noexcept {
    const std::uint16_t stream_index = packet_run_.stream;
    const StreamRuntime& stream = streams_[stream_index];
    if (stream.lane_by_port)
        for (std::uint32_t i = 0; i < count; ++i)
            packet_run_.datagrams[i].lane = stream.lane_of(packet_run_.sources[i]);
    stream.format->decode_burst(stream.context, {packet_run_.datagrams.data(), count}, fragments_.data(),
                                verdicts_.data());
    const bool identified = !RxSources::has_to_identify(stream);
    const bool by_arrival = stream.numbered_by_arrival;
    reduce::FragmentConverter* const converter = config_.converter;
    std::uint32_t good = 0;  // these move to the front
    for (std::uint32_t i = 0; i < count; ++i) {
        const wire::Verdict verdict =
            identified ? verdicts_[i]
                       : sources_.identify(stream_index, fragments_[i], packet_run_.sources[i], verdicts_[i]);
        if (verdict != wire::ok) [[unlikely]] {
            notes_.refused(stream_index, packet_run_.sources[i], verdict, packet_run_.datagrams[i],
                           packet_run_.datagrams[i].payload_bytes, fragments_[i]);
            if (verdict == PacketCounter::control && stream.context.in_sequence && fragments_[i].in_sequence)
                table_.note_heartbeat(packet_run_.sources[i], fragments_[i], packet_run_.times[i]);
            table_.reject(packet_run_.buffers[i], verdict);
            continue;
        }
        const std::uint32_t source = packet_run_.sources[i];
        fragments_[i].sender = sources_.sender_of(source, packet_run_.datagrams[i], fragments_[i].lane);
        sources_.count(source);
        if (fragments_[i].sender == OtherSenders::too_many) [[unlikely]] {
            table_.reject(packet_run_.buffers[i], PacketCounter::conflict);
            continue;
        }
        headers_.next();
        // assemble::origin_of looks at them, when the run is added.
        if (fragments_[i].offset == 0) rte_prefetch0(fragments_[i].payload + assemble::print_payload_bytes - 1);
        if (by_arrival) fragments_[i].number = sources_.next_arrival(stream_index);
        if (good != i) [[unlikely]] {
            packet_run_.buffers[good] = packet_run_.buffers[i];
            packet_run_.times[good] = packet_run_.times[i];
            packet_run_.sources[good] = packet_run_.sources[i];
            fragments_[good] = fragments_[i];
        }
        if (converter != nullptr) converter->convert(packet_run_.sources[good], fragments_[good]);
        ++good;
    }
    if (good == 0) return;
    headers_.expect(*static_cast<rte_mbuf*>(packet_run_.buffers[good - 1]), fragments_[good - 1].payload);
    table_.add_burst(
        {{packet_run_.sources.data(), good}, fragments_.data(), packet_run_.buffers.data(), packet_run_.times.data()});
}

void RxStage::begin_pass(std::uint8_t pass) noexcept {
    passes_.begin(pass);
    pieces_.flush();  // the same ones come again
    roce_.begin_pass(time_);
    table_.begin_pass(passes_.shift(), passes_.epoch(), time_);
    sources_.begin_pass();
}

/// All packets of the first pass have been worked on: RoCE messages that wait for more learn their numbers now.
void RxStage::close_first_pass() noexcept {
    roce_.finish(time_);
    passes_.closed();
}

/// Closes what is due, by the time up to which all inputs have given everything.
void RxStage::expire() noexcept {
    TimeNs reached = times_.all();
    table_.hold_time(reached != InputTimes::nothing_yet ? reached : never);
    if (reached == InputTimes::nothing_yet) return;
    if (reached == never) reached = time_;
    roce_.expire(reached);
    table_.expire(reached);
    pieces_.expire(reached);
}

void RxStage::finish_if_done() noexcept {
    if (!own_ended_ || !edges_.all_taken() || !edges_.flush()) return;
    if (!done_) {
        done_ = true;
        pieces_.flush();
        roce_.finish(time_);
        table_.finish(time_);
        edges_.send_descriptors();
    }
    if (table_.all_sent()) edges_.publish_end(time_);
}

void RxStage::publish_buffers() noexcept {
    const std::uint32_t held = table_.buffers_held();
    buffers_held_.store(held, std::memory_order_relaxed);
    if (held > buffers_highest_.load(std::memory_order_relaxed))
        buffers_highest_.store(held, std::memory_order_relaxed);
    const std::uint32_t cells = table_.cells_held();
    cells_held_.store(cells, std::memory_order_relaxed);
    if (cells > cells_highest_.load(std::memory_order_relaxed)) cells_highest_.store(cells, std::memory_order_relaxed);
}

}  // namespace weir::stages

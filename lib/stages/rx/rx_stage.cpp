#include "stages/rx/rx_stage.hpp"

#include <rte_prefetch.h>

#include <algorithm>

#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::pipeline {

using core::PacketCounter;
using port::Packet;

namespace {

const std::byte* bytes_of(const Packet& packet) noexcept {
    return rte_pktmbuf_mtod(packet.mbuf, const std::byte*);
}

void add(std::atomic<std::uint64_t>& value, std::uint64_t n) noexcept {
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);  // one writer
}

}  // namespace

RxStage::RxStage(const Config& config, const std::vector<StreamRuntime>& streams, RxSignals& own, const RunSignals& run)
    : config_(config),
      streams_(streams),
      own_(own),
      run_(run),
      rules_(config.rules),
      notes_(streams, config.table.sources),
      table_(config.table, packets_, messages_, port::release_buffers),
      reassembly_(config.reassembly),
      arrivals_(streams.size()),
      stashes_(config.steer_out.size()),
      head_(config.reassembly.header_bytes),
      until_(config.ports.size() + config.rings.size() + config.steer_in.size(), nothing_yet),
      steer_promises_(config.steer_in.size()),
      source_packets_(config.table.sources),
      source_missing_(config.table.sources),
      queue_pairs_(config.table.sources) {
    if (!config.listener.sources.empty())
        listener_ = std::make_unique<roce::Listener>(config.listener, table_, packets_);
    if (!config.responder.sources.empty()) make_responder();
    for (const StreamRuntime& stream : streams) {
        check_unmatched_icrc_ |= stream.roce && stream.check_icrc;
        first_tracker_.push_back(static_cast<std::uint32_t>(trackers_.size()));
        for (std::uint32_t i = 0; stream.sequenced() && i < stream.source_count; ++i)
            trackers_.emplace_back(stream.context.sequence_bits);
    }
}

bool RxStage::may_take() noexcept {
    // Every packet of a burst may complete a datagram of pieces that wait.
    const bool room = table_.has_room(burst + reassembly_.held()) &&
                      (config_.pool == nullptr || config_.pool->available() >= pool_reserve);
    if (own_.need_room.load(std::memory_order_relaxed) == room) own_.need_room.store(!room, std::memory_order_relaxed);
    if (!room) {
        // What proves nothing goes first, here; open events are the builder's to end.
        if (!table_.cancel_oldest_probation() && run_.builders_empty() && listener_ != nullptr)
            listener_->evict_oldest(time_);
        if (config_.wait) {
            blocked(Blocked::memory);
            return false;
        }
    }
    if (!config_.wait) return true;
    // A packet may have an acknowledgement and a congestion notification to answer it.
    if (config_.answer_log != nullptr && !config_.answer_log->has_room(4 * burst)) {
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
        blocked(Blocked::memory);
        return false;
    }
    return true;
}

void RxStage::end_packet(const Packet& packet, PacketCounter counter, port::LivePort* from) noexcept {
    if (from != nullptr && (counter == PacketCounter::not_for_us_arp || counter == PacketCounter::not_for_us_icmp))
        from->answer({bytes_of(packet), packet.captured_bytes}, counter);
    table_.reject(packet.mbuf, counter);
}

void RxStage::steer(const Packet& packet, std::uint16_t owner) noexcept {
    Stash& stash = stashes_[owner];
    stash.packets[stash.count++] = packet;  // flushed before each burst, and a burst is as large as the stash
    if (config_.passes != nullptr) add(config_.passes->rx[config_.index].steered, 1);
}

void RxStage::count_source(std::uint32_t source) noexcept {
    add(source_packets_[source], 1);
}

/// Before its first packet is counted.
void RxStage::note_source(std::uint32_t source, const wire::Datagram& datagram) noexcept {
    if (source_packets_[source].load(std::memory_order_relaxed) == 0) [[unlikely]]
        notes_.came_from(source, datagram);
}

bool RxStage::source_of(const StreamRuntime& stream, const wire::Fragment& fragment, std::uint32_t& source) noexcept {
    if (!stream.source_in_header) return true;
    const std::size_t found = stream.source_ids.find(fragment.header_source);
    if (found == core::NumberIndex::absent) return false;
    source = stream.first_source + static_cast<std::uint32_t>(found);
    return true;
}

/// Follows the sequence numbers of a source. Whatever becomes of a packet, one that could be read has arrived.
void RxStage::track(std::uint16_t stream_index, wire::Fragment& fragment, std::uint32_t& source,
                    wire::Verdict verdict) noexcept {
    const StreamRuntime& stream = streams_[stream_index];
    if (verdict == PacketCounter::control) {
        if (!source_of(stream, fragment, source)) return;
        count_source(source);
    } else if (verdict != wire::ok) {
        return;
    }
    assemble::SequenceTracker& tracker = trackers_[first_tracker_[stream_index] + source - stream.first_source];
    fragment.fresh = tracker.add(fragment.sequence) == assemble::SequenceTracker::Seen::fresh;
    source_missing_[source].store(tracker.missing(), std::memory_order_relaxed);
}

void RxStage::assemble_run(std::uint16_t stream_index, std::uint32_t count) noexcept {
    const StreamRuntime& stream = streams_[stream_index];
    if (stream.lane_by_port)
        for (std::uint32_t i = 0; i < count; ++i)
            run_datagrams_[i].lane = static_cast<std::uint8_t>((run_sources_[i] - stream.first_source) & 1U);
    stream.format->decode_burst(stream.context, {run_datagrams_.data(), count}, fragments_.data(), verdicts_.data());
    const bool sequenced = stream.sequenced();
    std::uint32_t good = 0;  // these move to the front
    for (std::uint32_t i = 0; i < count; ++i) {
        wire::Verdict verdict = verdicts_[i];
        if (verdict == wire::ok && !source_of(stream, fragments_[i], run_sources_[i]))
            verdict = PacketCounter::malformed_source;
        if (sequenced) track(stream_index, fragments_[i], run_sources_[i], verdict);
        if (verdict != wire::ok) {
            notes_.refused(stream_index, run_sources_[i], verdict, run_datagrams_[i], run_datagrams_[i].payload_bytes,
                           fragments_[i]);
            table_.reject(run_packets_[i].mbuf, verdict);
            continue;
        }
        note_source(run_sources_[i], run_datagrams_[i]);
        if (stream.numbered_by_arrival) fragments_[i].number = arrivals_[stream_index]++;
        if (good != i) {
            run_packets_[good] = run_packets_[i];
            run_sources_[good] = run_sources_[i];
            fragments_[good] = fragments_[i];
        }
        ++good;
    }
    if (good == 0) return;
    table_.look_ahead({run_sources_.data(), good}, fragments_.data(), expected_.data());
    for (std::uint32_t i = 0; i < good; ++i) {
        count_source(run_sources_[i]);
        prefetch_next();
        if (config_.converter != nullptr) config_.converter->convert(run_sources_[i], fragments_[i]);
        table_.add(run_sources_[i], fragments_[i], run_packets_[i].mbuf, run_packets_[i].time_ns, expected_[i]);
    }
    expect_headers(run_packets_[good - 1], fragments_[good - 1].payload);
}

/// The packets to come are like this one.
void RxStage::expect_headers(const Packet& packet, const std::byte* end) noexcept {
    second_line_ = end - bytes_of(packet) > static_cast<std::ptrdiff_t>(core::cache_line_bytes);
}

bool RxStage::checks_icrc(const flow::Route& route) const noexcept {
    return route.stream != flow::Steering::none ? streams_[route.stream].check_icrc : check_unmatched_icrc_;
}

void RxStage::assemble_roce(const Packet& packet, const wire::Datagram& datagram, const flow::Route& route) noexcept {
    const bool matched = route.stream != flow::Steering::none;
    wire::RocePacket roce;
    const wire::Verdict verdict = wire::decode_roce(datagram, checks_icrc(route), roce);
    if (answers(route, verdict)) return respond(packet, datagram, route.source, roce, verdict);
    if (verdict == wire::ok && matched) {
        expect_headers(packet, roce.payload);
        note_source(route.source, datagram);
        count_source(route.source);
        listener_->add(route.source, roce, packet.mbuf, packet.time_ns);
        return;
    }
    if (verdict == PacketCounter::not_for_us_roce_request && matched)
        listener_->skip(route.source, roce, packet.time_ns);
    if (verdict == wire::ok) notes_.unmatched_roce(datagram, roce.qp);
    table_.reject(packet.mbuf, verdict == wire::ok ? PacketCounter::unsteered : verdict);
}

void RxStage::prefetch_next() noexcept {
    if (ahead_ == ahead_end_) return;
    // Headers of all layers end in the first or the second line of the frame.
    rte_prefetch0(bytes_of(*ahead_));
    if (second_line_) rte_prefetch0(bytes_of(*ahead_) + core::cache_line_bytes);
    ++ahead_;
}

/// For packets that are read whole: from there on the hardware's prefetchers follow.
void RxStage::prefetch_body(const Packet& packet) noexcept {
    constexpr std::uint32_t ahead_bytes = 1024;
    const std::uint32_t bytes = std::min<std::uint32_t>(packet.captured_bytes, ahead_bytes);
    for (std::uint32_t at = core::cache_line_bytes; at < bytes; at += core::cache_line_bytes)
        rte_prefetch0(bytes_of(packet) + at);
}

void RxStage::begin_pass(std::uint8_t pass) noexcept {
    passes_begun_ += static_cast<std::uint8_t>(pass - pass_);
    pass_ = pass;
    flush_pieces();  // the same ones come again
    if (listener_ != nullptr) listener_->begin_pass(time_);
    if (frames_ != nullptr) frames_->finish();
    if (responder_ != nullptr) responder_->begin_pass();
    const std::uint64_t span = config_.passes->span.load(std::memory_order_relaxed);
    const std::uint64_t epochs = config_.passes->epochs.load(std::memory_order_relaxed);
    table_.begin_pass(passes_begun_ * span, static_cast<std::uint32_t>(passes_begun_ * epochs), time_);
    std::ranges::fill(arrivals_, 0);
    for (assemble::SequenceTracker& tracker : trackers_) tracker.begin_anew();
}

/// A burst in which a pass over the captures begins.
void RxStage::process_passes(std::span<const Packet> packets, port::LivePort* from) noexcept {
    while (!packets.empty()) {
        const std::uint8_t pass = packets.front().pass;
        const auto end = std::ranges::find_if(packets, [&](const Packet& packet) { return packet.pass != pass; });
        if (pass != pass_) begin_pass(pass);
        const auto count = static_cast<std::size_t>(end - packets.begin());
        process(packets.first(count), from);
        packets = packets.subspan(count);
    }
}

/// All packets of the first pass have been worked on: RoCE messages that wait for more learn their numbers now.
void RxStage::close_first_pass() noexcept {
    if (listener_ != nullptr) listener_->finish(time_);
    if (frames_ != nullptr) frames_->finish();
    config_.passes->rx[config_.index].closed.store(true, std::memory_order_release);
}

void RxStage::count_processed(std::uint32_t count) noexcept {
    if (config_.passes == nullptr) return;
    std::atomic<std::uint64_t>& processed = config_.passes->rx[config_.index].processed;
    processed.store(processed.load(std::memory_order_relaxed) + count, std::memory_order_release);  // one writer
}

void RxStage::process(std::span<const Packet> packets, port::LivePort* from) noexcept {
    if (packets.empty()) return;
    if (packets.back().pass != pass_) return process_passes(packets, from);
    // While packets are being worked on, the headers of the next ones are on their way from memory. One at a time: a
    // core has few line fill buffers, and stands still when it asks for more.
    ahead_ = packets.data();
    ahead_end_ = ahead_ + std::min<std::size_t>(packets.size(), prefetched);
    while (ahead_ != ahead_end_) prefetch_next();
    for (std::size_t at = 0; at < packets.size(); at += prefetched) {
        const std::size_t count = std::min<std::size_t>(packets.size() - at, prefetched);
        ahead_end_ = ahead_ + std::min<std::size_t>(packets.size() - at - count, prefetched);
        process_some(packets.subspan(at, count), from);
        while (ahead_ != ahead_end_) prefetch_next();
    }
}

/// Which stream a datagram belongs to, that a rule's mark may tell apart from others.
flow::Route RxStage::route_of(const Packet& packet, const wire::Datagram& datagram) const noexcept {
    const flow::Steering& steering = *config_.steering[packet.port];
    const auto mark = steering.uses_marks() ? mark_of(packet) : std::nullopt;
    return steering.is_roce(datagram) ? steering.route_roce(datagram, mark) : steering.route_udp(datagram, mark);
}

void RxStage::process_some(std::span<const Packet> packets, port::LivePort* from) noexcept {
    std::uint16_t run_stream = flow::Steering::none;
    std::uint32_t run = 0;
    const auto end_run = [&]() noexcept {
        if (run > 0) assemble_run(run_stream, run);
        run = 0;
    };
    for (const Packet& packet : packets) {
        time_ = std::max(time_, packet.time_ns);
        if (packet.pieces() > 0) [[unlikely]] {
            end_run();
            process_whole(packet);
            continue;
        }
        if (packet.scattered()) [[unlikely]] {
            end_run();
            process_scattered(packet, from);
            continue;
        }
        wire::Datagram& datagram = run_datagrams_[run];
        const wire::Verdict verdict =
            wire::parse_frame(bytes_of(packet), packet.captured_bytes, packet.wire_bytes, datagram);
        if (verdict == PacketCounter::malformed_ip_fragment) [[unlikely]] {
            const Packet whole = join(packet, datagram);
            if (whole.mbuf == nullptr) continue;
            end_run();
            process_whole(whole);
            continue;
        }
        if (verdict != wire::ok) {
            end_packet(packet, verdict, from);
            continue;
        }
        const bool roce = config_.steering[packet.port]->is_roce(datagram);
        const flow::Route route = route_of(packet, datagram);
        if (route.stream == flow::Steering::none && !roce) {
            notes_.unmatched_udp(datagram);
            table_.reject(packet.mbuf, PacketCounter::unsteered);
        } else if (route.stream != flow::Steering::none && route.owner != config_.index) {
            steer(packet, route.owner);
        } else if (roce) {
            prefetch_next();
            const wire::Datagram parsed = datagram;
            end_run();
            if (&packet != &packets.back() && checks_icrc(route)) prefetch_body(*(&packet + 1));
            assemble_roce(packet, parsed, route);
        } else {
            // Neighbours of one stream are decoded together: the format is chosen once for all of them.
            if (route.stream != run_stream && run > 0) {
                const wire::Datagram parsed = datagram;
                end_run();
                run_datagrams_[0] = parsed;
            }
            run_stream = route.stream;
            run_packets_[run] = packet;
            run_sources_[run++] = route.source;
        }
    }
    end_run();
}

/// Those that the device calls bad end here; the others move together.
std::uint32_t RxStage::without_bad_checksums(std::uint32_t count) noexcept {
    std::uint32_t good = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        if (port::has_bad_checksum(*taken_[i].mbuf))
            table_.reject(taken_[i].mbuf, PacketCounter::malformed_udp_checksum);
        else
            taken_[good++] = taken_[i];
    }
    return good;
}

/// From ports and feeders. Ends when there are none left that still bring packets.
std::size_t RxStage::take_own(TimeNs now) noexcept {
    std::size_t work = 0;
    bool ended = true;
    TimeNs* until = until_.data();
    for (PortInput& input : config_.ports) {
        TimeNs& own_until = *until++;
        if (run_.stop_input.load(std::memory_order_relaxed)) {
            own_until = never;
            continue;
        }
        ended = false;
        if (!flush_stashes()) break;  // a stash has room for one burst
        const port::LivePort::Burst got = input.port->receive(input.queue, taken_, now, own_time_);
        count_received(got.count);
        // While the queue is not empty, its next packets may have come any time since the last of these.
        const TimeNs over = input.port->over(now);
        const TimeNs next = got.count < burst ? over : std::min(over, taken_[burst - 1].time_ns);
        if (got.count > 0) table_.hold_time(until_all_but(own_until));
        if (config_.record != nullptr) config_.record->add({taken_.data(), got.count}, input.queue);
        const std::uint32_t good = got.bad_checksums ? without_bad_checksums(got.count) : got.count;
        const std::uint32_t kept = rules_.empty() ? good : by_rules(good, &input);
        input.settled |= got.count < burst;
        process({taken_.data(), kept}, input.port);
        own_until = std::max(own_until, next);
        time_ = std::max(time_, over);
        work += got.count;
    }
    until = until_.data() + config_.ports.size();
    for (const RingInput& input : config_.rings) {
        TimeNs& own_until = *until++;
        if (!flush_stashes()) {
            ended = false;
            break;
        }
        const bool last = input.ended->load(std::memory_order_acquire);
        const std::uint32_t count = input.ring->pop(taken_);
        count_received(count);
        if (count > 0) {
            own_until = std::max(own_until, taken_[count - 1].time_ns);
            table_.hold_time(until_all_but(own_until));
        } else if (last) {
            own_until = never;
        }
        if (config_.record != nullptr) config_.record->add({taken_.data(), count}, 0);
        process({taken_.data(), rules_.empty() ? count : by_rules(count, nullptr)}, nullptr);
        count_processed(count);
        if (count > 0 || !last) ended = false;
        work += count;
    }
    own_ended_ = ended;
    const std::span own(until_.data(), config_.ports.size() + config_.rings.size());
    own_time_ = own.empty() ? never : std::ranges::min(own);
    return work;
}

/// What all inputs but this one have given, as far as they have begun; its own packets come in order of time.
TimeNs RxStage::until_all_but(const TimeNs& input) const noexcept {
    TimeNs least = never;
    for (const TimeNs& until : until_)
        if (&until != &input && until != nothing_yet) least = std::min(least, until);
    return least;
}

/// Closes what is due, by the time up to which all inputs have given everything.
void RxStage::expire() noexcept {
    TimeNs settled = std::min(own_time_, steered_time_);
    table_.hold_time(settled != nothing_yet ? settled : never);
    if (settled == nothing_yet) return;
    if (settled == never) settled = time_;
    if (listener_ != nullptr) listener_->expire(settled);
    if (frames_ != nullptr) frames_->expire(settled);
    table_.expire(settled);
    expire_pieces(settled);
}

void RxStage::count_received(std::uint32_t count) noexcept {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < count; ++i) bytes += taken_[i].wire_bytes;
    add(received_packets_, count);
    add(received_bytes_, bytes);
}

void RxStage::finish_if_done() noexcept {
    if (!own_ended_ || !steered_ended_ || !flush_stashes()) return;
    if (!done_) {
        done_ = true;
        flush_pieces();
        if (listener_ != nullptr) listener_->finish(time_);
        if (frames_ != nullptr) frames_->finish();
        table_.finish(time_);
        send_descriptors();
    }
    if (!table_.all_sent() || own_.finished.load(std::memory_order_relaxed)) return;
    // What was due by the last packet timed out, whether or not this lcore came to promise that time before.
    if (own_.watermark.load(std::memory_order_relaxed) < time_) own_.watermark.store(time_, std::memory_order_release);
    own_.finished.store(true, std::memory_order_release);
}

std::size_t RxStage::poll(TimeNs now) noexcept {
    std::size_t work = take_commands();
    if (responder_ != nullptr) work += take_queue_pair_command();
    send_descriptors();
    if (flush_stashes() && !done_ && may_take()) {
        work += take_own(now);
        work += take_steered();
        if (config_.passes != nullptr && config_.passes->close.load(std::memory_order_acquire) &&
            !config_.passes->rx[config_.index].closed.load(std::memory_order_relaxed))
            close_first_pass();
        expire();
        send_descriptors();
        static_cast<void>(flush_stashes());
    }
    if (responder_ != nullptr) flush_answers();
    table_.end_burst();
    publish();
    finish_if_done();
    buffers_held_.store(table_.buffers_held(), std::memory_order_relaxed);
    if (table_.buffers_held() > buffers_highest_.load(std::memory_order_relaxed))
        buffers_highest_.store(table_.buffers_held(), std::memory_order_relaxed);
    return work;
}

}  // namespace weir::pipeline

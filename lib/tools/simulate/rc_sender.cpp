#include "simulate/rc_sender.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <thread>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::simulate {

namespace {

using core::require;
using core::TimeNs;
using roce::SendStatus;

// Offsets of the seed, apart from those of the simulator, so that one decision says nothing about another.
enum RcSalt : std::uint64_t {
    rc_drop_salt = 2000,
    rc_duplicate_salt,
    rc_truncate_salt,
    rc_cut_salt,
    rc_place_salt,
    rc_corrupt_salt,
    rc_bit_salt,
    rc_answer_salt
};

constexpr std::uint8_t acknowledge = 0x11;              // RC ACKNOWLEDGE
constexpr std::uint8_t congestion_notification = 0x81;  // CNP
constexpr TimeNs progress_ns = core::ns_per_s;
// How long an idle sender sleeps: little beside a time-out, and much beside what a look at the clock costs.
constexpr TimeNs nap_ns = 50'000;
constexpr std::uint32_t looks_before_nap = 64;

double thread_seconds() {
    return static_cast<double>(core::clock_ns(CLOCK_THREAD_CPUTIME_ID)) * 1e-9;
}

roce::Initiator::Config initiator_config(const Simulator& simulator, const RcSender::Config& config,
                                         std::uint32_t source) {
    roce::Initiator::Config out;
    out.service = wire::RoceTransport::rc;
    out.is_write = simulator.config().transport == SimulatedTransport::roce_write;
    out.qp = simulator.endpoint(source);
    out.psn = simulator.config().first_psn;
    out.path_mtu = simulator.config().mtu;
    out.rkey = simulator.config().rkey;
    if (!config.peers.empty()) {
        out.qp = config.peers[source].qp;
        out.rkey = config.peers[source].rkey;
    }
    out.window = config.window;
    out.messages_max = RcSender::messages_under_way(simulator, config.depth);
    out.ack_every = config.ack_every;
    out.timeout_ns = config.timeout_ns;
    out.retries = config.retries;
    out.rnr_retries = config.rnr_retries;
    return out;
}

void check(const RcSender::Config& config) {
    require(config.window >= 1 && config.window <= roce::Initiator::window_max,
            fmt::format("--window {}: 1 to {} packets are accepted", config.window, roce::Initiator::window_max));
    require(config.depth >= 1 && config.depth <= 65536,
            fmt::format("--depth {}: 1 to 65536 messages are accepted", config.depth));
    require(config.ack_every >= 1, "--ack-every 0: at least 1 is accepted");
    require(config.timeout_ns > 0, "--timeout: more than 0 ms is accepted");
    require(config.retries <= 1000, fmt::format("--retry {}: 0 to 1000 is accepted", config.retries));
    require(config.rnr_retries <= roce::Initiator::no_limit,
            fmt::format("--rnr-retry {}: 0 to 6, or 7 for ever, is accepted", config.rnr_retries));
    require(config.drop_answers >= 0 && config.drop_answers < 1,
            fmt::format("--drop-answers {}: a probability from 0 to below 1 is accepted", config.drop_answers));
}

}  // namespace

RcSender::Source RcSender::Result::total() const noexcept {
    Source sum;
    for (const Source& source : sources) {
        roce::Initiator::Account& all = sum.account;
        const roce::Initiator::Account& one = source.account;
        all.posted += one.posted;
        all.acknowledged += one.acknowledged;
        all.failed += one.failed;
        all.packets += one.packets;
        all.retransmitted += one.retransmitted;
        all.acks += one.acks;
        all.stale_answers += one.stale_answers;
        all.ghost_answers += one.ghost_answers;
        all.sequence_naks += one.sequence_naks;
        all.rnr_waits += one.rnr_waits;
        all.timeouts += one.timeouts;
        all.fatal_naks += one.fatal_naks;
        all.credit_waits += one.credit_waits;
        sum.dropped += source.dropped;
        sum.duplicated += source.duplicated;
        sum.truncated += source.truncated;
        sum.corrupted += source.corrupted;
        sum.emitted += source.emitted;
        sum.frame_bytes += source.frame_bytes;
        sum.answers += source.answers;
        sum.answers_dropped += source.answers_dropped;
        sum.notifications += source.notifications;
        sum.acknowledged += source.acknowledged;
    }
    return sum;
}

std::uint32_t RcSender::messages_under_way(const Simulator& simulator, std::uint32_t depth) {
    constexpr std::uint64_t messages_max = 1U << 20U;
    const std::uint64_t messages = std::uint64_t{depth} * simulator.messages_per_event();
    require(messages <= messages_max, fmt::format("--depth {}: {} WRITEs of a source under way; up to {} are accepted",
                                                  depth, messages, messages_max));
    return static_cast<std::uint32_t>(messages);
}

RcSender::RcSender(Simulator& simulator, FrameLink& link, const Config& config, const port::MacAddress& destination,
                   const std::atomic<bool>& stop)
    : simulator_(simulator),
      per_event_(simulator.messages_per_event()),
      link_(link),
      config_(config),
      stop_(stop),
      scratch_(simulator.config().mtu) {
    check(config_);
    const std::uint32_t sources = simulator.config().sources;
    if (config_.local_qp == 0) config_.local_qp = simulator.config().queue_pair;
    result_.local_qp = config_.local_qp;
    require(config_.local_qp + sources <= 1U << 24, "--local-qp: 24 bits are accepted");
    for (std::uint32_t source = 0; source < sources; ++source) {
        specs_.push_back(simulator.frame_spec(source));
        specs_.back().destination_mac = destination;
        initiators_.emplace_back(initiator_config(simulator, config_, source));
    }
    posted_.resize(sources);
    done_.resize(sources);
    result_.sources.resize(sources);
    result_.pacer = Pacer(config_.pace);
    const std::uint64_t events = simulator.config().events;
    events_end_ = events != 0 ? events : std::numeric_limits<std::uint64_t>::max();
    waiting_.reserve(std::size_t{simulator.config().reorder} + 4);
}

TimeNs RcSender::elapsed_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
}

RcSender::Result RcSender::send() {
    start_ = std::chrono::steady_clock::now();
    const double cpu_start = thread_seconds();
    TimeNs next_progress = progress_ns;
    while (!ended()) {
        const TimeNs now = elapsed_ns();
        stop_if_asked(now);
        bool busy = receive(now);
        collect();
        busy = post(now) || busy;
        busy = fill(now) || busy;
        busy = transmit() || busy;
        if (config_.on_progress && now >= next_progress) {
            config_.on_progress(static_cast<double>(now) * 1e-9);
            next_progress += progress_ns;
        }
        idle_ = busy ? 0 : idle_ + 1;
        if (!busy) wait(now);
    }
    for (std::size_t source = 0; source < initiators_.size(); ++source) {
        result_.sources[source].account = initiators_[source].account();
        result_.sources[source].next_psn = static_cast<std::uint32_t>(initiators_[source].sent_end()) & 0xffffff;
    }
    result_.seconds = static_cast<double>(elapsed_ns()) * 1e-9;
    result_.cpu_seconds = thread_seconds() - cpu_start;
    return result_;
}

void RcSender::stop_if_asked(TimeNs now) {
    const bool asked = stop_.load(std::memory_order_relaxed);
    const bool over = config_.duration_s > 0 && static_cast<double>(now) * 1e-9 >= config_.duration_s;
    if (stopped_ns_ < 0 && (asked || over)) {
        stopped_ns_ = now;
        result_.interrupted = asked;
        events_end_ = std::min(events_end_, begun_);
    }
    if (stopped_ns_ >= 0 && static_cast<double>(now - stopped_ns_) * 1e-9 > config_.grace_s)
        for (roce::Initiator& initiator : initiators_) initiator.abort();
}

/// Events that every source that still works is done with.
std::uint64_t RcSender::slowest() const noexcept {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t source = 0; source < initiators_.size(); ++source)
        if (!initiators_[source].in_error()) least = std::min(least, done_[source] / per_event_);
    return least;
}

bool RcSender::post(TimeNs now) {
    const std::uint64_t least = slowest();
    if (least == std::numeric_limits<std::uint64_t>::max()) return false;
    const std::uint64_t end = std::min(events_end_, least + config_.depth);
    while (begun_ < end) {
        if (config_.pace.events_per_s > 0) {
            const auto due = static_cast<TimeNs>(static_cast<double>(begun_) / config_.pace.events_per_s * 1e9);
            if (result_.pacer.wait_ns(due, now) > 0) break;
        }
        ++begun_;
    }
    result_.events = begun_;
    bool any = false;
    for (std::uint32_t source = 0; source < initiators_.size(); ++source) {
        for (; posted_[source] < begun_ * per_event_; ++posted_[source]) {
            if (!initiators_[source].post(message_of(source, posted_[source]))) break;
            any = true;
        }
    }
    return any;
}

/// The source's message of this index: an event, or one of the WRITEs that its frame is cut into.
roce::SendMessage RcSender::message_of(std::uint32_t source, std::uint64_t index) const noexcept {
    const std::uint64_t event = simulator_.config().first_event + index / per_event_;
    roce::SendMessage message{.id = index, .bytes = simulator_.rdma_bytes(event, source)};
    message.va =
        (config_.peers.empty() ? simulator_.rdma_va(source) : config_.peers[source].va) + simulator_.rdma_offset(event);
    bool last = true;
    if (!simulator_.writes().empty()) {
        const FrameWrites::Write& write = simulator_.writes()[index % per_event_];
        message.bytes = write.bytes;
        message.va += write.offset;
        last = write.last;
    }
    if (simulator_.config().immediate && last) message.immediate = static_cast<std::uint32_t>(event);
    return message;
}

void RcSender::enqueue(const Planned& packet) noexcept {
    waiting_.push_back(packet);
    Planned& added = waiting_.back();
    added.sequence = sequence_++;
    const std::uint64_t draw = mix(simulator_.config().seed + rc_place_salt, added.sequence);
    added.place = added.sequence + draw % (simulator_.config().reorder + 1ULL);
    std::push_heap(waiting_.begin(), waiting_.end(), Later{});
}

/// Asks the queue pairs in turn for a packet, and decides what the network does to it. False: none has one.
bool RcSender::plan_next(TimeNs now) noexcept {
    const SimulatorConfig& config = simulator_.config();
    const auto sources = static_cast<std::uint32_t>(initiators_.size());
    Planned planned{};
    for (std::uint32_t i = 0; i < sources; ++i) {
        const std::uint32_t source = (turn_ + i) % sources;
        if (!initiators_[source].next(now, planned.packet)) continue;
        turn_ = source + 1;
        Source& account = result_.sources[source];
        const std::uint64_t salt = mix(source, initiators_[source].account().packets);
        if (chance(config.seed + rc_drop_salt, salt) < config.drop) {
            ++account.dropped;
            return true;
        }
        planned.source = source;
        planned.truncated = chance(config.seed + rc_truncate_salt, salt) < config.truncate;
        planned.corrupted = chance(config.seed + rc_corrupt_salt, salt) < config.corrupt;
        account.truncated += planned.truncated ? 1 : 0;
        account.corrupted += planned.corrupted ? 1 : 0;
        enqueue(planned);
        if (chance(config.seed + rc_duplicate_salt, salt) < config.duplicate) {
            ++account.duplicated;
            planned.truncated = planned.corrupted = false;
            enqueue(planned);
        }
        return true;
    }
    return false;
}

bool RcSender::take_planned(TimeNs now, Planned& out) noexcept {
    // The first in line may go as soon as nothing that is planned later can get a place before it; and at once where
    // nothing is.
    while ((waiting_.empty() || waiting_.front().place >= sequence_) && plan_next(now)) {
    }
    if (waiting_.empty()) return false;
    std::pop_heap(waiting_.begin(), waiting_.end(), Later{});
    out = waiting_.back();
    waiting_.pop_back();
    return true;
}

bool RcSender::fill(TimeNs now) noexcept {
    bool any = false;
    Planned planned{};
    while (filled_ < FrameLink::slots) {
        if (config_.pace.gbps > 0 && result_.pacer.wait_ns(due_ns_, now) > 0) break;
        if (!take_planned(now, planned)) break;
        write(planned);
        any = true;
    }
    return any;
}

void RcSender::write(const Planned& planned) noexcept {
    const std::uint64_t seed = simulator_.config().seed;
    const std::span<std::byte> out = link_.slot(filled_);
    wire::RocePacket packet = planned.packet.packet;
    const std::uint64_t index = planned.packet.id;
    std::uint32_t offset = planned.packet.offset;
    if (!simulator_.writes().empty()) offset += simulator_.writes()[index % per_event_].offset;
    simulator_.rdma_content(simulator_.config().first_event + index / per_event_, planned.source, offset,
                            {scratch_.data(), packet.bytes});
    packet.payload = scratch_.data();
    std::size_t bytes = wire::write_roce_frame(specs_[planned.source], packet, out);
    assert(bytes != 0);
    const std::uint32_t header_bytes = simulator_.frame_header_bytes();
    if (planned.corrupted) flip_bit(out.first(bytes), header_bytes, mix(seed + rc_bit_salt, planned.sequence));
    if (planned.truncated) bytes = header_bytes + mix(seed + rc_cut_salt, planned.sequence) % (bytes - header_bytes);
    bytes_[filled_++] = static_cast<std::uint32_t>(bytes);
    Source& account = result_.sources[planned.source];
    ++account.emitted;
    account.frame_bytes += bytes;
    // due_ns() says when the frame that it is told of was due; what it has added is when the next one is.
    if (config_.pace.gbps > 0) {
        static_cast<void>(result_.pacer.due_ns(0, static_cast<std::uint32_t>(bytes)));
        Pacer ahead = result_.pacer;
        due_ns_ = ahead.due_ns(0, 0);
    }
}

bool RcSender::transmit() noexcept {
    if (sent_ == filled_) return false;
    const std::uint32_t count = link_.send(sent_, {bytes_.data() + sent_, filled_ - sent_});
    sent_ += count;
    if (sent_ == filled_) sent_ = filled_ = 0;
    return count > 0;
}

bool RcSender::receive(TimeNs now) noexcept {
    std::array<std::span<const std::byte>, FrameLink::slots> frames;
    const std::uint32_t count = link_.receive(frames);
    for (std::uint32_t i = 0; i < count; ++i) hear(frames[i], now);
    return count > 0;
}

void RcSender::hear(std::span<const std::byte> frame, TimeNs now) noexcept {
    wire::Datagram datagram;
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    if (wire::parse_frame(frame.data(), bytes, bytes, datagram) != wire::ok) return answer_neighbour(frame);
    wire::RocePacket packet;
    if (datagram.dport != wire::roce_port) {
        ++result_.other_frames;
        return;
    }
    const wire::Verdict verdict = wire::decode_roce(datagram, true, packet);
    const std::uint32_t source = packet.qp - config_.local_qp;
    if (verdict == wire::Verdict::not_for_us_roce_management && packet.opcode == congestion_notification &&
        source < initiators_.size()) {
        ++result_.sources[source].notifications;
    } else if (verdict == wire::Verdict::not_for_us_roce_response && packet.opcode == acknowledge &&
               source < initiators_.size()) {
        Source& account = result_.sources[source];
        const std::uint64_t draw = mix(source, account.answers++);
        if (chance(simulator_.config().seed + rc_answer_salt, draw) < config_.drop_answers) {
            ++account.answers_dropped;
            return;
        }
        initiators_[source].answered({.psn = packet.psn, .syndrome = packet.syndrome, .msn = packet.msn}, now);
    } else if (verdict == wire::Verdict::not_for_us_roce_response && packet.opcode == acknowledge) {
        if (result_.stray_answers++ == 0) result_.stray_qp = packet.qp;
    } else if (verdict == wire::Verdict::not_for_us_roce_response ||
               verdict == wire::Verdict::not_for_us_roce_management ||
               verdict == wire::Verdict::not_for_us_roce_request || verdict == wire::ok) {
        ++result_.other_frames;
    } else {
        ++result_.bad_answers;
    }
}

/// Who wants to answer us has to find us first.
void RcSender::answer_neighbour(std::span<const std::byte> frame) noexcept {
    if (filled_ == FrameLink::slots) return;
    for (const wire::FrameSpec& spec : specs_) {
        port::PortAddress own{.mac = spec.source_mac, .ip = spec.src, .ipv6 = {}, .has_ipv6 = spec.ipv6.has_value()};
        if (spec.ipv6) own = {.mac = spec.source_mac, .ip = 0, .ipv6 = spec.ipv6->src, .has_ipv6 = true};
        const std::size_t bytes = port::answer(frame, own, link_.slot(filled_));
        if (bytes == 0) continue;
        bytes_[filled_++] = static_cast<std::uint32_t>(bytes);
        return;
    }
    ++result_.other_frames;
}

void RcSender::collect() noexcept {
    std::uint64_t whole = std::numeric_limits<std::uint64_t>::max();
    for (std::uint32_t source = 0; source < initiators_.size(); ++source) {
        Source& account = result_.sources[source];
        for (roce::SendResult result; initiators_[source].take(result); ++done_[source]) {
            if (result.status == SendStatus::acknowledged) {
                ++account.acknowledged;
                const std::uint64_t event = simulator_.config().first_event + result.id / per_event_;
                if (account.acknowledged % per_event_ == 0)
                    result_.message_bytes += simulator_.message_bytes(event, source);
            } else if (account.status == SendStatus::acknowledged) {
                account.status = result.status;
            }
        }
        whole = std::min(whole, account.acknowledged / per_event_);
    }
    result_.events_acknowledged = whole;
}

bool RcSender::ended() const noexcept {
    if (!waiting_.empty() || filled_ != 0) return false;
    for (std::size_t source = 0; source < initiators_.size(); ++source) {
        if (done_[source] < posted_[source]) return false;
        if (!initiators_[source].in_error() && posted_[source] / per_event_ < events_end_) return false;
    }
    return true;
}

void RcSender::wait(TimeNs now) {
    if (idle_ < looks_before_nap) {
        std::this_thread::yield();
        return;
    }
    TimeNs until = now + nap_ns;
    for (const roce::Initiator& initiator : initiators_) until = std::min(until, initiator.next_ns());
    if (until > now) std::this_thread::sleep_for(std::chrono::nanoseconds(until - now));
}

}  // namespace weir::simulate

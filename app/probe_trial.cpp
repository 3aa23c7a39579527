#include "probe_trial.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "assemble/event_builder.hpp"
#include "assemble/message_table.hpp"
#include "core/error.hpp"
#include "plan/setup.hpp"
#include "probe/proposal.hpp"
#include "probe/source_keys.hpp"
#include "roce/listener/listener.hpp"
#include "stages/rx/rx_notes.hpp"
#include "stages/rx/rx_sources.hpp"

namespace weir::app {

namespace {

using wire::PacketCounter;

// A replay waits where it has no room; here there is room for whatever the sample has.
constexpr std::uint32_t trial_events_open = 4096;
constexpr std::uint32_t trial_messages_most = 1U << 17U;

/// Payload that nobody kept; the assembly only notes where it lies.
const std::byte* payload_not_kept() {
    static const std::vector<std::byte> zeros(std::size_t{1} << 17U);
    return zeros.data();
}

std::uint32_t messages_for(const config::RunConfig& run) {
    const std::uint64_t wanted = std::uint64_t{trial_events_open} * run.sources.size();
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, 1024, trial_messages_most));
}

std::uint32_t events_for(const config::RunConfig& run) {
    const std::size_t sources = std::max<std::size_t>(1, run.sources.size());
    return std::max(16U, std::min(trial_events_open, static_cast<std::uint32_t>(messages_for(run) / sources)));
}

/// Numbers of closed events that are remembered.
std::uint32_t horizon_for(const config::RunConfig& run) {
    return 2 * events_for(run) + 64;
}

assemble::MessageConfig trial_messages(const config::RunConfig& run, const std::vector<stages::StreamRuntime>& streams,
                                       std::size_t packets) {
    assemble::MessageConfig out;
    out.sources = static_cast<std::uint32_t>(run.sources.size());
    out.messages_max = messages_for(run);
    out.buffers_max = static_cast<std::uint32_t>(packets) + 1024;
    out.range_blocks = 1024;
    out.horizon = horizon_for(run);
    out.message_bytes_max = 0;
    for (const config::StreamConfig& stream : run.streams)
        out.message_bytes_max = std::max(out.message_bytes_max, stream.max_message_bytes);
    for (const stages::StreamRuntime& stream : streams)
        out.message_bytes_max = std::max(out.message_bytes_max, stream.context.message_bytes_max);
    out.timeout_ns = run.events.timeout_ms * core::ns_per_ms;
    out.number_bits = plan::make_number_bits(run, streams);
    out.in_sequence = plan::make_in_sequence(run, streams);
    return out;
}

assemble::EventBuilder::Config trial_events(const config::RunConfig& run,
                                            const std::vector<stages::StreamRuntime>& streams) {
    assemble::EventBuilder::Config out;
    out.sources = static_cast<std::uint32_t>(run.sources.size());
    out.sources_needed = run.events.sources;
    out.open_max = events_for(run);
    out.timeout_ns = run.events.timeout_ms * core::ns_per_ms;
    out.horizon = horizon_for(run);
    out.owner.resize(run.sources.size());
    out.number_bits = plan::make_number_bits(run, streams);
    out.messages_max = messages_for(run);
    return out;
}

void nothing_to_release(void** /*buffers*/, std::uint32_t /*count*/) {}

/// The sample on its way through one rx lcore and one builder.
class ProposalTrial {
public:
    ProposalTrial(config::RunConfig run, const probe::PacketSample& sample)
        : sample_(sample),
          run_(std::move(run)),
          streams_(plan::make_streams(run_)),
          owners_(run_.sources.size()),
          steering_(plan::make_steering(run_, 0, owners_)),
          notes_(streams_, run_.sources.size()),
          sources_(streams_, run_.sources.size(), notes_),
          table_(trial_messages(run_, streams_, sample.datagrams().size() + sample.requests().size()), packets_,
                 messages_, nothing_to_release),
          builder_(trial_events(run_, streams_), packets_, builder_messages_, events_) {
        for (std::size_t i = 0; i < streams_.size(); ++i)
            headers_.push_back(probe::header_needed(*streams_[i].format, streams_[i].context,
                                                    config::format_options(run_, run_.streams[i]).declared));
        roce::Listener::Config listener;
        listener.sources = plan::make_roce_sources(run_, streams_, owners_, 0);
        listener.timeout_ns = run_.events.timeout_ms * core::ns_per_ms;
        if (!listener.sources.empty()) listener_ = std::make_unique<roce::Listener>(listener, table_, packets_);
    }

    [[nodiscard]] probe::Trial result() {
        const auto datagrams = sample_.datagrams();
        const auto requests = sample_.requests();
        std::size_t request = 0;
        for (const probe::SampledDatagram& datagram : datagrams) {
            for (; request < requests.size() && requests[request].time_ns < datagram.time_ns; ++request)
                add(requests[request]);
            add(datagram);
        }
        for (; request < requests.size(); ++request) add(requests[request]);
        finish();
        return std::move(out_);
    }

private:
    /// As the network layers describe it. `header` has the place of an IPv6 header.
    [[nodiscard]] static wire::Datagram described(const probe::FlowKey& key, std::array<std::byte, 40>& header) {
        wire::Datagram out{.ip = header.data(), .dport = key.dport, .ipv6 = key.src.v6};
        const auto v4 = [](const probe::IpText& address) {
            std::uint32_t value = 0;
            for (std::size_t i = 0; i < 4; ++i) value = value << 8U | address.bytes[i];
            return value;
        };
        if (key.src.v6) {
            std::memcpy(header.data() + 8, key.src.bytes.data(), 16);
            std::memcpy(header.data() + 24, key.dst.bytes.data(), 16);
        } else {
            out.src = v4(key.src);
            out.dst = v4(key.dst);
        }
        return out;
    }

    void advance(core::TimeNs now) {
        now_ = std::max(now_, now);
        if (listener_) listener_->expire(now_);
        table_.expire(now_);
        exchange();
    }

    void add(const probe::SampledDatagram& sampled) {
        advance(sampled.time_ns);
        std::array<std::byte, 40> ip{};
        wire::Datagram datagram = described(sample_.flows()[sampled.flow].key, ip);
        const steer::Route route = steering_.route_udp(datagram);
        if (route.stream == steer::Steering::none) return;
        const stages::StreamRuntime& stream = streams_[route.stream];
        if (sampled.cut) ++out_.cut_packets;
        auto* const buffer = const_cast<probe::SampledDatagram*>(&sampled);
        if (sampled.head_bytes < std::min(sampled.payload_bytes, headers_[route.stream]))
            return table_.reject(buffer, PacketCounter::malformed_truncated);
        const probe::PaddedHead head(sample_.head(sampled));
        datagram.payload = head.data();
        datagram.payload_bytes = sampled.payload_bytes;
        if (stream.lane_by_port) datagram.lane = stream.lane_of(route.source);
        wire::Fragment fragment;
        wire::Verdict verdict = wire::ok;
        stream.format->decode_burst(stream.context, {&datagram, 1}, &fragment, &verdict);
        std::uint32_t source = route.source;
        if (stages::RxSources::has_to_identify(stream))
            verdict = sources_.identify(route.stream, fragment, source, verdict);
        if (verdict == PacketCounter::control && stream.context.in_sequence && fragment.in_sequence)
            table_.note_heartbeat(source, fragment, now_);
        if (verdict != wire::ok) return table_.reject(buffer, verdict);
        fragment.sender = sources_.sender_of(source, datagram, fragment.lane);
        if (fragment.sender == stages::OtherSenders::too_many) return table_.reject(buffer, PacketCounter::conflict);
        if (stream.numbered_by_arrival) fragment.number = sources_.next_arrival(route.stream);
        fragment.payload = payload_not_kept();
        table_.add(source, fragment, buffer, now_);
        exchange();
    }

    void add(const probe::SampledRequest& sampled) {
        advance(sampled.time_ns);
        if (!listener_) return;
        const probe::FlowKey& key = sample_.flows()[sampled.flow].key;
        std::array<std::byte, 40> ip{};
        wire::Datagram datagram = described(key, ip);
        // Steering reads the queue pair where the base transport header has it.
        std::array<std::byte, wire::roce_bth_bytes + wire::roce_icrc_bytes> bth{};
        for (std::size_t i = 0; i < 3; ++i)
            bth[5 + i] = static_cast<std::byte>(sampled.packet.qp >> (8 * (2 - i)) & 0xffU);
        datagram.payload = bth.data();
        datagram.payload_bytes = bth.size();
        const steer::Route route = steering_.route_roce(datagram);
        if (route.stream == steer::Steering::none) return;
        if (sampled.cut) ++out_.cut_packets;
        auto* const buffer = const_cast<probe::SampledRequest*>(&sampled);
        if (sampled.bad_icrc && streams_[route.stream].check_icrc)
            return table_.reject(buffer, PacketCounter::malformed_bad_icrc);
        wire::RocePacket packet = sampled.packet;
        packet.payload = payload_not_kept();
        if (packet.starts()) {  // with the header of a format, perhaps
            std::vector<std::byte>& kept = message_heads_.emplace_back(head_room);
            std::ranges::copy(sample_.head(sampled), kept.begin());
            if (packet.bytes <= head_room || run_.streams[route.stream].event == config::EventBy::format)
                packet.payload = kept.data();
        }
        listener_->add(route.source, packet, buffer, now_);
        exchange();
    }

    /// Descriptors to the builder, events out, commands back: until nothing moves.
    void exchange() {
        for (bool moved = true; moved;) {
            moved = false;
            while (!table_.pending().empty()) {
                const std::span<const assemble::Descriptor> descriptors = table_.pending();
                for (const assemble::Descriptor& descriptor : descriptors)
                    static_cast<void>(builder_.offer(descriptor));  // does not wait
                table_.consume_pending(static_cast<std::uint32_t>(descriptors.size()));
                moved = true;
            }
            builder_.advance(now_);
            while (assemble::Event* event = builder_.pop_closed()) {
                ++out_.events;
                out_.complete += event->cause == assemble::EventCause::complete ? 1 : 0;
                for (assemble::Message* message : event->messages)
                    if (message != nullptr)
                        table_.execute({.kind = assemble::Command::Kind::recycle, .message = message}, now_);
                builder_.release(*event);
                moved = true;
            }
            const std::span<const assemble::Command> commands = builder_.commands(0);
            for (const assemble::Command& command : commands) table_.execute(command, now_);
            moved |= !commands.empty();
            builder_.consume_commands(0, static_cast<std::uint32_t>(commands.size()));
            table_.end_burst();
        }
    }

    void finish() {
        if (listener_) listener_->finish(now_);
        table_.finish(now_);
        exchange();
        const std::span<const core::TimeNs> newest_whole = builder_.newest_whole();
        builder_.finish({&newest_whole, 1});
        builder_.end_input();
        exchange();
        out_.done = true;
        for (std::size_t i = 0; i < wire::packet_counters.size(); ++i) {
            const core::CounterInfo& info = wire::packet_counters[i];
            const bool good = info.fate == core::Fate::open || info.fate == core::Fate::kept;
            if (const std::uint64_t count = packets_.get(static_cast<PacketCounter>(i)); count > 0 && !good)
                out_.lost.emplace_back(info.name, count);
        }
    }

    static constexpr std::size_t head_room = 1024;  ///< more than any format reads

    const probe::PacketSample& sample_;
    config::RunConfig run_;
    std::vector<stages::StreamRuntime> streams_;
    std::vector<std::uint32_t> headers_;  ///< of each stream: so much of a packet has to be there
    std::vector<std::uint16_t> owners_;
    steer::Steering steering_;
    stages::RxNotes notes_;
    stages::RxSources sources_;
    wire::PacketTally packets_;
    assemble::MessageTally messages_;
    assemble::MessageTally builder_messages_;
    assemble::EventTally events_;
    assemble::MessageTable table_;
    assemble::EventBuilder builder_;
    std::unique_ptr<roce::Listener> listener_;
    std::deque<std::vector<std::byte>> message_heads_;
    core::TimeNs now_ = std::numeric_limits<core::TimeNs>::min();
    probe::Trial out_;
};

std::uint64_t packets_lost(const probe::Trial& trial) {
    std::uint64_t out = 0;
    for (const auto& [name, count] : trial.lost) out += count;
    return out;
}

std::string lost_by(const probe::Trial& trial) {
    std::string out;
    for (const auto& [name, count] : trial.lost)
        out += (out.empty() ? ": " : ", ") + std::to_string(count) + " " + name;
    return out;
}

/// Sources whose numbers hardly meet: each of their messages is an event of its own, if that gives more of them.
void count_apart(probe::Findings& findings, const probe::PacketSample& sample, const std::string& device) {
    probe::FoundStream& found = findings.streams.front();
    if (!findings.trial.done || findings.proposed() != 1 || found.sources.size() < 2) return;
    if (found.stream.transport != config::Transport::udp || found.met * 4 > found.events) return;
    findings.sources_needed = 1;
    probe::Trial apart = try_proposal(probe::propose(findings, device), sample);
    if (apart.complete <= findings.trial.complete || packets_lost(apart) > packets_lost(findings.trial)) {
        findings.sources_needed.reset();
        return;
    }
    findings.trial = std::move(apart);
    found.doubts.emplace_back("the sources do not count together: each message is an event of its own");
}

/// What the table of the first stream says is what came out.
void take_over(probe::Findings& findings) {
    const probe::Trial& trial = findings.trial;
    probe::FoundStream& found = findings.streams.front();
    if (!trial.done || findings.proposed() != 1 || found.stream.transport != config::Transport::udp) return;
    found.complete = trial.complete;
    found.events = std::max(trial.events, trial.complete);
}

}  // namespace

probe::Trial try_proposal(const std::string& toml, const probe::PacketSample& sample) {
    config::RunConfig run = config::parse_config(toml, "proposed.toml");
    for (const config::StreamConfig& stream : run.streams)
        if (stream.transport == config::Transport::roce && stream.roce.service != roce::Service::listen)
            return {.why_not = "weir is the other end of these queue pairs: only a run or a replay shows what comes"};
    if (sample.others().get(PacketCounter::not_for_us_roce_request) > 0)
        return {.why_not = "among the RDMA requests are some that carry no data; a replay shows what comes"};
    return ProposalTrial(std::move(run), sample).result();
}

std::string propose_tried(probe::Findings& findings, const probe::PacketSample& sample, const std::string& device) {
    while (findings.recognised()) {
        const std::size_t last = findings.proposed() - 1;
        const probe::FoundStream& first = findings.streams.front();
        try {
            findings.trial = try_proposal(probe::propose(findings, device), sample);
        } catch (const core::UsageError& error) {
            findings.leave_out(last, std::string("no configuration can have it: ") + error.what());
            continue;
        }
        const std::uint64_t alone = first.complete;
        if (last > 0 && findings.trial.done && findings.trial.complete * 4 < alone)
            findings.leave_out(last, "hardly any event has its packets and those of the first stream whole");
        else if (findings.trial.gives_nothing() && first.basis == probe::Basis::guess)
            findings.leave_out(0, "it is a guess, and no event is whole with it");
        else if (packets_lost(findings.trial) * 4 > first.packets && first.basis == probe::Basis::guess)
            findings.leave_out(0, "it is a guess, and many of its packets would be dropped" + lost_by(findings.trial));
        else
            break;
    }
    if (!findings.recognised()) return "";
    count_apart(findings, sample, device);
    take_over(findings);
    return probe::propose(findings, device);
}

}  // namespace weir::app

#include "probe/rdma_finder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "probe/message_account.hpp"
#include "probe/scattered_frames.hpp"
#include "wire/format_marks.hpp"

namespace weir::probe {
namespace {

using config::EventBy;
using config::StreamConfig;
using wire::RoceTransport;

constexpr std::string_view transport_name(RoceTransport transport) {
    switch (transport) {
        case RoceTransport::rc:
            return "RC";
        case RoceTransport::uc:
            return "UC";
        case RoceTransport::ud:
            return "UD";
        default:
            return "RD or another";
    }
}

struct MessageFacts {
    std::size_t whole = 0;
    std::size_t writes = 0;
    std::size_t with_immediate = 0;
    std::set<std::uint32_t> immediates;
    std::set<std::uint64_t> sizes;
};

MessageFacts facts_of(const QueuePairLog& log) {
    MessageFacts out;
    for (const RdmaMessage& message : log.messages) {
        out.writes += message.is_write ? 1 : 0;
        if (message.immediate) {
            ++out.with_immediate;
            out.immediates.insert(*message.immediate);
        }
        if (!message.whole) continue;
        ++out.whole;
        out.sizes.insert(message.bytes);
    }
    return out;
}

}  // namespace

RdmaFinder::RdmaFinder(const PacketSample& sample) : sample_(sample) {
    std::map<std::tuple<IpText, std::uint32_t, IpText>, std::size_t> index;
    for (std::uint32_t i = 0; i < sample.requests().size(); ++i) {
        const SampledRequest& request = sample.requests()[i];
        const FlowKey& flow = sample.flows()[request.flow].key;
        const auto [at, fresh] = index.try_emplace({flow.dst, request.packet.qp, flow.src}, logs_.size());
        if (fresh)
            logs_.push_back(
                {.src = flow.src, .dst = flow.dst, .qp = request.packet.qp, .transport = request.packet.transport});
        logs_[at->second].requests.push_back(i);
        logs_[at->second].flows.insert(request.flow);
    }
    for (QueuePairLog& log : logs_) log.finish(sample);
}

/// A header of a format in front of each message.
bool RdmaFinder::is_framed(const QueuePairLog& log, Setting& setting) const {
    std::vector<wire::SampledPacket> packets;
    for (const RdmaMessage& message : log.messages) {
        if (!message.whole || !message.first || packets.size() >= 4096) continue;
        const SampledRequest& request = sample_.requests()[*message.first];
        packets.push_back({sample_.head(request), static_cast<std::uint32_t>(message.bytes), 0, true});
    }
    if (packets.empty()) return false;
    constexpr double believed = 0.6;
    for (const wire::FormatEntry& format : wire::formats()) {
        if (wire::marks_of(format).recognise == nullptr) continue;
        const wire::Recognition found = wire::marks_of(format).recognise(packets);
        const double confidence = wire::confidence_of(found, packets.size());
        if (confidence < believed || confidence <= setting.confidence) continue;
        setting.confidence = confidence;
        setting.format = format.name;
        setting.options = found.options;
        setting.event = EventBy::format;
        setting.evidence = found.evidence;
        setting.doubts = found.doubts;
    }
    return setting.confidence > 0;
}

bool RdmaFinder::is_scattered(const QueuePairLog& log, Setting& setting) const {
    const auto frames = scattered_frames(log, sample_);
    if (!frames) return false;
    setting.confidence = frames->confidence;
    setting.format = frames->format;
    setting.options = frames->options;
    setting.event = EventBy::format;
    setting.regions = {frames->region};
    setting.evidence = frames->evidence;
    setting.doubts = frames->doubts;
    return true;
}

RdmaFinder::Setting RdmaFinder::setting_of(const QueuePairLog& log) const {
    Setting out;
    if (is_scattered(log, out) || is_framed(log, out)) return out;
    const MessageFacts facts = facts_of(log);
    out.confidence = 0.9;
    out.evidence.push_back(fmt::format("{} messages without a header of a format that is known", facts.whole));
    // A repeated immediate says that it is no event number.
    if (facts.with_immediate * 20 >= facts.whole * 19 && facts.immediates.size() * 10 >= facts.with_immediate * 9 &&
        facts.with_immediate > 0) {
        out.event = EventBy::immediate;
        out.evidence.push_back(fmt::format(
            "an immediate in the last packet of each, {} different ones: the event number", facts.immediates.size()));
        return out;
    }
    out.event = EventBy::count;
    if (facts.with_immediate > 0)
        out.doubts.push_back("immediates that are missing or repeat themselves: not taken for event numbers");
    if (facts.sizes.size() == 1) out.message_bytes = static_cast<std::uint32_t>(*facts.sizes.begin());
    if (out.message_bytes == 0U) out.message_bytes.reset();
    out.doubts.push_back("nothing in the messages numbers them: they are counted as they were sent");
    if (log.transport != RoceTransport::rc && !out.message_bytes)
        out.doubts.push_back("after a loss the count is not sure: messages differ in size, and nothing is sent again");
    return out;
}

FoundStream RdmaFinder::stream_of(std::vector<std::size_t> members) const {
    std::ranges::sort(members, {}, [&](std::size_t i) { return std::pair(logs_[i].qp, logs_[i].src); });
    const QueuePairLog& first = logs_[members.front()];
    const Setting& setting = settings_[members.front()];
    FoundStream out{.basis = setting.format == "message" ? Basis::rdma : Basis::format,
                    .confidence = setting.confidence,
                    .evidence = setting.evidence,
                    .doubts = setting.doubts};
    StreamConfig& stream = out.stream;
    stream.transport = config::Transport::roce;
    stream.format = setting.format;
    stream.event = setting.event;
    stream.own = setting.options;
    stream.dst = {*config::parse_ip_address(first.dst.text())};
    std::uint64_t bytes_max = 0;
    std::uint64_t packet_max = 0;
    std::set<std::uint64_t> sizes;
    for (const std::size_t member : members) {
        const QueuePairLog& log = logs_[member];
        stream.qp.push_back(log.qp);
        for (const RdmaMessage& message : log.messages) bytes_max = std::max(bytes_max, message.bytes);
        packet_max = std::max<std::uint64_t>(packet_max, log.packet_max);
        sizes.insert(settings_[member].message_bytes.value_or(0));
        out.flows.insert(out.flows.end(), log.flows.begin(), log.flows.end());
        for (const roce::Region& region : settings_[member].regions)
            stream.roce.regions.push_back({region, members.size() > 1 ? std::optional(log.qp) : std::nullopt});
        if (log.bad_icrc * 2 > log.requests.size()) stream.icrc = config::IcrcMode::ignore;
        if (setting.event == EventBy::count && members.size() > 1 && log.begins_whole)
            stream.roce.psn.push_back(log.first_psn);
    }
    if (stream.roce.psn.size() != stream.qp.size()) stream.roce.psn.clear();
    if (setting.event == EventBy::count && sizes.size() == 1 && *sizes.begin() != 0)
        stream.message_bytes = static_cast<std::uint32_t>(*sizes.begin());
    if (bytes_max > wire::message_bytes_max_default && bytes_max >> 31U == 0)
        stream.max_message_bytes = static_cast<std::uint32_t>(std::bit_ceil(bytes_max));
    if (!stream.roce.regions.empty()) {
        stream.roce.service = first.transport == RoceTransport::rc ? roce::Service::rc : roce::Service::uc;
        for (const std::size_t member : members) {
            const auto* peers = sample_.acknowledged(logs_[member].dst, logs_[member].src);
            if (stream.roce.service != roce::Service::rc) continue;
            const bool known = peers != nullptr && peers->size() == 1;
            stream.roce.peers.push_back({known ? *peers->begin() : logs_[member].qp, std::nullopt});
            if (!known)
                out.doubts.push_back(
                    fmt::format("peer: no acknowledgement shows the sender's queue pair; {:#x} "
                                "is only a guess",
                                logs_[member].qp));
        }
    }
    const MessageFacts facts = facts_of(first);
    out.evidence.insert(out.evidence.begin(),
                        fmt::format("{} {}, at most {} bytes of payload in a packet", transport_name(first.transport),
                                    facts.writes == 0                       ? "SEND"
                                    : facts.writes == first.messages.size() ? "WRITE"
                                                                            : "SEND and WRITE",
                                    packet_max));
    if (stream.icrc == config::IcrcMode::ignore)
        out.doubts.push_back("the invariant CRC is wrong in most packets; it is not looked at");
    account(out, members);
    return out;
}

void RdmaFinder::account(FoundStream& out, const std::vector<std::size_t>& members) const {
    std::map<std::uint64_t, std::size_t> whole_in;  // event number → sources
    std::map<std::uint64_t, std::uint64_t> bytes_of;
    out.first_ns = sample_.last_ns();
    out.message_bytes_min = UINT64_MAX;
    for (const std::size_t member : members) {
        const QueuePairLog& log = logs_[member];
        FoundSource source{.label = fmt::format("qp {:#x}", log.qp),
                           .packets = log.requests.size(),
                           .bytes = log.payload_bytes,
                           .messages = log.messages.size(),
                           .duplicates = log.repeated,
                           .disordered = log.disordered,
                           .missing_packets = log.missing};
        std::uint64_t count = 0;
        for (const RdmaMessage& message : log.messages) {
            // Frames in memory end with an immediate; what is before is part of them.
            const bool part = !out.stream.roce.regions.empty() && !message.immediate;
            const std::uint64_t number =
                message.immediate && out.stream.event != EventBy::count ? *message.immediate : count;
            count += part ? 0 : 1;
            out.first_ns = std::min(out.first_ns, message.first_ns);
            out.last_ns = std::max(out.last_ns, message.last_ns);
            if (!part) whole_in.try_emplace(number, 0);
            bytes_of[number] += message.bytes;
            out.message_packets = std::max(out.message_packets, message.packets);
            if (!message.whole || part) continue;
            ++source.whole;
            ++whole_in[number];
            out.message_bytes_min = std::min(out.message_bytes_min, message.bytes);
            out.message_bytes_max = std::max(out.message_bytes_max, message.bytes);
        }
        out.packets += source.packets;
        out.rejected += log.bad_icrc;
        out.sources.push_back(std::move(source));
    }
    if (out.message_bytes_max == 0) out.message_bytes_min = 0;
    std::vector<std::uint64_t> numbers;
    for (const auto& [number, sources] : whole_in) {
        numbers.push_back(number);
        out.complete += sources == members.size() ? 1 : 0;
    }
    for (const auto& [number, bytes] : bytes_of) out.event_bytes = std::max(out.event_bytes, bytes);
    out.events = whole_in.size();
    out.numbers = numbers_of(numbers);
    for (const std::uint32_t flow : std::set(out.flows.begin(), out.flows.end()))
        out.bytes += sample_.flows()[flow].wire_bytes;
}

std::vector<FoundStream> RdmaFinder::find(std::vector<std::string>& what) {
    for (const QueuePairLog& log : logs_) settings_.push_back(setting_of(log));
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < logs_.size(); ++i) {
        const auto belongs = [&](const std::vector<std::size_t>& group) {
            const QueuePairLog& other = logs_[group.front()];
            const Setting& setting = settings_[group.front()];
            const bool same_qp =
                std::ranges::any_of(group, [&](std::size_t at) { return logs_[at].qp == logs_[i].qp; });
            return !same_qp && other.dst == logs_[i].dst && other.transport == logs_[i].transport &&
                   setting.format == settings_[i].format && setting.event == settings_[i].event &&
                   setting.options == settings_[i].options;
        };
        const auto at = std::ranges::find_if(groups, belongs);
        if (at == groups.end())
            groups.push_back({i});
        else
            at->push_back(i);
    }
    std::vector<FoundStream> out;
    for (const auto& group : groups) {
        out.push_back(stream_of(group));
        for (const std::uint32_t flow : out.back().flows) what[flow] = "RoCEv2, " + out.back().stream.format;
    }
    // One queue pair number that several hosts use needs their addresses.
    for (FoundStream& found : out)
        for (const FoundStream& other : out) {
            if (&found == &other || found.stream.dst != other.stream.dst) continue;
            const bool shares = std::ranges::any_of(found.stream.qp, [&](std::uint32_t qp) {
                return std::ranges::find(other.stream.qp, qp) != other.stream.qp.end();
            });
            if (!shares) continue;
            std::set<std::string> sources;
            for (const std::uint32_t flow : found.flows) sources.insert(sample_.flows()[flow].key.src.text());
            found.stream.src.clear();
            for (const std::string& address : sources) found.stream.src.push_back(*config::parse_ip_address(address));
        }
    std::ranges::stable_sort(out, std::greater<>(), &FoundStream::bytes);
    return out;
}

}  // namespace weir::probe

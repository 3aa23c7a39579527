#include "probe/stream_finder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "core/error.hpp"
#include "probe/declared_guess.hpp"
#include "probe/message_account.hpp"
#include "probe/shipped_formats.hpp"
#include "probe/source_keys.hpp"

namespace weir::probe {
namespace {

using config::SourceBy;
using config::StreamConfig;

constexpr double believed = 0.6;                 ///< confidence from which on a flow is of a format
constexpr std::size_t flow_packets_max = 20000;  ///< packets of a flow, or of several

/// Whether what is called one source is several senders, each with numbers of its own.
class SenderCheck {
public:
    void add(std::uint32_t source, const IpText& sender, std::uint64_t number) {
        if (numbers_.try_emplace({source, number}, sender).first->second != sender) ++in_one_message_;
        Range& range = ranges_[source].try_emplace(sender, Range{number, number}).first->second;
        range = {std::min(range.first, number), std::max(range.last, number)};
    }
    /// A source has packets of several senders.
    [[nodiscard]] bool shared() const {
        return std::ranges::any_of(ranges_, [](const auto& entry) { return entry.second.size() > 1; });
    }
    /// Packets in messages that another sender began, and senders that count somewhere else.
    [[nodiscard]] std::uint64_t mixed() const {
        std::uint64_t out = in_one_message_;
        for (const auto& [source, senders] : ranges_)
            for (auto at = senders.begin(); at != senders.end(); ++at)
                out += std::any_of(senders.begin(), at,
                                   [at](const auto& other) { return apart(at->second, other.second); })
                           ? 1
                           : 0;
        return out;
    }

private:
    struct Range {
        std::uint64_t first = 0;
        std::uint64_t last = 0;
    };
    static bool apart(const Range& a, const Range& b) {
        return a.last != a.first && b.last != b.first && (a.last < b.first || b.last < a.first);
    }
    std::uint64_t in_one_message_ = 0;
    std::map<std::pair<std::uint32_t, std::uint64_t>, IpText> numbers_;
    std::map<std::uint32_t, std::map<IpText, Range>> ranges_;
};

}  // namespace

StreamFinder::StreamFinder(const PacketSample& sample, const std::vector<wire::DeclaredSpec>& declared)
    : sample_(sample), declared_(declared), datagrams_(sample.flows().size()), what_(sample.flows().size()) {
    const auto datagrams = sample.datagrams();
    for (std::uint32_t i = 0; i < datagrams.size(); ++i) datagrams_[datagrams[i].flow].push_back(i);
}

std::vector<wire::SampledPacket> StreamFinder::packets_of(std::span<const std::uint32_t> flows) const {
    std::vector<wire::SampledPacket> out;
    const std::size_t share = std::max<std::size_t>(64, flow_packets_max / std::max<std::size_t>(1, flows.size()));
    for (const std::uint32_t flow : flows)
        for (const std::uint32_t at : std::span(datagrams_[flow]).first(std::min(share, datagrams_[flow].size()))) {
            const SampledDatagram& datagram = sample_.datagrams()[at];
            out.push_back({sample_.head(datagram), datagram.payload_bytes, flow});
        }
    return out;
}

StreamFinder::Group StreamFinder::recognise(std::span<const std::uint32_t> flows) const {
    const std::vector<wire::SampledPacket> packets = packets_of(flows);
    Group best;
    const auto consider = [&](const wire::FormatEntry& format, const wire::Recognition& found, Basis basis) {
        const double confidence = wire::confidence_of(found, packets.size());
        if (confidence <= best.confidence) return;
        best = {basis, &format, found.options, confidence, found.evidence, found.doubts, {flows.begin(), flows.end()}};
    };
    if (packets.empty()) return best;
    for (const wire::FormatEntry& format : wire::formats())
        if (wire::marks_of(format).recognise != nullptr)
            consider(format, wire::marks_of(format).recognise(packets), Basis::format);
    for (const wire::DeclaredSpec& spec : declared_)
        consider(wire::described_format(), recognise_declared(spec, packets), Basis::declared);
    for (const wire::DeclaredSpec& spec : shipped_formats())
        consider(wire::described_format(), recognise_declared(spec, packets), Basis::shipped);
    return best;
}

void StreamFinder::recognise_flows() {
    for (std::uint32_t flow = 0; flow < datagrams_.size(); ++flow) {
        if (datagrams_[flow].empty()) continue;
        Group found = recognise(std::span(&flow, 1));
        if (found.confidence >= believed) groups_.push_back(std::move(found));
    }
}

/// Flows of one format become one group if one set-up fits them together as it fits most of them alone; otherwise those
/// with the same set-up do.
void StreamFinder::join_groups() {
    std::vector<Group> joined;
    const auto same_format = [](const Group& a, const Group& b) {
        return a.format == b.format && a.basis == b.basis && a.options.declared.name == b.options.declared.name;
    };
    while (!groups_.empty()) {
        const Group first = groups_.front();
        std::vector<std::uint32_t> flows;
        std::vector<Group> alike;
        for (const Group& group : groups_)
            if (same_format(first, group)) {
                alike.push_back(group);
                flows.insert(flows.end(), group.flows.begin(), group.flows.end());
            }
        std::erase_if(groups_, [&](const Group& group) { return same_format(first, group); });
        Group together = first.basis == Basis::guess ? first : recognise(flows);
        together.flows = flows;
        const auto agreeing = static_cast<std::size_t>(
            std::ranges::count_if(alike, [&](const Group& group) { return group.options == together.options; }));
        // What a stream says of itself in all its flows (items, sizes) need not be in each.
        if (same_format(first, together) && together.confidence >= believed &&
            (agreeing * 2 >= alike.size() || first.options.sls == together.options.sls)) {
            joined.push_back(std::move(together));
            continue;
        }
        for (const Group& group : alike) {
            const auto at = std::ranges::find_if(joined, [&](const Group& other) {
                return same_format(group, other) && other.options == group.options;
            });
            if (at == joined.end())
                joined.push_back(group);
            else
                at->flows.insert(at->flows.end(), group.flows.begin(), group.flows.end());
        }
    }
    groups_ = std::move(joined);
}

/// Whether the other side sends as well, and not only an answer now and then.
bool StreamFinder::is_conversation(std::uint32_t flow) const {
    constexpr std::uint64_t answers = 10;
    const FlowKey& key = sample_.flows()[flow].key;
    std::uint64_t there = 0;
    std::uint64_t back = 0;
    for (const Flow& other : sample_.flows()) {
        if (other.key.src == key.src && other.key.dst == key.dst) there += other.datagrams;
        if (other.key.src == key.dst && other.key.dst == key.src) back += other.datagrams;
    }
    return back * answers > there;
}

/// From the packets of one flow, with those of others that look like its own.
std::optional<DeclaredGuess> StreamFinder::guess_from(std::uint32_t flow, const std::set<std::uint32_t>& open) {
    constexpr std::size_t others_most = 16;
    constexpr std::size_t packets_most = 512;  // of each
    const Flow& own = sample_.flows()[flow];
    std::vector<FlowPackets> others;
    for (const std::uint32_t index : open) {
        const Flow& other = sample_.flows()[index];
        if (others.size() == others_most) break;
        if (index == flow || other.payload_max != own.payload_max || other.payload_min < own.payload_min) continue;
        others.push_back(packets_of(std::span(&index, 1)));
        if (others.back().size() > packets_most) others.back().resize(packets_most);
    }
    return guess_declared(packets_of(std::span(&flow, 1)), what_[flow], others);
}

/// What is made up from the largest flow that nothing else fits, others may have as well.
void StreamFinder::guess_flows() {
    std::set<std::uint32_t> open;
    for (std::uint32_t flow = 0; flow < datagrams_.size(); ++flow)
        if (!datagrams_[flow].empty()) open.insert(flow);
    for (const Group& group : groups_)
        for (const std::uint32_t flow : group.flows) open.erase(flow);
    std::size_t guesses = 0;
    std::vector<std::uint32_t> by_size(open.begin(), open.end());
    std::ranges::sort(by_size, std::greater<>(), [&](std::uint32_t flow) { return datagrams_[flow].size(); });
    constexpr std::size_t tried_most = 64;
    if (by_size.size() > tried_most) by_size.resize(tried_most);
    for (const std::uint32_t flow : by_size) {
        if (!open.contains(flow)) continue;
        if (is_conversation(flow)) {
            what_[flow] = "a conversation, with packets both ways";
            open.erase(flow);
            continue;
        }
        const auto guess = guess_from(flow, open);
        if (!guess) continue;
        wire::DeclaredSpec spec = guess->spec;
        if (recognise_declared(spec, packets_of(std::span(&flow, 1))).share == 0) {
            what_[flow] = "some number counts, but no description fits its packets";
            continue;
        }
        if (guesses++ > 0) spec.name += fmt::format("-{}", guesses);
        constexpr double no_more_than_a_guess = 0.4;
        Group& group = groups_.emplace_back();
        group.basis = Basis::guess;
        group.format = &wire::described_format();
        group.options.declared = spec;
        group.confidence = no_more_than_a_guess;
        group.evidence = guess->evidence;
        group.doubts = guess->doubts;
        const std::set<std::uint32_t> left = open;
        for (const std::uint32_t other : left) {
            constexpr double fits = 0.8;
            if (other != flow && recognise_declared(spec, packets_of(std::span(&other, 1))).share < fits) continue;
            group.flows.push_back(other);
            open.erase(other);
        }
    }
}

std::vector<StreamConfig> StreamFinder::settings_of(const Group& group) const {
    StreamConfig base;
    base.format = group.format->described ? group.options.declared.name : std::string(group.format->name);
    base.own = group.options;
    base.own.declared = {};
    base.max_message_bytes = group.options.message_bytes_max;
    std::set<std::uint16_t> ports;
    std::set<IpText> addresses;
    for (const std::uint32_t flow : group.flows) {
        ports.insert(sample_.flows()[flow].key.dport);
        addresses.insert(sample_.flows()[flow].key.src);
    }
    base.udp_dst.assign(ports.begin(), ports.end());
    std::vector<StreamConfig> out{base};
    StreamConfig by_address = base;
    by_address.source_by = SourceBy::address;
    for (const IpText& address : addresses) by_address.src.push_back(*config::parse_ip_address(address.text()));
    out.push_back(by_address);
    StreamConfig by_header = base;
    by_header.source_by = SourceBy::header;
    by_header.source_ids = header_ids(*group.format, group.options, packets_of(group.flows));
    if (!by_header.source_ids.empty()) out.push_back(by_header);
    return out;
}

StreamFinder::Tried StreamFinder::tried(const Group& group, const StreamConfig& stream) const {
    Tried result;
    FoundStream& out = result.found;
    out = {.stream = stream, .basis = group.basis, .confidence = group.confidence};
    out.evidence = group.evidence;
    out.doubts = group.doubts;
    out.flows = group.flows;
    if (group.format->described) out.spec = group.options.declared;
    const SourceKeys keys(stream);
    out.sources.resize(keys.count());
    for (std::size_t i = 0; i < keys.count(); ++i) out.sources[i].label = keys.label(i);
    const wire::FormatContext context = group.format->make_context(decoder_options(stream, group.options));
    MessageAccount account(keys.count(), context.sequence_bits);
    const std::set<std::uint32_t> flows(group.flows.begin(), group.flows.end());
    const std::uint32_t needed = header_needed(*group.format, context, group.options.declared);
    SenderCheck senders;
    out.first_ns = std::numeric_limits<core::TimeNs>::max();
    for (const SampledDatagram& sampled : sample_.datagrams()) {
        if (!flows.contains(sampled.flow)) continue;
        const FlowKey& flow = sample_.flows()[sampled.flow].key;
        ++out.packets;
        out.first_ns = std::min(out.first_ns, sampled.time_ns);
        out.last_ns = std::max(out.last_ns, sampled.time_ns);
        if (sampled.head_bytes < std::min(sampled.payload_bytes, needed)) {
            ++out.rejected;
            continue;
        }
        const PaddedHead head(sample_.head(sampled));
        const wire::Datagram datagram{
            .payload = head.data(), .payload_bytes = sampled.payload_bytes, .lane = keys.lane(flow)};
        wire::Fragment fragment;
        wire::Verdict verdict{};
        group.format->decode_burst(context, std::span(&datagram, 1), &fragment, &verdict);
        const auto source = keys.find(flow, fragment.header_source);
        const bool good = verdict == wire::ok && source;
        if (good) {
            account.add(*source, fragment, sampled.time_ns);
            senders.add(*source, flow.src, fragment.number);
        } else if (verdict == wire::Verdict::control && source) {
            account.add_control(*source, fragment);
        }
        (verdict == wire::Verdict::control ? out.control : out.rejected) += good ? 0 : 1;
    }
    account.finish();
    account.report(out);
    for (const std::uint32_t flow : group.flows) out.bytes += sample_.flows()[flow].wire_bytes;
    if (out.packets > 0)
        out.confidence = std::min(out.confidence,
                                  static_cast<double>(out.packets - out.rejected) / static_cast<double>(out.packets));
    result.mixed = senders.mixed();
    result.shared = senders.shared();
    result.complete = account.packets_complete();
    for (const FoundSource& source : out.sources) {
        result.placed += source.packets - source.duplicates;
        result.whole += source.whole;
    }
    return result;
}

/// What assembles most is right; where several do, the plainest. No message has the packets of two senders, as long as
/// there are messages with those of one.
FoundStream StreamFinder::stream_of(const Group& group) const {
    std::vector<Tried> all;
    for (const StreamConfig& stream : settings_of(group)) all.push_back(tried(group, stream));
    const bool apart = std::ranges::any_of(all, [](const Tried& each) { return each.mixed == 0 && each.whole > 0; });
    Tried* best = nullptr;
    for (Tried& each : all) {
        if (apart && each.mixed > 0) continue;
        if (best == nullptr || std::pair(each.complete, each.placed) > std::pair(best->complete, best->placed))
            best = &each;
    }
    FoundStream out = std::move(best->found);
    forget_unused_source(out, *group.format);
    if (best->mixed > 0)
        out.doubts.push_back(
            fmt::format("{} packets have the event number of another sender's on the same port: perhaps "
                        "these are two sources, and source_by = \"address\" tells them apart",
                        best->mixed));
    if (out.complete == 0 && out.events != 0)
        out.doubts.push_back(out.sources.size() > 1
                                 ? "no event has all its sources whole: perhaps they do not count alike"
                                 : "no event is whole in what was looked at");
    return out;
}

void StreamFinder::add_message(std::vector<FoundStream>& out) const {
    std::optional<std::uint32_t> largest;
    for (std::uint32_t flow = 0; flow < datagrams_.size(); ++flow)
        if (!largest || datagrams_[flow].size() > datagrams_[*largest].size()) largest = flow;
    constexpr std::size_t messages_min = 12;
    if (!largest || datagrams_[*largest].size() < messages_min) return;
    const Flow& flow = sample_.flows()[*largest];
    const bool conversation = std::ranges::any_of(sample_.flows(), [&](const Flow& other) {
        return other.key.src == flow.key.dst && other.key.dst == flow.key.src;
    });
    if (conversation || flow.datagrams * 2 < sample_.packets()) return;
    StreamConfig stream;
    stream.format = "message";
    stream.event = config::EventBy::arrival;
    stream.udp_dst = {flow.key.dport};
    FoundStream found{.stream = stream, .basis = Basis::message, .confidence = 0.1};
    const auto shared = std::ranges::count_if(
        sample_.flows(), [&](const Flow& other) { return other.key.dport == flow.key.dport && other.datagrams > 0; });
    if (shared > 1) found.stream.src = {*config::parse_ip_address(flow.key.src.text())};
    found.doubts = {"no format was recognised, and no number in the packets counts: " + what_[*largest],
                    "each datagram becomes an event, numbered as it arrives; what was lost does not show"};
    found.flows = {*largest};
    found.sources = {{.label = fmt::format("udp {}", flow.key.dport),
                      .packets = flow.datagrams,
                      .bytes = flow.payload_bytes,
                      .messages = flow.datagrams,
                      .whole = flow.datagrams}};
    found.packets = found.events = found.complete = flow.datagrams;
    found.bytes = flow.wire_bytes;
    found.event_bytes = found.message_bytes_max = flow.payload_max;
    found.message_bytes_min = flow.payload_min;
    found.message_packets = 1;
    found.first_ns = flow.first_ns;
    found.last_ns = flow.last_ns;
    out.push_back(std::move(found));
}

std::vector<FoundStream> StreamFinder::find(std::vector<std::string>& what) {
    recognise_flows();
    join_groups();
    guess_flows();
    std::vector<FoundStream> out;
    for (const Group& group : groups_) {
        out.push_back(stream_of(group));
        for (const std::uint32_t flow : group.flows) what_[flow] = out.back().stream.format;
    }
    if (out.empty()) add_message(out);
    std::ranges::stable_sort(out, std::greater<>(), &FoundStream::bytes);
    // A guess never stands before what is known.
    std::stable_partition(out.begin(), out.end(), [](const FoundStream& found) { return found.basis != Basis::guess; });
    what = what_;
    return out;
}

}  // namespace weir::probe

// Random streams of SEND and WRITE messages of several senders to one queue pair, on RC, UC and UD, lost, repeated and
// shuffled, against an oracle that only looks at which packets arrived. The seed is printed when something differs.
#include <algorithm>
#include <numeric>
#include <random>
#include <sstream>

#include "effort.hpp"
#include "listener_harness.hpp"

namespace weir::roce::test {
namespace {

struct Sent {
    MessageSpec spec;
    std::vector<std::byte> payload;
    std::vector<wire::RocePacket> packets;
    std::vector<bool> arrived;
    std::uint32_t completed = 0;  ///< times
    std::uint32_t partly = 0;

    [[nodiscard]] bool whole() const { return std::find(arrived.begin(), arrived.end(), false) == arrived.end(); }
    /// Received bytes, as ranges.
    [[nodiscard]] std::vector<ByteRange> ranges() const {
        std::vector<ByteRange> out;
        for (std::size_t i = 0; i < packets.size(); ++i) {
            if (!arrived[i] || packets[i].bytes == 0) continue;
            const auto begin = static_cast<std::uint32_t>(i * spec.pmtu);
            if (out.empty() || out.back().end != begin) out.push_back({begin, begin});
            out.back().end = begin + packets[i].bytes;
        }
        return out;
    }
    /// Packets that belong to it for sure once its start is known: no two in a row are missing, or the extent is known.
    [[nodiscard]] bool joined(bool by_grid) const {
        if (by_grid || (spec.is_write && arrived.front())) return true;
        for (std::size_t i = 1; i < arrived.size(); ++i)
            if (!arrived[i] && !arrived[i - 1]) return false;
        return true;
    }
    [[nodiscard]] bool any() const { return std::find(arrived.begin(), arrived.end(), true) != arrived.end(); }
};

enum class Mode : std::uint8_t { immediate, arrival, count, grid };

/// Arithmetic must find where everything of message `id` lies, and its number. The messages of a sender are every
/// `senders`th.
bool provable(const std::vector<Sent>& sent, std::size_t id, std::size_t senders, Mode mode) {
    const Sent& message = sent[id];
    bool pmtu_known = false;
    for (std::size_t at = id % senders; at < sent.size(); at += senders)
        for (std::size_t i = 0; i + 1 < sent[at].arrived.size(); ++i) pmtu_known = pmtu_known || sent[at].arrived[i];
    if (mode == Mode::grid) return message.arrived.front() || (pmtu_known && message.any());
    if (mode == Mode::count) return false;  // depends on all before it; see check_numbers
    if (mode == Mode::immediate && !message.arrived.back()) return false;
    if (!message.arrived.back() && !(message.spec.is_write && message.arrived.front())) return false;
    if (!message.joined(false)) return false;
    if (message.arrived.front()) return true;
    if (id < senders || !message.arrived[1]) return false;
    const Sent& before = sent[id - senders];
    return pmtu_known && (before.arrived.back() || (before.spec.is_write && before.arrived.front()));
}

bool same(const std::vector<ByteRange>& a, const std::vector<ByteRange>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const ByteRange& x, const ByteRange& y) { return x.begin == y.begin && x.end == y.end; });
}

bool inside(const std::vector<ByteRange>& part, const std::vector<ByteRange>& all) {
    return std::all_of(part.begin(), part.end(), [&](const ByteRange& x) {
        return std::any_of(all.begin(), all.end(),
                           [&](const ByteRange& y) { return y.begin <= x.begin && x.end <= y.end; });
    });
}

struct Dice {
    explicit Dice(std::uint64_t seed) : engine(seed) {}
    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine() % n); }
    bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(engine) < p; }
    std::mt19937_64 engine;
};

struct Plan {
    double loss = 0, repeat = 0;
    std::uint32_t displacement = 0;
    bool tight = false;  ///< few messages and buffers, short window and time-out: only safety can be asked for
    Mode mode = Mode::immediate;
    wire::RoceTransport transport = wire::RoceTransport::uc;
    std::uint32_t senders = 1;
    std::uint32_t packets_max = 12;  ///< of a message
};

Plan random_plan(Dice& dice) {
    Plan plan;
    plan.loss = dice.chance(0.4) ? 0 : dice.chance(0.5) ? 0.02 : 0.25;
    plan.repeat = dice.chance(0.5) ? 0 : 0.1;
    plan.displacement = dice.chance(0.3) ? 0 : dice.below(dice.chance(0.5) ? 8 : 200);
    plan.tight = dice.chance(0.2);
    plan.mode = static_cast<Mode>(dice.below(4));
    constexpr wire::RoceTransport transports[] = {wire::RoceTransport::rc, wire::RoceTransport::uc,
                                                  wire::RoceTransport::ud};
    plan.transport = transports[dice.below(3)];
    if (plan.mode == Mode::immediate || plan.mode == Mode::arrival) plan.senders = 1 + dice.below(3);
    return plan;
}

std::uint32_t random_size(Dice& dice, const Plan& plan, std::uint32_t pmtu) {
    if (plan.transport == wire::RoceTransport::ud) return 4 + dice.below(pmtu - 3);
    const std::uint32_t bytes = dice.below(dice.chance(0.2) ? 600 : pmtu * (1 + dice.below(plan.packets_max)));
    // Where the number does not tell, every packet has a word that says whose it is.
    return plan.mode == Mode::immediate ? bytes : (bytes + 4) & ~3U;
}

std::vector<Sent> random_messages(Dice& dice, const Plan& plan) {
    std::vector<Sent> sent(20 + dice.below(40) * plan.senders);
    const std::uint32_t pmtu = 256U << dice.below(3);
    const double write = dice.chance(0.3) ? 0 : dice.chance(0.5) ? 1 : 0.5;
    const std::uint32_t any = dice.chance(0.5) ? 0xffffff - dice.below(100) : dice.below(1U << 24);
    std::vector<std::uint32_t> psn(plan.senders);
    for (std::uint32_t& first : psn) first = dice.chance(0.5) ? any : dice.below(1U << 24);
    const std::uint32_t one_size = random_size(dice, plan, pmtu);
    const bool ud = plan.transport == wire::RoceTransport::ud;
    const std::uint32_t jumps = ud && plan.mode != Mode::grid && dice.chance(0.5) ? dice.below(300) : 0;
    for (std::uint32_t id = 0; id < sent.size(); ++id) {
        Sent& message = sent[id];
        const std::uint32_t sender = id % plan.senders;
        message.spec = {plan.transport, !ud && dice.chance(write), id, pmtu};
        message.payload = payload_of(id, plan.mode == Mode::grid ? one_size : random_size(dice, plan, pmtu));
        message.packets = packets_of(message.spec, message.payload, psn[sender]);
        for (wire::RocePacket& packet : message.packets) {
            packet.source_qp = ud ? sender : 0;
            packet.address_pair = ud ? 7 : sender;
        }
        message.arrived.resize(message.packets.size());
        psn[sender] += static_cast<std::uint32_t>(message.packets.size()) + (jumps != 0 ? dice.below(jumps) : 0);
    }
    return sent;
}

/// What goes over the wire: message and packet index, in order of arrival.
std::vector<std::pair<std::uint32_t, std::uint32_t>> wire_order(Dice& dice, const Plan& plan, std::vector<Sent>& sent) {
    std::vector<std::pair<double, std::pair<std::uint32_t, std::uint32_t>>> keyed;
    for (std::uint32_t id = 0; id < sent.size(); ++id)
        for (std::uint32_t i = 0; i < sent[id].packets.size(); ++i) {
            if (dice.chance(plan.loss)) continue;
            sent[id].arrived[i] = true;
            const double place = static_cast<double>(keyed.size());
            do {
                keyed.push_back({place + dice.below(plan.displacement + 1), {id, i}});
            } while (dice.chance(plan.repeat));
        }
    std::stable_sort(keyed.begin(), keyed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::pair<std::uint32_t, std::uint32_t>> out;
    for (const auto& [key, value] : keyed) out.push_back(value);
    return out;
}

/// The message that delivered bytes are of: the number where it is the immediate, else the first word.
std::uint32_t id_of(const Delivered& got, Mode mode) {
    if (mode == Mode::immediate) return static_cast<std::uint32_t>(got.number);
    if (got.ranges.empty()) return ~0U;
    std::uint32_t word = 0;
    std::memcpy(&word, got.bytes.data() + got.ranges[0].begin, 4);
    return word >> 18U;
}

/// The message and those before it, packet by packet.
std::string described(const std::vector<Sent>& sent, std::uint32_t id) {
    std::string out;
    for (std::uint32_t at = id < 4 ? 0 : id - 4; at <= id; ++at) {
        out += sent[at].spec.is_write ? "; write " : "; send ";
        for (const bool arrived : sent[at].arrived) out += arrived ? '+' : '-';
    }
    return out;
}

/// A count is right if it is the sender's, from wherever it began.
void check_numbers(const std::vector<Sent>& sent, const Harness& harness, const Plan& plan) {
    if (plan.mode != Mode::count && plan.mode != Mode::grid) return;
    const bool by_psn = plan.transport == wire::RoceTransport::ud;  // then numbers have the gaps of the PSNs
    std::int64_t origin = -1;
    for (const Delivered& got : harness.delivered) {
        const std::uint32_t id = id_of(got, plan.mode);
        const std::int64_t place = by_psn ? sent[id].packets[0].psn : id;
        if (origin < 0) origin = (place - static_cast<std::int64_t>(got.number)) & 0xffffff;
        ASSERT_EQ((place - static_cast<std::int64_t>(got.number)) & 0xffffff, origin) << id;
    }
    if (plan.tight || plan.loss != 0 || plan.displacement != 0 || plan.mode == Mode::grid) return;
    ASSERT_EQ(harness.delivered.size(), sent.size());
}

/// The message that is number 0, where every message has one size: what was sent before is not counted.
std::size_t first_counted(const std::vector<Sent>& sent, const Harness& harness, const Plan& plan) {
    if (plan.mode != Mode::grid) return 0;
    if (harness.delivered.empty()) return sent.size();
    return id_of(harness.delivered[0], plan.mode) - harness.delivered[0].number;
}

void check(std::vector<Sent>& sent, const Harness& harness, const Plan& plan) {
    for (const Delivered& got : harness.delivered) {
        const std::uint32_t id = id_of(got, plan.mode);
        ASSERT_LT(id, sent.size());
        Sent& message = sent[id];
        ++(got.complete ? message.completed : message.partly);
        ASSERT_TRUE(!got.total_known || got.total == message.payload.size())
            << id << ": " << got.total << " for " << message.payload.size() << described(sent, id);
        for (const ByteRange& range : got.ranges)
            ASSERT_TRUE(std::equal(got.bytes.begin() + range.begin, got.bytes.begin() + range.end,
                                   message.payload.begin() + range.begin))
                << id;
        ASSERT_TRUE(inside(got.ranges, message.ranges())) << id;
        ASSERT_TRUE(!got.complete || message.whole()) << id;
        if (got.complete || (!plan.tight && provable(sent, id, plan.senders, plan.mode))) {
            ASSERT_TRUE(same(got.ranges, message.ranges())) << id;
        }
    }
    const std::size_t first = first_counted(sent, harness, plan);
    for (std::uint32_t id = 0; id < sent.size(); ++id) {
        const Sent& message = sent[id];
        ASSERT_LE(message.completed + message.partly, 1U) << id;
        if (plan.tight) continue;
        if (plan.mode == Mode::count || id < first) continue;
        ASSERT_EQ(message.completed, message.whole() ? 1U : 0U) << id << described(sent, id);
        ASSERT_TRUE(message.partly == 1 || message.whole() || !provable(sent, id, plan.senders, plan.mode))
            << id << described(sent, id);
    }
}

/// Every PSN between the first and the last of a sender's that came is accounted for, whatever became of the packet.
void check_psns(const std::vector<Sent>& sent, const Harness& harness, const Plan& plan, std::size_t packets) {
    PsnCounts::Values want;
    for (std::size_t sender = 0; sender < plan.senders; ++sender) {
        std::int64_t at = 0, first = -1, last = -1;
        std::uint32_t before = sent[sender].packets[0].psn;
        for (std::size_t id = sender; id < sent.size(); id += plan.senders)
            for (std::size_t i = 0; i < sent[id].packets.size(); ++i) {
                at += (sent[id].packets[i].psn - before) & 0xffffff;
                before = sent[id].packets[i].psn;
                if (!sent[id].arrived[i]) continue;
                if (first < 0) first = at;
                last = at;
                ++want.seen;
            }
        if (first >= 0) want.expected += static_cast<std::uint64_t>(last - first + 1);
    }
    const PsnCounts::Values got = harness.listener.psn_counts(0);
    ASSERT_EQ(got.expected, want.expected);
    ASSERT_EQ(got.seen, want.seen);
    ASSERT_EQ(got.repeated, packets - want.seen);
    ASSERT_EQ(got.jumps + got.restarts, 0U);
    ASSERT_LE(got.senders, plan.senders);
}

std::size_t random_burst(Dice& dice, std::size_t left) {
    const std::uint32_t most = dice.chance(0.5) ? 16 : dice.chance(0.5) ? 3 : Listener::burst_max;
    return std::min<std::size_t>(1 + dice.below(most), left);
}

void run_one(std::uint64_t seed) {
    Dice dice(seed);
    const Plan plan = random_plan(dice);
    HarnessConfig config;
    constexpr NumberBy ways[] = {NumberBy::immediate, NumberBy::arrival, NumberBy::count, NumberBy::count};
    config.sources[0].number_by = ways[static_cast<std::size_t>(plan.mode)];
    if (plan.tight) {
        config.messages_max = 8 + dice.below(32);
        config.buffers_max = 40 + dice.below(100);
        config.window = dice.below(20);
        // A ring shorter than the reordering forgets what has been; then only the number of a message can tell.
        if (plan.mode == Mode::immediate) config.psn_window = 16U << dice.below(5);
        config.timeout_ns = 1000 + dice.below(200'000);
    }
    std::vector<Sent> sent = random_messages(dice, plan);
    if (plan.mode == Mode::grid) config.sources[0].message_bytes = static_cast<std::uint32_t>(sent[0].payload.size());
    std::vector<Arrived> arrived;
    for (const auto& [id, i] : wire_order(dice, plan, sent))
        arrived.push_back({sent[id].packets[i], static_cast<core::TimeNs>(1000 * (arrived.size() + 1))});
    for (const bool bursts : {false, true}) {
        Harness harness(config);
        for (std::span<const Arrived> left(arrived); !left.empty();) {
            const std::size_t count = bursts ? random_burst(dice, left.size()) : 1;
            harness.add_burst(left.first(count), !bursts);
            if (plan.tight) harness.expire(left[count - 1].now);
            left = left.subspan(count);
        }
        harness.finish(arrived.empty() ? 0 : arrived.back().now);
        for (Sent& message : sent) message.completed = message.partly = 0;
        check(sent, harness, plan);
        check_numbers(sent, harness, plan);
        if (!plan.tight) check_psns(sent, harness, plan, arrived.size());
    }
}

/// Of several queue pairs, and with everything that can go wrong with them, also what no sender would do.
struct Mixed {
    HarnessConfig config;
    std::deque<std::vector<Sent>> sent;  ///< has the payload
    std::vector<Arrived> arrived;
};

/// What the queue pair's packets are in the order in which they come. A restart begins again with any PSN; what is
/// damaged has passed the checks of the decoder, or its sender is broken.
std::vector<wire::RocePacket> random_faults(Dice& dice, const Plan& plan, std::vector<Sent>& sent) {
    std::vector<wire::RocePacket> out;
    for (const auto& [id, i] : wire_order(dice, plan, sent)) out.push_back(sent[id].packets[i]);
    if (dice.chance(0.3)) {
        const std::uint32_t by = dice.chance(0.5) ? dice.below(300) : dice.below(1U << 24);
        for (std::size_t i = dice.below(static_cast<std::uint32_t>(out.size() + 1)); i < out.size(); ++i)
            out[i].psn = (out[i].psn + by) & 0xffffff;
    }
    // Strays from one neighbourhood: two soon after each other are a restart, with many packets between they are not.
    const std::uint32_t far = dice.below(1U << 24);
    for (std::uint32_t strays = dice.chance(0.3) ? 2 : 0; strays > 0 && !out.empty(); --strays) {
        wire::RocePacket stray = out[dice.below(static_cast<std::uint32_t>(out.size()))];
        stray.psn = (far + dice.below(20)) & 0xffffff;
        out.insert(out.begin() + dice.below(static_cast<std::uint32_t>(out.size())), stray);
    }
    const double damage = dice.chance(0.5) ? 0 : 0.01;
    for (wire::RocePacket& packet : out) {
        if (!dice.chance(damage)) continue;
        switch (dice.below(5)) {
            case 0:
                packet.is_write = !packet.is_write;
                break;
            case 1:
                packet.bytes -= std::min(packet.bytes, 1 + dice.below(300));
                break;
            case 2:
                packet.place = static_cast<wire::RocePlace>(dice.below(4));
                break;
            case 3:
                packet.psn = dice.below(1U << 24);
                break;
            default:
                packet.has_immediate = !packet.has_immediate;
                break;
        }
    }
    return out;
}

Mixed random_mixed(Dice& dice) {
    Mixed out;
    const std::uint32_t sources = 1 + dice.below(4);
    out.config.sources.resize(sources);
    std::vector<std::vector<wire::RocePacket>> packets;
    for (std::uint32_t source = 0; source < sources; ++source) {
        Plan plan = random_plan(dice);
        if (dice.chance(0.5)) plan.loss = plan.repeat = plan.displacement = 0;
        if (dice.chance(0.1)) plan.packets_max = 2 * Stretch::longest + 20;
        Listener::SourceConfig& config = out.config.sources[source];
        constexpr NumberBy ways[] = {NumberBy::immediate, NumberBy::arrival, NumberBy::count, NumberBy::count};
        config.source = source;
        config.number_by = ways[static_cast<std::size_t>(plan.mode)];
        out.sent.push_back(random_messages(dice, plan));
        if (plan.mode == Mode::grid)
            config.message_bytes = static_cast<std::uint32_t>(out.sent.back()[0].payload.size());
        if (dice.chance(0.1)) config.max_message_bytes = 1000 + dice.below(4000);
        packets.push_back(random_faults(dice, plan, out.sent.back()));
    }
    if (dice.chance(0.4)) {
        out.config.messages_max = 8 + dice.below(32);
        out.config.buffers_max = 40 + dice.below(100);
        out.config.window = dice.below(20);
        out.config.psn_window = 16U << dice.below(8);
        out.config.timeout_ns = 1000 + dice.below(200'000);
        out.config.more_connections = dice.below(3);
    }
    // Stretches of one queue pair, and packets of all of them in turn.
    core::TimeNs now = 0;
    const std::uint32_t stretch = 1 + dice.below(20);
    std::vector<std::size_t> at(sources);
    for (std::uint32_t left = sources; left > 0;) {
        const std::uint32_t source = dice.below(sources);
        for (std::uint32_t count = 1 + dice.below(stretch); count > 0 && at[source] < packets[source].size(); --count) {
            now += dice.chance(0.001) ? 300'000 : 1000;
            out.arrived.push_back({packets[source][at[source]++], now, source});
        }
        left = 0;
        for (std::uint32_t other = 0; other < sources; ++other) left += at[other] < packets[other].size() ? 1U : 0U;
    }
    return out;
}

/// Everything that can be seen of what came of a stream, as text.
std::string told(const Mixed& mixed, bool one_by_one, std::uint64_t seed) {
    Dice dice(seed);
    Harness harness(mixed.config);
    const auto sources = static_cast<std::uint32_t>(mixed.config.sources.size());
    for (std::span<const Arrived> left(mixed.arrived); !left.empty();) {
        const std::size_t count = random_burst(dice, left.size());
        harness.add_burst(left.first(count), one_by_one);
        const Arrived& last = left[count - 1];
        if (dice.chance(0.1)) harness.expire(last.now);
        if (dice.chance(0.02)) {  // a READ
            wire::RocePacket read = last.packet;
            read.psn = (read.psn + 1) & 0xffffff;
            read.dma_length = dice.below(5000);
            harness.skip(read, last.now, last.source);
        }
        if (dice.chance(0.01)) harness.forget(last.now, {}, dice.below(sources));
        if (dice.chance(0.02)) static_cast<void>(harness.listener.evict_oldest(last.now));
        if (dice.chance(0.02)) harness.listener.expire_messages(last.now);
        if (dice.chance(0.01)) harness.listener.note(last.source, last.packet, last.now);
        harness.drain(last.now);
        left = left.subspan(count);
    }
    harness.finish(mixed.arrived.empty() ? 0 : mixed.arrived.back().now);
    std::ostringstream text;
    for (std::size_t i = 0; i < core::count_of<PacketCounter>; ++i)
        text << wire::packet_counters[i].name << ' ' << harness.packets.get(static_cast<PacketCounter>(i)) << '\n';
    for (std::size_t i = 0; i < core::count_of<assemble::MessageCounter>; ++i)
        text << "messages " << i << ' ' << harness.messages.get(static_cast<assemble::MessageCounter>(i)) << '\n';
    for (std::uint32_t source = 0; source < sources; ++source) {
        const PsnCounts::Values psns = harness.listener.psn_counts(source);
        text << "PSNs " << psns.expected << ' ' << psns.seen << ' ' << psns.out_of_order << ' ' << psns.repeated << ' '
             << psns.restarts << ' ' << psns.jumps << ' ' << psns.jump_psns << ' ' << psns.unnumbered << ' '
             << psns.senders << ' ' << psns.sender << '\n';
    }
    for (const Delivered& got : harness.delivered) {
        text << got.source << ' ' << got.number << ' ' << got.epoch << ' ' << got.complete << ' ' << got.total_known
             << ' ' << got.total << ' ' << got.first_ns << ' ' << got.last_ns << ' ';
        for (const ByteRange& range : got.ranges) text << range.begin << ".." << range.end << ' ';
        text << std::string(reinterpret_cast<const char*>(got.bytes.data()), got.bytes.size()) << '\n';
    }
    return text.str();
}

/// Without what is in the messages.
std::string first_difference(const std::string& one, const std::string& other) {
    const std::size_t at = std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first - one.begin();
    const std::size_t begin = at == 0 ? 0 : one.rfind('\n', at - 1) + 1;
    return one.substr(begin, 100) + "\nin bursts:\n" + other.substr(begin, 100);
}

TEST(ListenerModel, RandomStreams) {
    for (std::uint64_t seed = 1; seed <= weir::test::repeated(std::uint64_t{2000}); ++seed) {
        run_one(seed);
        ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    }
}

TEST(ListenerModel, BurstsAreTheSameAsPacketByPacket) {
    for (std::uint64_t seed = 1; seed <= weir::test::repeated(std::uint64_t{1000}); ++seed) {
        Dice dice(seed);
        const Mixed mixed = random_mixed(dice);
        const std::string single = told(mixed, true, seed);
        const std::string bursts = told(mixed, false, seed);
        ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
        ASSERT_TRUE(single == bursts) << "seed " << seed << '\n' << first_difference(single, bursts);
    }
}

}  // namespace
}  // namespace weir::roce::test

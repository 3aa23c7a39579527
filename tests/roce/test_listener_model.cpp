// Random streams of SEND and WRITE messages, lost, repeated and shuffled, against an oracle that only looks at which
// packets arrived. The seed is printed when something differs.
#include <algorithm>
#include <numeric>
#include <random>

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
    /// LAST (with its immediate) is there, and arithmetic must find where everything lies.
    [[nodiscard]] bool provable() const {
        if (!arrived.front() || !arrived.back()) return false;
        if (spec.is_write) return true;
        for (std::size_t i = 1; i < arrived.size(); ++i)
            if (!arrived[i] && !arrived[i - 1]) return false;
        return true;
    }
};

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
    bool by_arrival = false;
};

Plan random_plan(Dice& dice) {
    Plan plan;
    plan.loss = dice.chance(0.4) ? 0 : dice.chance(0.5) ? 0.02 : 0.25;
    plan.repeat = dice.chance(0.5) ? 0 : 0.1;
    plan.displacement = dice.chance(0.3) ? 0 : dice.below(dice.chance(0.5) ? 8 : 200);
    plan.tight = dice.chance(0.2);
    plan.by_arrival = dice.chance(0.3);
    return plan;
}

std::vector<Sent> random_messages(Dice& dice, bool by_arrival) {
    std::vector<Sent> sent(20 + dice.below(40));
    const std::uint32_t pmtu = 256U << dice.below(3);
    const double write = dice.chance(0.3) ? 0 : dice.chance(0.5) ? 1 : 0.5;
    std::uint32_t psn = dice.chance(0.5) ? 0xffffff - dice.below(100) : dice.below(1U << 24);
    for (std::uint32_t id = 0; id < sent.size(); ++id) {
        Sent& message = sent[id];
        message.spec = {wire::RoceTransport::uc, dice.chance(write), id, pmtu};
        const std::uint32_t least = by_arrival ? 4 : 0;
        std::uint32_t bytes = least + dice.below(dice.chance(0.2) ? 600 : pmtu * (1 + dice.below(12)));
        if (by_arrival) bytes &= ~3U;  // every packet has a word that tells whose it is
        message.payload = payload_of(id, bytes);
        message.packets = packets_of(message.spec, message.payload, psn);
        message.arrived.resize(message.packets.size());
        psn = (psn + static_cast<std::uint32_t>(message.packets.size())) & 0xffffff;
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
std::uint32_t id_of(const Delivered& got, bool by_arrival) {
    if (!by_arrival) return static_cast<std::uint32_t>(got.number);
    if (got.ranges.empty()) return ~0U;
    std::uint32_t word = 0;
    std::memcpy(&word, got.bytes.data() + got.ranges[0].begin, 4);
    return word >> 18U;
}

/// The message and the two before it, packet by packet.
std::string described(const std::vector<Sent>& sent, std::uint32_t id) {
    std::string out;
    for (std::uint32_t at = id < 2 ? 0 : id - 2; at <= id; ++at) {
        out += sent[at].spec.is_write ? "; write " : "; send ";
        for (const bool arrived : sent[at].arrived) out += arrived ? '+' : '-';
    }
    return out;
}

void check(std::vector<Sent>& sent, const Harness& harness, const Plan& plan) {
    for (const Delivered& got : harness.delivered) {
        const std::uint32_t id = id_of(got, plan.by_arrival);
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
        if (got.complete || (!plan.tight && message.provable())) {
            ASSERT_TRUE(same(got.ranges, message.ranges())) << id;
        }
    }
    for (std::uint32_t id = 0; id < sent.size(); ++id) {
        const Sent& message = sent[id];
        ASSERT_LE(message.completed + message.partly, 1U) << id;
        if (plan.tight) continue;
        ASSERT_EQ(message.completed, message.whole() ? 1U : 0U) << id;
        ASSERT_TRUE(message.partly == 1 || message.whole() || !message.provable()) << id;
    }
}

void run_one(std::uint64_t seed) {
    Dice dice(seed);
    const Plan plan = random_plan(dice);
    HarnessConfig config;
    config.sources[0].number_by = plan.by_arrival ? NumberBy::arrival : NumberBy::immediate;
    if (plan.tight) {
        config.messages_max = 8 + dice.below(32);
        config.buffers_max = 40 + dice.below(100);
        config.window = dice.below(20);
        // A ring shorter than the reordering forgets what has been; then only the number of a message can tell.
        if (!plan.by_arrival) config.psn_window = 16U << dice.below(5);
        config.timeout_ns = 1000 + dice.below(200'000);
    }
    std::vector<Sent> sent = random_messages(dice, plan.by_arrival);
    Harness harness(config);
    core::TimeNs now = 0;
    for (const auto& [id, i] : wire_order(dice, plan, sent)) {
        harness.add(sent[id].packets[i], now += 1000);
        if (plan.tight) harness.expire(now);
    }
    harness.finish(now);
    check(sent, harness, plan);
}

TEST(ListenerModel, RandomStreams) {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
        run_one(seed);
        ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace weir::roce::test

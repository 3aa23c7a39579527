// Random streams against the oracle, fused and spread. A failure prints its seed:
//   WEIR_MODEL_SEED=n runs that one stream only; WEIR_MODEL_RUNS=n runs so many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "effort.hpp"
#include "stream.hpp"

namespace {

using namespace weir::assemble;
using namespace weir::assemble::test;
using weir::wire::PacketCounter;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::ostream& operator<<(std::ostream& to, const MessageResult& message) {
    to << (message.complete ? "complete" : "incomplete") << " of ";
    message.total_known ? to << message.total : to << "unknown";
    to << ", packets";
    for (const std::size_t packet : message.packets) to << ' ' << packet;
    to << ", missing";
    for (const auto& [begin, end] : message.missing) to << ' ' << begin << ".." << end;
    return to;
}

/// What is wrong with the result; empty if nothing.
class Comparison {
public:
    Comparison(const Stream& stream, const Harness& got, const Oracle& expected)
        : stream_(stream), got_(got), expected_(expected) {}

    std::string events() {
        for (const EventResult& event : got_.events) compare(event);
        for (const auto& [key, event] : expected_.events)
            if (!event.refused.has_value() && !seen_.contains(key)) (begin("event is missing", key) << '\n');
        return text_.str();
    }

    /// With a delay between the levels, a packet that is wrong and late (or refused) too may be counted as either.
    std::string counters(bool exact) {
        std::uint64_t wrong_or_late = 0;
        for (std::size_t i = 0; i < weir::core::count_of<PacketCounter>; ++i) {
            const auto counter = static_cast<PacketCounter>(i);
            const std::uint64_t difference = got_.count(counter) - expected_.counters[i];
            const bool ambiguous = counter == PacketCounter::duplicate || counter == PacketCounter::conflict ||
                                   counter == PacketCounter::too_fragmented || counter == PacketCounter::late ||
                                   is_refusal(counter);
            if (ambiguous && !exact)
                wrong_or_late += difference;
            else if (difference != 0)
                text_ << weir::wire::packet_counters[i].name << ": " << got_.count(counter) << ", expected "
                      << expected_.counters[i] << '\n';
        }
        if (wrong_or_late != 0) text_ << "duplicate + conflict + too_fragmented + late + refused differ\n";
        return text_.str();
    }

private:
    std::ostream& begin(const char* what, const Oracle::Key& key) {
        const auto& [wild, epoch, number] = key;
        return text_ << what << ": " << (wild ? "wild " : "") << epoch << ':' << number << ' ';
    }

    void compare(const EventResult& event) {
        const Sent* any = nullptr;
        for (const auto& [source, message] : event.messages)
            for (const std::size_t packet : message.packets) any = &stream_.sent[packet];
        if (any == nullptr) {
            text_ << "an event without packets\n";
            return;
        }
        const Oracle::Key key{any->wild, any->epoch, any->number};
        if (!seen_.insert({key, &event}).second) (begin("event is there twice", key) << '\n');
        const auto found = expected_.events.find(key);
        if (found == expected_.events.end() || found->second.refused.has_value()) {
            (begin("event should not be", key) << '\n');
            return;
        }
        if (event.epoch != any->epoch) (begin("wrong epoch", key) << event.epoch << '\n');
        compare_number(event, *any);
        if (event.cause != found->second.cause)
            (begin("wrong cause", key) << name_of(event.cause) << ", not " << name_of(found->second.cause) << '\n');
        for (std::uint32_t source = 0; source < stream_.limits.sources; ++source) {
            const auto got = event.messages.find(source);
            const auto expected = found->second.messages.find(source);
            const MessageResult none;
            const MessageResult& left = got != event.messages.end() ? got->second : none;
            const MessageResult& right = expected != found->second.messages.end() ? expected->second.result : none;
            if (left != right)
                begin("wrong message", key)
                    << "source " << source << "\n  is     " << left << "\n  expect " << right << '\n';
        }
    }

    /// Numbers of an epoch are the true ones, up to whole turns of the counter that are the same for all of them.
    void compare_number(const EventResult& event, const Sent& any) {
        const unsigned bits = stream_.limits.number_bits;
        const std::uint64_t off = event.number - any.number;
        if (bits < 64 ? (off & ((std::uint64_t{1} << bits) - 1)) != 0 : off != 0)
            text_ << "event " << any.number << " has number " << event.number << '\n';
        if (any.wild) return;
        const auto [turn, fresh] = turns_.insert({any.epoch, off});
        if (!fresh && turn->second != off) text_ << "event " << any.number << " is in another turn\n";
    }

    const Stream& stream_;
    const Harness& got_;
    const Oracle& expected_;
    std::map<Oracle::Key, const EventResult*> seen_;
    std::map<std::uint32_t, std::uint64_t> turns_;
    std::ostringstream text_;
};

/// Small payload is copied while there are cells: of some streams all of it, of others until cells are short.
CopyConfig some_copies(std::uint64_t seed) {
    return {.at_once_bytes = static_cast<std::uint32_t>(seed % 5 * 40),
            .cells = static_cast<std::uint32_t>(seed % 3 == 0 ? 4 : 200),
            .cell_bytes = seed % 2 == 0 ? 256U : 4096U};
}

std::string run(std::uint64_t seed) {
    const Stream stream = StreamMaker(seed).make();
    Oracle oracle(stream.limits, stream.ranges_max);
    Harness fused(stream.limits);
    std::vector<Packet> packets;
    std::map<CopyKey, std::size_t> first_copies;
    for (const Sent& sent : stream.sent) {
        oracle.add(sent, first_copies.try_emplace(copy_key(sent.packet), packets.size()).first->second);
        fused.add(sent.packet);
        packets.push_back(sent.packet);
    }
    oracle.finish();
    fused.finish();
    const auto compare = [&](const char* what, const Harness& got, bool exact) {
        const std::string text =
            got.faults() + Comparison(stream, got, oracle).events() + Comparison(stream, got, oracle).counters(exact);
        return text.empty() ? text : std::string(what) + ":\n" + text;
    };
    std::string text = compare("fused", fused, true);
    Limits in_bursts = stream.limits;
    in_bursts.bursts = true;
    in_bursts.copies = some_copies(seed);
    Harness fused_bursts(in_bursts);
    for (const Packet& packet : packets) fused_bursts.add(packet);
    fused_bursts.finish();
    text += compare("fused, in bursts of one", fused_bursts, true);
    Harness spread(in_bursts);
    spread.run_spread(packets, seed);
    text += compare("spread", spread, false);
    // Several shards of the builder. Where the window binds, which event makes room depends on who comes when.
    if (!stream.limited && seed % 2 == 0) {
        Limits sharded = stream.limits;
        sharded.shards = 2 + static_cast<std::uint32_t>(seed / 2 % 3);
        Harness fused_shards(sharded);
        for (const Packet& packet : packets) fused_shards.add(packet);
        fused_shards.finish();
        text += compare("fused shards", fused_shards, true);
        Harness spread_shards(sharded);
        spread_shards.run_spread(packets, seed);
        text += compare("spread shards", spread_shards, false);
    }
    if (seed % 4 == 0) {
        // One poll for everything: nothing that the builder knows reaches the rx lcore in time.
        Limits limits = stream.limits;
        limits.rx_count = 1;
        limits.messages_max = 2000;
        limits.buffers_max = 4000;
        for (const bool bursts : {false, true}) {
            limits.bursts = bursts;
            Harness burst(limits);
            burst.add_undrained(packets);
            burst.finish();
            text += compare("one burst", burst, false);
        }
    }
    return text;
}

/// What the two ways of a packet make of one stream has to be the same in every respect.
std::string differences(const Harness& one, const Harness& other) {
    std::ostringstream text;
    const auto counters = [&]<class E>(const auto& table, E) {
        for (std::size_t i = 0; i < weir::core::count_of<E>; ++i)
            if (one.count(static_cast<E>(i)) != other.count(static_cast<E>(i)))
                text << table[i].name << ": " << one.count(static_cast<E>(i)) << " by packets, "
                     << other.count(static_cast<E>(i)) << " in bursts\n";
    };
    counters(weir::wire::packet_counters, PacketCounter{});
    counters(message_counters, MessageCounter{});
    counters(event_counters, EventCounter{});
    if (one.events != other.events) text << "the events differ\n";
    return text.str();
}

std::string compare_ways(std::uint64_t seed) {
    const Stream stream = StreamMaker(seed).make();
    std::vector<Packet> packets;
    for (const Sent& sent : stream.sent) packets.push_back(sent.packet);
    Limits limits = stream.limits;
    limits.shards = 1 + static_cast<std::uint32_t>(seed % 3);
    Harness single(limits);
    single.run_spread(packets, seed);
    limits.bursts = true;
    limits.copies = some_copies(seed);
    Harness bursts(limits);
    bursts.run_spread(packets, seed);
    return bursts.faults() + differences(single, bursts);
}

/// `check` says what is wrong with one random stream, for many of them.
void check_streams(std::string (*check)(std::uint64_t seed)) {
    const std::uint64_t only = from_environment("WEIR_MODEL_SEED", 0);
    const std::uint64_t usual = weir::test::repeated(10'000, {.sanitized = 40});
    const std::uint64_t runs = only != 0 ? 1 : from_environment("WEIR_MODEL_RUNS", usual);
    int failures = 0;
    for (std::uint64_t i = 0; i < runs && failures < 3; ++i) {
        const std::uint64_t seed = only != 0 ? only : i + 1;
        const std::string text = check(seed);
        if (text.empty()) continue;
        ++failures;
        ADD_FAILURE() << "WEIR_MODEL_SEED=" << seed << '\n' << text;
    }
}

TEST(Model, BurstsAreTheSameAsPacketByPacket) {
    check_streams(compare_ways);
}

TEST(Model, AgreesWithTheOracle) {
    check_streams(run);
}

TEST(Model, CopiesSomePayloadAndRefersToSome) {
    std::uint64_t copied = 0;
    std::uint64_t placed = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        const Stream stream = StreamMaker(seed).make();
        Limits limits = stream.limits;
        limits.copies = some_copies(seed);
        Harness harness(limits);
        for (const Sent& sent : stream.sent) harness.add(sent.packet);
        harness.finish();
        copied += harness.copied();
        placed += harness.count(PacketCounter::placed);
    }
    EXPECT_GT(copied, placed / 4);
    EXPECT_GT(placed - copied, placed / 4);
}

TEST(Model, MeetsEveryKindOfFault) {
    std::array<std::uint64_t, weir::core::count_of<PacketCounter>> counters{};
    std::map<EventCause, int> causes;
    int wild = 0;
    int complete_after_restart = 0;
    int wrapped = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        const Stream stream = StreamMaker(seed).make();
        EXPECT_GE(stream.sent.size(), 200u);
        EXPECT_GE(stream.limits.sources, 3u);
        Oracle oracle(stream.limits, stream.ranges_max);
        std::size_t index = 0;
        for (const Sent& sent : stream.sent) {
            oracle.add(sent, index++);
            wild += sent.wild ? 1 : 0;
            wrapped += !sent.wild && sent.number != sent.packet.number ? 1 : 0;
        }
        oracle.finish();
        for (std::size_t i = 0; i < counters.size(); ++i) counters[i] += oracle.counters[i];
        for (const auto& [key, event] : oracle.events) {
            if (event.refused.has_value()) continue;
            ++causes[event.cause];
            if (event.cause == EventCause::complete && std::get<1>(key) > 0) ++complete_after_restart;
        }
    }
    for (const PacketCounter counter :
         {PacketCounter::placed, PacketCounter::duplicate, PacketCounter::conflict, PacketCounter::late,
          PacketCounter::too_fragmented, PacketCounter::malformed_range, PacketCounter::malformed_message_size,
          PacketCounter::malformed_payload_length, PacketCounter::no_room, PacketCounter::prescaled})
        EXPECT_GE(counters[static_cast<std::size_t>(counter)], 20u)
            << weir::wire::packet_counters[static_cast<std::size_t>(counter)].name;
    for (const EventCause cause :
         {EventCause::complete, EventCause::timeout, EventCause::evicted, EventCause::end_of_run})
        EXPECT_GE(causes[cause], 20) << name_of(cause);
    EXPECT_GE(wild, 20);
    EXPECT_GE(complete_after_restart, 100);
    EXPECT_GE(wrapped, 1000);
}

}  // namespace

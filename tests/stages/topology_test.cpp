// All stages together, with random packets and in random order: the ledger balances, no event is wrong, everything is
// given back, and the events of a capture are the same however its stages are spread and whenever they are polled.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "made_capture.hpp"

namespace weir::stages::test {
namespace {

constexpr std::uint32_t sources = 3;
using Seeds = std::vector<std::uint32_t>;

enum class Arrive : std::uint8_t {
    at_the_first,     ///< lcore, which steers: a replay
    at_their_owners,  ///< each source at the lcore that assembles it
};

class TopologyProperty : public StagesTest {
protected:
    struct Outcome {
        EventsFound events;
        Account account;
        std::string wrong;  ///< whatever must not be, in words; empty: nothing
    };

    /// Polls in order, or in one that `random` decides.
    Outcome run(const Capture& capture, const Shape& shape, Arrive arrive, std::mt19937_64* random) {
        Topology all(shape);
        std::uint16_t identification = 0;
        for (const CapturedPacket& captured : capture) {
            ++identification;
            const std::uint32_t rx = arrive == Arrive::at_the_first ? 0 : all.shape().owner[captured.part.source];
            for (const port::Packet& packet : packets_of(make_, captured, identification)) all.feed(packet, rx);
            if (random == nullptr) {
                if (identification % 16 == 0) all.turn();
            } else {
                for (std::uint64_t polls = (*random)() % 3; polls > 0; --polls) all.poll((*random)() % all.stages());
            }
        }
        if (random != nullptr)
            all.finish(*random);
        else
            all.finish();
        Outcome outcome{all.events(), all.account(), {}};
        outcome.wrong = outcome.account.imbalance() + all.not_given_back(pool_) + wrong_bytes(outcome.events);
        if (outcome.account.get(EventCounter::written) != outcome.events.size()) outcome.wrong += "events not found\n";
        std::uint64_t packets = 0;
        for (const auto& [key, event] : outcome.events)
            for (const auto& [source, found] : event.sources) packets += found.packets;
        if (shape.keep_incomplete && packets != outcome.account.get(PacketCounter::placed))
            outcome.wrong += std::to_string(packets) + " packets in events\n";
        return outcome;
    }
    static Shape ample() {
        Shape shape;
        shape.sources = sources;
        shape.packet_ring = 4095;
        return shape;
    }
    /// Two lcores and two shards could wait for each other if rings to both were full, which a plan makes too large for
    /// that.
    static bool never_in_a_circle(const Shape& shape) { return shape.rx == 1 || shape.builders == 1; }
    /// A packet that comes too late and would be wrong anyway may be counted as either.
    static std::uint64_t wrong_or_late(const Account& account) {
        return account.get(PacketCounter::duplicate) + account.get(PacketCounter::conflict) +
               account.get(PacketCounter::late);
    }
};

TEST_F(TopologyProperty, ACaptureGivesTheSameEventsFusedAndSpread) {
    EXPECT_TRUE(rc::check([this](const Seeds& seeds, std::uint32_t seed) {
        const Capture capture = made_capture(seeds, sources, ample().timeout_ns);
        const Outcome fused = run(capture, ample(), Arrive::at_the_first, nullptr);
        RC_ASSERT(fused.wrong == "");
        std::mt19937_64 random(seed);
        Shape shape = ample();
        shape.rx = 1 + seed % 3;
        shape.builders = 1 + seed / 3 % 3;
        shape.workers = 1 + seed / 9 % 2;
        if (never_in_a_circle(shape)) shape.descriptor_ring = 1U << (2 + seed / 18 % 8);
        shape.steer_ring = 1U << (2 + seed / 180 % 8);
        shape.command_ring = 1U << (2 + seed / 1800 % 8);
        for (const Arrive arrive : {Arrive::at_the_first, Arrive::at_their_owners}) {
            shape.replay = arrive == Arrive::at_the_first;
            const Outcome spread = run(capture, shape, arrive, &random);
            RC_ASSERT(spread.wrong == "");
            RC_ASSERT(difference(spread.events, fused.events) == "");
            RC_ASSERT(wrong_or_late(spread.account) == wrong_or_late(fused.account));
            RC_ASSERT(spread.account.get(PacketCounter::placed) == fused.account.get(PacketCounter::placed));
            RC_ASSERT(spread.account.get(PacketCounter::unsteered) == fused.account.get(PacketCounter::unsteered));
        }
    }));
}

TEST_F(TopologyProperty, WithLittleOfEverythingAWaitingInputLosesNoPacketUncounted) {
    EXPECT_TRUE(rc::check([this](const Seeds& seeds, std::uint32_t seed) {
        std::mt19937_64 random(seed);
        Shape shape;
        shape.sources = sources;
        shape.rx = 1 + seed % 2;
        shape.builders = 1 + seed / 2 % 2;
        shape.workers = 1 + seed / 4 % 2;
        shape.packet_ring = shape.steer_ring = shape.command_ring = 8;
        if (never_in_a_circle(shape)) shape.descriptor_ring = 8;
        shape.buffers_max = 256;
        shape.open_max = 12;
        shape.queued_max = 6;
        shape.output_buffers = 1;
        shape.output_buffer_bytes = store::BlockWriter::buffer_bytes_min;
        shape.keep_incomplete = seed / 8 % 4 != 0;
        const Outcome outcome =
            run(made_capture(seeds, sources, shape.timeout_ns), shape, Arrive::at_the_first, &random);
        RC_ASSERT(outcome.wrong == "");
        RC_ASSERT(outcome.account.get(PacketCounter::no_room) == 0U);
        RC_ASSERT(outcome.account.get(PacketCounter::queue_full) == 0U);
        RC_ASSERT(outcome.account.get(PacketCounter::ring_full_steer) == 0U);
    }));
}

TEST_F(TopologyProperty, UnderEveryOverloadPolicyEachPacketOfLiveInputIsCountedOnce) {
    EXPECT_TRUE(rc::check([this](const Seeds& seeds, std::uint32_t seed) {
        std::mt19937_64 random(seed);
        Shape shape;
        shape.sources = sources;
        shape.wait = false;
        shape.rx = 1 + seed % 2;
        shape.builders = 1 + seed / 2 % 2;
        shape.workers = 1 + seed / 4 % 2;
        shape.steer_ring = 16;
        shape.messages_max = 40;
        shape.buffers_max = 200;
        shape.open_max = 6;
        shape.queued_max = 4;
        shape.output_buffers = 1;
        shape.output_buffer_bytes = store::BlockWriter::buffer_bytes_min;
        shape.overload = static_cast<assemble::Overload>(seed / 8 % 3);
        shape.prescale = 3;
        const Outcome outcome =
            run(made_capture(seeds, sources, shape.timeout_ns), shape, Arrive::at_the_first, &random);
        RC_ASSERT(outcome.wrong == "");
    }));
}

}  // namespace
}  // namespace weir::stages::test

// The quick way of regular packets must not change what becomes of them: guesses, the grid, and what is left to the way
// of all others. (That both ways do the same with any stream is model_test's business.)
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "assemble/message_table.hpp"

namespace weir::assemble {
namespace {

using wire::PacketCounter;

constexpr std::uint32_t total = 400;
constexpr std::uint32_t piece_bytes = 100;

std::uint64_t released;
void release(void**, std::uint32_t count) {
    released += count;
}

wire::Fragment piece(std::uint64_t number, std::uint32_t offset, std::uint32_t bytes = piece_bytes) {
    static const std::array<std::byte, total + 1> payload{};
    wire::Fragment fragment;
    fragment.payload = payload.data();
    fragment.number = number;
    fragment.offset = offset;
    fragment.bytes = bytes;
    fragment.total = total;
    fragment.total_known = true;
    return fragment;
}

class Bursts : public testing::Test {
protected:
    Bursts() { make(64); }
    /// A new table, for numbers of so many bits.
    void make(std::uint8_t number_bits) {
        MessageTable::Config config;
        config.sources = 2;
        config.messages_max = 2048;
        config.buffers_max = 8192;
        config.number_bits = {number_bits, number_bits};
        table_ = std::make_unique<MessageTable>(config, packets_, messages_, release);
    }
    /// A new table of few messages; `waits`: Config::waits.
    void make_small(bool waits) {
        MessageTable::Config config;
        config.sources = 2;
        config.messages_max = 64;
        config.buffers_max = 512;
        config.waits = waits;
        table_ = std::make_unique<MessageTable>(config, packets_, messages_, release);
    }
    void add_whole(std::uint64_t number) {
        add({piece(number, 0), piece(number, 100), piece(number, 200), piece(number, 300)});
    }
    void add(const std::vector<wire::Fragment>& fragments, std::uint32_t source = 0) {
        const std::vector<std::uint32_t> sources(fragments.size(), source);
        const std::vector<void*> buffers(fragments.size(), &buffer_);
        const std::vector<TimeNs> times(fragments.size(), 1);
        table_->add_burst({sources, fragments.data(), buffers.data(), times.data()});
    }
    void add(const wire::Fragment& fragment, std::uint32_t source = 0) { add(std::vector{fragment}, source); }
    /// Numbers of the messages that were delivered since the last call; they are recycled.
    std::vector<std::uint64_t> delivered() {
        std::vector<std::uint64_t> numbers;
        for (const Descriptor& descriptor : table_->pending()) {
            if (descriptor.kind != Descriptor::Kind::deliver) continue;
            numbers.push_back(descriptor.number);
            EXPECT_EQ(descriptor.message->received_bytes, total);
            packets_.account(PacketCounter::placed, descriptor.message->packets);
            table_->execute({Command::Kind::recycle, 0, 0, descriptor.message}, 1);
        }
        table_->consume_pending(static_cast<std::uint32_t>(table_->pending().size()));
        return numbers;
    }

    int buffer_ = 0;
    wire::PacketTally packets_;
    assemble::MessageTally messages_;
    std::unique_ptr<MessageTable> table_;
};

/// What opens in a burst moves its source on: the same eight bits are another number after it.
TEST_F(Bursts, OfNarrowNumbersAreAsIfPacketsCameOneByOne) {
    const std::vector<wire::Fragment> burst = {piece(220, 0), piece(221, 0), piece(90, 100)};
    for (const bool together : {false, true}) {
        make(8);
        const std::uint64_t before = messages_.get(MessageCounter::opened);
        add(piece(90, 0));
        add(piece(100, 0));
        if (together)
            add(burst);
        else
            for (const wire::Fragment& fragment : burst) add(fragment);
        EXPECT_EQ(messages_.get(MessageCounter::opened) - before, 5U);  // 90 is 346 by then
    }
}

/// A packet that ends before its number counts does not say where the numbers begin.
TEST_F(Bursts, OfNarrowNumbersDoNotBeginWithMalformedPackets) {
    make(16);
    add({piece(60000, 300, 101), piece(50000, 300, 101), piece(3, 0), piece(3, 100)});
    EXPECT_EQ(packets_.get(PacketCounter::malformed_range), 2U);
    ASSERT_EQ(table_->pending().size(), 1U);
    EXPECT_EQ(table_->pending()[0].number, 3U);
}

TEST_F(Bursts, HoldMessagesThatBeginAndEndInThem) {
    std::vector<wire::Fragment> fragments;
    for (std::uint64_t number = 1; number <= 3; ++number)
        for (std::uint32_t offset = 0; offset < total; offset += piece_bytes)
            fragments.push_back(piece(number, offset));
    add(fragments);
    EXPECT_EQ(packets_.get(PacketCounter::in_flight), fragments.size());
    EXPECT_EQ(delivered(), (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(Bursts, MixManyMessages) {
    for (std::uint32_t offset = 0; offset < total; offset += piece_bytes) {
        std::vector<wire::Fragment> fragments;
        for (std::uint64_t number = 1; number <= 700; ++number) {
            // Odd ones backwards.
            fragments.push_back(piece(number, number % 2 == 0 ? offset : total - piece_bytes - offset));
            if (fragments.size() < MessageTable::burst_max) continue;
            add(fragments);
            fragments.clear();
        }
        add(fragments);
    }
    EXPECT_EQ(delivered().size(), 700u);
    EXPECT_EQ(packets_.get(PacketCounter::placed), 2800u);
}

TEST_F(Bursts, BelieveNoGuess) {
    // The same slot, again and again, for other numbers and sources: last in, first out.
    for (std::uint64_t number = 1; number <= 5; ++number) {
        add({piece(number, 0), piece(number, 100), piece(number, 200)});
        add({piece(number, 300), piece(number, 300), piece(number, 100)});  // delivered, and not recycled yet
        EXPECT_EQ(delivered(), std::vector<std::uint64_t>{number});
        EXPECT_EQ(packets_.get(PacketCounter::duplicate) + table_->buffers_held(), 4 * number - 2);
        add({piece(number, 200), piece(number, 0)});  // the slot is free
        EXPECT_EQ(packets_.get(PacketCounter::duplicate) + table_->buffers_held(), 4 * number);
        while (table_->cancel_oldest_probation()) {
        }
    }
    add(piece(9, 0));
    add({piece(9, 100), piece(9, 100)}, 1);  // of another source
    EXPECT_EQ(packets_.get(PacketCounter::in_flight), 2u);
}

TEST_F(Bursts, LookAtEveryPacket) {
    const auto refused = [&] {
        return packets_.get(PacketCounter::malformed_range) + packets_.get(PacketCounter::conflict) +
               packets_.get(PacketCounter::malformed_payload_length);
    };
    add(piece(1, 0, 300));
    add(piece(1, 300, 101));  // a byte too long
    EXPECT_EQ(refused(), 1u);
    add(piece(1, 300, 0));
    EXPECT_EQ(refused(), 2u);
    wire::Fragment other = piece(1, 300, 50);
    other.total = 350;
    add(other);
    EXPECT_EQ(refused(), 3u);
    add(piece(1, 299, 101));  // a byte is here already
    EXPECT_EQ(refused(), 4u);
    EXPECT_TRUE(delivered().empty());
    add(piece(1, 300, 100));
    EXPECT_EQ(delivered(), std::vector<std::uint64_t>{1});
}

TEST_F(Bursts, ARegularPacketSpeaksAgainstARestart) {
    const auto whole = [](std::uint64_t number) {
        return std::vector{piece(number, 0), piece(number, 100), piece(number, 200), piece(number, 300)};
    };
    for (std::uint64_t number = 1; number <= 6; ++number) add(whole(number));
    add({piece(20, 0), piece(20, 100)});
    add(whole(1));
    add(piece(20, 200));
    for (std::uint64_t number = 2; number <= 3; ++number) add(whole(number));
    EXPECT_EQ(table_->newest_epoch(), 0u);  // three whole messages again, but something new came between them
    add(whole(4));
    EXPECT_EQ(table_->newest_epoch(), 1u);
}

// How many messages are with the builder for the moment is a question of pace, where the input waits for them.
TEST_F(Bursts, ARestartIsNoticedHoweverFullTheTableIs) {
    for (const bool waits : {false, true}) {
        make_small(waits);
        const std::uint64_t duplicates = packets_.get(PacketCounter::duplicate);
        for (std::uint64_t number = 1; number <= 59; ++number) add_whole(number);
        for (std::uint64_t number = 1; number <= 4; ++number) {
            add_whole(number);
            EXPECT_FALSE(waits && table_->cancel_oldest_probation()) << "the others come back";
        }
        EXPECT_EQ(table_->newest_epoch(), waits ? 1U : 0U);
        EXPECT_EQ(packets_.get(PacketCounter::duplicate) - duplicates, waits ? 0U : 16U) << "a straggler, most likely";
        EXPECT_EQ(delivered().size(), waits ? 63U : 59U);
    }
}

TEST_F(Bursts, WhereNothingComesBackProbationMakesRoom) {
    make_small(true);
    add_whole(1);
    add({piece(2, 0), piece(2, 100)});
    add({piece(1, 0), piece(1, 100)});  // on probation
    EXPECT_FALSE(table_->cancel_oldest_probation());
    EXPECT_EQ(delivered().size(), 1U);
    EXPECT_TRUE(table_->cancel_oldest_probation());
    EXPECT_EQ(packets_.get(PacketCounter::duplicate), 2U);
    EXPECT_FALSE(table_->cancel_oldest_probation());
}

TEST_F(Bursts, LookAtEveryPacketOfAGrid) {
    add({piece(1, 300), piece(1, 100)});  // from here on there are bits
    add({piece(1, 100), piece(1, 300)});
    EXPECT_EQ(packets_.get(PacketCounter::duplicate), 2u);
    add({piece(1, 150), piece(1, 350, 50), piece(1, 50)});  // not on the grid, and in the way
    EXPECT_EQ(packets_.get(PacketCounter::conflict) + packets_.get(PacketCounter::duplicate), 5u);
    add({piece(1, 0), piece(1, 400), piece(1, 500)});  // past the end
    EXPECT_EQ(packets_.get(PacketCounter::malformed_payload_length) + packets_.get(PacketCounter::malformed_range), 2u);
    EXPECT_TRUE(delivered().empty());
    add(piece(1, 200));
    EXPECT_EQ(delivered(), std::vector<std::uint64_t>{1});
}

}  // namespace
}  // namespace weir::assemble

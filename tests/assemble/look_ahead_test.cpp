// What the message table does to be quick must not change what it does: foreseen messages, and the short way for
// packets that come right after the one before.
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

class LookAhead : public testing::Test {
protected:
    LookAhead() {
        MessageTable::Config config;
        config.sources = 2;
        config.messages_max = 2048;
        config.buffers_max = 8192;
        table_ = std::make_unique<MessageTable>(config, packets_, messages_, release);
    }
    void add(const wire::Fragment& fragment, Message* expected = nullptr, std::uint32_t source = 0) {
        table_->add(source, fragment, &buffer_, 1, expected);
    }
    /// What the look-ahead says about one packet.
    Message* foresee(std::uint64_t number, std::uint32_t source = 0) {
        const wire::Fragment fragment = piece(number, 0);
        Message* expected = nullptr;
        table_->look_ahead({&source, 1}, &fragment, &expected);
        return expected;
    }
    /// Numbers of the messages that were delivered since the last call; they are recycled.
    std::vector<std::uint64_t> delivered() {
        std::vector<std::uint64_t> numbers;
        for (const Descriptor& descriptor : table_->pending()) {
            if (descriptor.kind != Descriptor::Kind::deliver) continue;
            numbers.push_back(descriptor.number);
            packets_.settle(PacketCounter::placed, descriptor.message->packets);
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

TEST_F(LookAhead, ForeseesNothingWhileFewMessagesAreOpen) {
    add(piece(1, 0));
    EXPECT_EQ(foresee(1), nullptr);
}

TEST_F(LookAhead, ForeseesTheOpenMessageOfTheRightSourceAndNumber) {
    for (std::uint64_t number = 1; number <= MessageTable::look_ahead_open; ++number) add(piece(number, 0));
    Message* expected = foresee(7);
    ASSERT_NE(expected, nullptr);
    EXPECT_EQ(expected->number, 7u);
    EXPECT_EQ(foresee(7, 1), nullptr);
    EXPECT_EQ(foresee(100'000), nullptr);
    for (std::uint32_t offset = piece_bytes; offset < total; offset += piece_bytes) add(piece(7, offset), expected);
    EXPECT_EQ(delivered(), std::vector<std::uint64_t>{7});
    EXPECT_EQ(foresee(7), nullptr);
}

TEST_F(LookAhead, BelievesNothingThatHasChangedSince) {
    add(piece(1, 0));
    std::vector<Message*> slots;
    for (const Descriptor& descriptor : table_->pending())
        if (descriptor.number == 1) slots.push_back(descriptor.message);  // announced without it
    ASSERT_EQ(slots, std::vector<Message*>{nullptr});
    // The same slot, again and again, for other numbers: last in, first out.
    Message* stale = nullptr;
    for (std::uint32_t offset = piece_bytes; offset < total; offset += piece_bytes) add(piece(1, offset));
    for (const Descriptor& descriptor : table_->pending())
        if (descriptor.kind == Descriptor::Kind::deliver) stale = descriptor.message;
    ASSERT_NE(stale, nullptr);
    EXPECT_EQ(delivered(), std::vector<std::uint64_t>{1});
    add(piece(1, 0), stale);  // free
    EXPECT_EQ(packets_.get(PacketCounter::duplicate) + table_->buffers_held(), 1u);
    add(piece(2, 0));
    ASSERT_EQ(stale->number, 2u);
    ASSERT_EQ(stale->state, MessageState::open);
    add(piece(3, 0), stale);               // another number
    add(piece(2, piece_bytes), stale, 1);  // another source
    EXPECT_EQ(stale->packets, 1u);
    for (std::uint32_t offset = piece_bytes; offset < total; offset += piece_bytes) add(piece(3, offset), stale);
    EXPECT_EQ(delivered(), std::vector<std::uint64_t>{3});
    EXPECT_EQ(stale->packets, 1u);
    // Delivered and not recycled yet: it takes nothing any more.
    for (std::uint32_t offset = piece_bytes; offset < total; offset += piece_bytes) add(piece(2, offset), stale);
    ASSERT_EQ(stale->state, MessageState::closed);
    add(piece(2, 0), stale);
    EXPECT_EQ(stale->packets, total / piece_bytes);
}

TEST_F(LookAhead, ChecksWhatComesRightBehind) {
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

}  // namespace
}  // namespace weir::assemble

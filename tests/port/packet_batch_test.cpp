#include "port/packet_batch.hpp"

#include <gtest/gtest.h>

#include <span>
#include <utility>
#include <vector>

namespace weir::port {
namespace {

class PacketBatchTest : public testing::Test {
protected:
    Packet packet(std::uint32_t number) {
        rte_mbuf* const mbuf = pool_.allocate();
        EXPECT_NE(mbuf, nullptr);
        return {mbuf, core::TimeNs{number}, number, static_cast<std::uint16_t>(number), 0, 0};
    }
    void fill(PacketBatch& batch, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) batch.push(packet(i));
    }
    [[nodiscard]] std::uint32_t out() const { return pool_.in_use(); }

    BufferPool pool_{"batch", {1024, 512}};
    Ring<Packet> ring_{"batch_ring", 40};
};

TEST_F(PacketBatchTest, GivesBackWhatItStillHolds) {
    {
        PacketBatch batch;
        fill(batch, PacketBatch::capacity);
        EXPECT_TRUE(batch.full());
        EXPECT_EQ(out(), PacketBatch::capacity);
    }
    EXPECT_EQ(out(), 0U);
}

TEST_F(PacketBatchTest, GivesBackNothingThatWasTaken) {
    std::vector<Packet> taken;
    {
        PacketBatch batch;
        fill(batch, 3);
        const std::span<Packet> all = batch.take();
        EXPECT_TRUE(batch.empty());
        taken.assign(all.begin(), all.end());
    }
    EXPECT_EQ(out(), 3U);
    for (const Packet& packet : taken) ::rte_pktmbuf_free(packet.mbuf);
    EXPECT_EQ(out(), 0U);
}

TEST_F(PacketBatchTest, KeepsInOrderWhatARingHasNoRoomFor) {
    {
        PacketBatch batch;
        fill(batch, 60);
        EXPECT_EQ(batch.push_to(ring_), 40U);
        EXPECT_EQ(batch.size(), 20U);
        EXPECT_EQ(batch.packets().front().wire_bytes, 40U);

        PacketBatch received;
        EXPECT_EQ(received.pull_from(ring_, 30), 30U);
        EXPECT_EQ(batch.push_to(ring_), 20U);
        EXPECT_TRUE(batch.empty());
        EXPECT_EQ(received.pull_from(ring_), 30U);
        ASSERT_EQ(received.size(), 60U);
        for (std::uint32_t i = 0; i < received.size(); ++i) EXPECT_EQ(received.packets()[i].wire_bytes, i);
        EXPECT_EQ(out(), 60U);
    }
    EXPECT_EQ(out(), 0U);
}

TEST_F(PacketBatchTest, PullsNoMoreThanItHasRoomFor) {
    PacketBatch source;
    fill(source, 40);
    source.push_to(ring_);
    PacketBatch batch;
    fill(batch, 60);
    EXPECT_EQ(batch.pull_from(ring_), 4U);
    EXPECT_TRUE(batch.full());
    EXPECT_EQ(ring_.count(), 36U);
    PacketBatch rest;
    EXPECT_EQ(rest.pull_from(ring_), 36U);
}

TEST_F(PacketBatchTest, MovesItsBuffersToAnother) {
    PacketBatch first;
    fill(first, 5);
    PacketBatch second(std::move(first));
    EXPECT_EQ(second.size(), 5U);
    PacketBatch third;
    fill(third, 2);
    third = std::move(second);
    EXPECT_EQ(out(), 5U) << "what it held before is back in the pool";
    EXPECT_EQ(third.packets().back().wire_bytes, 4U);
    third.give_back();
    EXPECT_EQ(out(), 0U);
}

}  // namespace
}  // namespace weir::port

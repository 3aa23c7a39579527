// Blocks that captures are read into, and the mbufs that refer to packets in them.
#include "port/capture_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir::port {

namespace {

std::span<const std::byte> packet(const store::CaptureBlock& block, std::size_t at, std::size_t bytes = 60) {
    return {block.memory + at, bytes};
}

void return_all(std::vector<void*>& mbufs) {
    release_buffers(mbufs.data(), static_cast<std::uint32_t>(mbufs.size()));
    mbufs.clear();
}

TEST(CaptureBlockLoans, ABlockIsFreeWhenTheReaderHasLeftItAndAllPacketsAreBack) {
    CaptureBlocks blocks(1);
    store::CaptureBlock* block = blocks.take();
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(blocks.take(), nullptr);
    std::vector<void*> some;
    for (std::size_t i = 0; i < 10; ++i) some.push_back(blocks.refer(*block, packet(*block, 100 * i)));
    const auto* first = static_cast<const rte_mbuf*>(some[0]);
    EXPECT_EQ(rte_pktmbuf_mtod(first, const std::byte*), block->memory);
    EXPECT_EQ(rte_pktmbuf_data_len(first), 60);
    return_all(some);
    EXPECT_EQ(blocks.take(), nullptr) << "the reader is in it still";
    some.push_back(blocks.refer(*block, packet(*block, 0)));
    blocks.leave(*block);
    EXPECT_EQ(blocks.take(), nullptr) << "a packet is out";
    return_all(some);
    EXPECT_EQ(blocks.take(), block);
    blocks.leave(*block);
    EXPECT_EQ(blocks.take(), block) << "nothing was referred to";
    blocks.leave(*block);
}

TEST(CaptureBlockLoans, MorePacketsThanMbufsAreTheReadersToCopy) {
    CaptureBlocks blocks(1);
    store::CaptureBlock* block = blocks.take();
    std::vector<void*> all;
    while (rte_mbuf* mbuf = blocks.refer(*block, packet(*block, all.size()))) all.push_back(mbuf);
    EXPECT_GT(all.size(), CaptureBlocks::packets_per_block / 2);
    EXPECT_LE(all.size(), CaptureBlocks::packets_per_block);
    return_all(all);
    EXPECT_NE(blocks.refer(*block, packet(*block, 0)), nullptr);
}

TEST(CaptureBlockLoans, NoneOfManySmallPacketsFreesTheBlockUnderTheReader) {
    CaptureBlocks blocks(64);
    store::CaptureBlock* block = blocks.take();
    std::uint32_t referred = 0;
    std::vector<void*> one;
    for (std::uint32_t i = 0; i < 40'000; ++i) {
        rte_mbuf* mbuf = blocks.refer(*block, packet(*block, i, 20));
        if (mbuf == nullptr) break;
        ++referred;
        one.push_back(mbuf);
        return_all(one);
    }
    EXPECT_EQ(referred, 0x7ffeU) << "the steps of the count have 15 bits";
    store::CaptureBlock* other = blocks.take();
    EXPECT_NE(other, block);
    blocks.leave(*block);
    EXPECT_EQ(blocks.take(), block);
}

}  // namespace

}  // namespace weir::port

// Giving buffers back: each to its own pool, whatever they come mixed with, and past the caches of lcores that never
// take any out.
#include <gtest/gtest.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/hot_thread.hpp"
#include "port/buffers.hpp"
#include "port/ring.hpp"

namespace weir::port {

namespace {

constexpr std::uint32_t size = 1024;

std::vector<void*> take(BufferPool& pool, std::uint32_t count) {
    std::vector<void*> buffers;
    for (std::uint32_t i = 0; i < count; ++i) buffers.push_back(pool.allocate());
    EXPECT_EQ(std::ranges::count(buffers, nullptr), 0);
    return buffers;
}

void give_back(std::vector<void*>& buffers) {
    core::hot_thread(true);
    release_buffers(buffers.data(), static_cast<std::uint32_t>(buffers.size()));
    core::hot_thread(false);
}

BufferPoolConfig at_home(std::uint32_t lcore) {
    BufferPoolConfig config{size, 512};
    config.home = lcore;
    return config;
}

TEST(Buffers, OfSeveralPoolsGoBackToTheirOwn) {
    std::vector<std::unique_ptr<BufferPool>> pools;  // more than are collected at a time
    for (int i = 0; i < 6; ++i)
        pools.push_back(std::make_unique<BufferPool>("mixed" + std::to_string(i), BufferPoolConfig{size, 512}));
    const std::uint32_t seed = std::random_device{}();
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 20; ++round) {
        std::vector<void*> buffers;
        for (const auto& pool : pools) {
            const std::vector<void*> some = take(*pool, random() % 300);
            buffers.insert(buffers.end(), some.begin(), some.end());
        }
        if (round % 2 == 0) std::ranges::shuffle(buffers, random);
        give_back(buffers);
        for (const auto& pool : pools) EXPECT_EQ(pool->in_use(), 0U) << pool->get()->name;
    }
}

TEST(Buffers, OfChainsAndSharedOnesGoBackWhenTheLastReferenceGoes) {
    BufferPool one("one", BufferPoolConfig{size, 512});
    BufferPool other("other", BufferPoolConfig{size, 512});
    const std::vector<void*> heads = take(one, 100);
    const std::vector<void*> tails = take(other, 100);
    std::vector<void*> buffers = heads;
    for (std::size_t i = 0; i < heads.size(); ++i) {
        auto* head = static_cast<rte_mbuf*>(heads[i]);
        auto* tail = static_cast<rte_mbuf*>(tails[i]);
        if (i % 3 == 0)
            ASSERT_EQ(rte_pktmbuf_chain(head, tail), 0);
        else
            buffers.push_back(tail);
        if (i % 10 == 1) rte_mbuf_refcnt_update(tail, 1);
    }
    give_back(buffers);
    EXPECT_EQ(one.in_use(), 0U);
    EXPECT_EQ(other.in_use(), 10U);
    std::vector<void*> shared;
    for (std::size_t i = 1; i < tails.size(); i += 10) shared.push_back(tails[i]);
    give_back(shared);
    EXPECT_EQ(other.in_use(), 0U);
    // What comes out next is as new.
    for (void* buffer : take(one, 100)) {
        auto* mbuf = static_cast<rte_mbuf*>(buffer);
        EXPECT_EQ(mbuf->nb_segs, 1);
        EXPECT_EQ(mbuf->next, nullptr);
        EXPECT_EQ(rte_mbuf_refcnt_read(mbuf), 1);
        rte_pktmbuf_free(mbuf);
    }
}

TEST(Buffers, StayInTheCacheOfTheHomeLcoreOnly) {
    BufferPool here("here", at_home(rte_lcore_id()));
    BufferPool away("away", at_home(rte_lcore_id() == 5 ? 6 : 5));
    std::vector<void*> buffers = take(here, 200);
    std::vector<void*> foreign = take(away, 200);
    const std::uint32_t cached_before = size - 200 - away.available();  // allocating fills the cache
    const std::uint32_t here_before = here.available();
    buffers.insert(buffers.end(), foreign.begin(), foreign.end());
    give_back(buffers);
    EXPECT_EQ(here.in_use(), 0U);
    EXPECT_EQ(away.in_use(), 0U);
    EXPECT_EQ(here.available(), here_before) << "all of them are in the cache";
    EXPECT_EQ(away.available(), size - cached_before) << "none of them is";
}

TEST(Buffers, OnDemandAreMadeAsTheyAreNeeded) {
    BufferPoolConfig config{size, 512};
    config.on_demand = true;
    BufferPool pool("demand", config);
    EXPECT_LT(pool.get()->populated_size, size);
    EXPECT_EQ(pool.available(), size);
    EXPECT_EQ(pool.in_use(), 0U);
    std::vector<void*> buffers;
    while (rte_mbuf* mbuf = pool.allocate()) {
        ASSERT_EQ(rte_pktmbuf_tailroom(mbuf), 512);
        ASSERT_EQ(mbuf->pool, pool.get());
        std::fill_n(rte_pktmbuf_mtod(mbuf, unsigned char*), 512, static_cast<unsigned char>(buffers.size()));
        buffers.push_back(mbuf);
        ASSERT_EQ(pool.in_use(), buffers.size());
    }
    EXPECT_EQ(buffers.size(), size);
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        const auto* bytes = rte_pktmbuf_mtod(static_cast<rte_mbuf*>(buffers[i]), const unsigned char*);
        EXPECT_EQ(std::count(bytes, bytes + 512, static_cast<unsigned char>(i)), 512) << "no buffer lies in another";
    }
    give_back(buffers);
    EXPECT_EQ(pool.in_use(), 0U);
    EXPECT_EQ(take(pool, size).size(), size);
}

TEST(Buffers, OnDemandMayGrowWhileOthersGiveSomeBack) {
    BufferPoolConfig config{size, 512};
    config.on_demand = true;
    BufferPool pool("grows", config);
    std::vector<void*> few = take(pool, 10);
    const std::uint32_t made = pool.get()->populated_size;
    give_back(few);
    few = take(pool, 10);
    EXPECT_EQ(pool.get()->populated_size, made) << "what was given back comes first";
    give_back(few);
    std::vector<void*> bulk(300);
    ASSERT_TRUE(pool.take(bulk));
    EXPECT_GT(pool.get()->populated_size, made);
    EXPECT_EQ(pool.in_use(), 300U);
    std::vector<void*> too_many(size);
    EXPECT_FALSE(pool.take(too_many));
    EXPECT_EQ(pool.in_use(), 300U);
    give_back(bulk);
    EXPECT_EQ(pool.in_use(), 0U);
}

TEST(Buffers, AndRingsTakeOtherMemoryWhereANodeHasNone) {
    BufferPoolConfig config{size, 512};
    config.node = 7;  // without hugepages every node's memory is the same
    BufferPool pool("elsewhere", config);
    Ring<std::uint64_t> ring("elsewhere", 16, 7);
    EXPECT_TRUE(ring.push(5));
    std::vector<void*> buffers = take(pool, 10);
    give_back(buffers);
    EXPECT_EQ(pool.in_use(), 0U);
}

}  // namespace

}  // namespace weir::port

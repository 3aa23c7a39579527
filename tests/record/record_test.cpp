// The flight recorder's parts: what triggers make of time, the ring between an rx lcore and the recorder, names of
// files.
#include <gtest/gtest.h>
#include <rte_mbuf.h>

#include <cstring>
#include <deque>
#include <thread>

#include "record/record_files.hpp"
#include "stages/record_ring.hpp"
#include "stages/record_trigger.hpp"
#include "stages/trigger_queue.hpp"

namespace weir::record {
namespace {

constexpr core::TimeNs ms = core::ns_per_ms;

stages::RecordTrigger at(core::TimeNs first, core::TimeNs last) {
    stages::RecordTrigger trigger;
    trigger.first_ns = first;
    trigger.last_ns = last;
    return trigger;
}

stages::RecordWindows windows() {
    return stages::RecordWindows({100 * ms, 50 * ms, 20 * ms});
}

TEST(RecordWindows, ATriggerKeepsWhatIsAroundIt) {
    stages::RecordWindows all = windows();
    EXPECT_EQ(all.current(), nullptr);
    EXPECT_FALSE(all.over(1000 * ms, 1000 * ms));
    EXPECT_TRUE(all.trigger(at(500 * ms, 520 * ms)));
    ASSERT_NE(all.current(), nullptr);
    EXPECT_EQ(all.current()->begin_ns, 400 * ms);
    EXPECT_EQ(all.current()->end_ns, 570 * ms);
}

TEST(RecordWindows, AFileWaitsForTriggersThatBelongToIt) {
    stages::RecordWindows all = windows();
    all.trigger(at(500 * ms, 520 * ms));
    EXPECT_FALSE(all.over(570 * ms, 2000 * ms));  // packets of that moment may still come
    EXPECT_FALSE(all.over(571 * ms, 571 * ms));
    // An event that closes now may have begun within the window.
    EXPECT_FALSE(all.over(690 * ms, 690 * ms));
    EXPECT_FALSE(all.trigger(at(670 * ms, 689 * ms)));
    EXPECT_EQ(all.current()->end_ns, 739 * ms);
    EXPECT_EQ(all.current()->triggers, 2U);
    EXPECT_FALSE(all.over(859 * ms, 859 * ms));
    EXPECT_TRUE(all.over(860 * ms, 860 * ms));
    all.next();
    EXPECT_EQ(all.current(), nullptr);
}

TEST(RecordWindows, TriggersApartMakeFilesOfTheirOwn) {
    stages::RecordWindows all = windows();
    EXPECT_TRUE(all.trigger(at(500 * ms, 520 * ms)));
    EXPECT_TRUE(all.trigger(at(671 * ms, 680 * ms)));
    EXPECT_FALSE(all.trigger(at(700 * ms, 710 * ms)));  // extends the second
    EXPECT_EQ(all.current()->end_ns, 570 * ms);
    EXPECT_TRUE(all.over(571 * ms, 571 * ms));  // nothing can extend the first any more
    all.next();
    EXPECT_EQ(all.current()->begin_ns, 571 * ms);
    EXPECT_EQ(all.current()->end_ns, 760 * ms);
}

TEST(RecordWindows, TimesAtTheEndsOfTheScaleDoNotRunOver) {
    stages::RecordWindows all = windows();
    constexpr core::TimeNs last = std::numeric_limits<core::TimeNs>::max();
    all.trigger(at(std::numeric_limits<core::TimeNs>::min(), last));
    EXPECT_EQ(all.current()->begin_ns, std::numeric_limits<core::TimeNs>::min());
    EXPECT_EQ(all.current()->end_ns, last);
    EXPECT_FALSE(all.over(last, last));
}

TEST(RecordWindows, ManyTriggersApartAreBounded) {
    stages::RecordWindows all = windows();
    std::uint64_t own = 0;
    for (core::TimeNs i = 0; i < 1000; ++i) own += all.trigger(at(i * 1000 * ms, i * 1000 * ms)) ? 1 : 0;
    EXPECT_EQ(own, 64U);
    for (std::uint64_t i = 1; i < own; ++i) all.next();
    EXPECT_EQ(all.current()->end_ns, 999 * 1000 * ms + 50 * ms);
    all.next();
    EXPECT_EQ(all.current(), nullptr);
}

TEST(RecordTrigger, SaysWhatHappened) {
    stages::RecordTrigger trigger;
    EXPECT_EQ(trigger.text(), "asked for");
    trigger.reason = stages::RecordTrigger::Reason::drops;
    trigger.number = 1200;
    EXPECT_EQ(trigger.text(), "packets are being lost: 1200 within a second");
    trigger.reason = stages::RecordTrigger::Reason::incomplete;
    trigger.cause = assemble::EventCause::timeout;
    trigger.number = 17;
    trigger.gap_count = 1;
    trigger.gaps[0] = {3, 2, false};
    EXPECT_EQ(trigger.text(), "event 17 incomplete: timeout, source 3 misses 2 packets");
    trigger.epoch = 2;
    trigger.gap_count = 6;
    trigger.gaps = {{{0, 1, false}, {1, 128, true}, {2, 0, false}, {9, 4, false}}};
    EXPECT_EQ(trigger.text(),
              "event 2:17 incomplete: timeout, source 0 misses 1 packet, source 1 misses everything, source 2 is not "
              "whole, source 9 misses 4 packets, and 2 more");
}

TEST(DropBurst, BeginsOnceAndAgainAfterAQuietSecond) {
    stages::DropBurst burst(100);
    EXPECT_FALSE(burst.update(0, 0));
    EXPECT_FALSE(burst.update(100 * ms, 99));
    EXPECT_EQ(burst.update(200 * ms, 150), std::optional<std::uint64_t>(150));
    EXPECT_FALSE(burst.update(300 * ms, 400));  // goes on
    EXPECT_FALSE(burst.update(2000 * ms, 400));
    EXPECT_FALSE(burst.update(3500 * ms, 499));
    EXPECT_EQ(burst.update(3600 * ms, 500), std::optional<std::uint64_t>(100));
    stages::DropBurst never(0);
    EXPECT_FALSE(never.update(0, 0));
    EXPECT_FALSE(never.update(1, 1000000));
}

TEST(TriggerQueue, LeavesOutWhatFindsNoRoom) {
    stages::TriggerQueue queue;
    for (core::TimeNs i = 0; i < 300; ++i) queue.push(at(i, i));
    queue.complete_until(7);
    queue.complete_until(5);
    EXPECT_EQ(queue.complete_until(), 7);
    EXPECT_EQ(queue.left_out(), 300 - stages::TriggerQueue::capacity);
    stages::RecordTrigger trigger;
    for (std::uint64_t i = 0; i < stages::TriggerQueue::capacity; ++i) {
        ASSERT_TRUE(queue.pop(trigger));
        EXPECT_EQ(trigger.first_ns, static_cast<core::TimeNs>(i));
    }
    EXPECT_FALSE(queue.pop(trigger));
}

/// Packets outside any pool; the ring only reads them.
struct Packets {
    explicit Packets(std::size_t bytes_max) : bytes(bytes_max) {
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
    }
    port::Packet make(core::TimeNs time_ns, std::uint32_t count, std::uint8_t port = 0) {
        rte_mbuf& mbuf = mbufs.emplace_back();
        std::memset(&mbuf, 0, sizeof mbuf);
        mbuf.buf_addr = bytes.data();
        mbuf.data_off = static_cast<std::uint16_t>(time_ns % 64);  // not aligned
        mbuf.data_len = static_cast<std::uint16_t>(count);
        mbuf.pkt_len = count;
        mbuf.nb_segs = 1;
        return {&mbuf, time_ns, count + 4, static_cast<std::uint16_t>(count), port, 0};
    }
    [[nodiscard]] bool holds(std::span<const std::byte> copy, core::TimeNs time_ns) const {
        return std::equal(copy.begin(), copy.end(), bytes.begin() + time_ns % 64);
    }
    std::vector<std::byte> bytes;
    std::deque<rte_mbuf> mbufs;
};

TEST(RecordRing, CopiesComeOutInOrderAndBlocksGoRound) {
    stages::RecordRing ring(0, 0);
    EXPECT_EQ(ring.blocks(), stages::RecordRing::blocks_min);
    Packets packets(70000);
    std::uint64_t position = 0;
    core::TimeNs in = 0;
    core::TimeNs out = 0;
    const auto size_of = [](core::TimeNs time) { return static_cast<std::uint32_t>(time * 977 % 9100 + time % 3); };
    while (out < 20000) {  // five times round
        if (ring.has_room()) {
            std::vector<port::Packet> burst;
            packets.mbufs.clear();
            for (int i = 0; i < 64; ++i, ++in) burst.push_back(packets.make(in, size_of(in)));
            ring.add(burst, 5);
            continue;
        }
        const std::uint64_t end = ring.written();
        for (position = ring.record_from(position, end); position < end;
             position = ring.record_from(ring.next(position), end)) {
            const stages::RecordHead& head = ring.head_at(position);
            ASSERT_EQ(head.time_ns, out);
            ASSERT_EQ(head.bytes, size_of(out));
            ASSERT_EQ(head.wire_bytes, size_of(out) + 4);
            ASSERT_EQ(head.queue, 5);
            ASSERT_TRUE(packets.holds(ring.bytes_at(position), out));
            ++out;
        }
        ring.release(position);
    }
    EXPECT_EQ(ring.left_out(), 0U);
    EXPECT_EQ(ring.seen(), static_cast<std::uint64_t>(in));
}

TEST(RecordRing, WhatFindsNoRoomIsLeftOutAndToldWithTheNextOfThePort) {
    stages::RecordRing ring(0, 0);
    Packets packets(70000);
    std::uint64_t added = 0;
    while (ring.left_out() == 0) {
        packets.mbufs.clear();
        const port::Packet packet =
            packets.make(static_cast<core::TimeNs>(added), 65000, static_cast<std::uint8_t>(added % 2));
        ring.add({&packet, 1}, 0);
        ++added;
    }
    EXPECT_FALSE(ring.has_room());
    const auto lost_port = static_cast<std::uint8_t>((added - 1) % 2);
    EXPECT_EQ(ring.left_out_of(lost_port), 1U);
    std::uint64_t position = 0;
    const std::uint64_t end = ring.written();
    for (std::uint64_t i = 0; i < added - 1; ++i) {
        ASSERT_EQ(ring.head_at(position).time_ns, static_cast<core::TimeNs>(i));
        position = ring.record_from(ring.next(position), end);
        if (i + 2 == added) break;
    }
    EXPECT_EQ(position, end);
    EXPECT_EQ(ring.newest_in(0), static_cast<core::TimeNs>(stages::RecordRing::block_bytes / 65056 - 1));
    ring.release(end);
    const port::Packet other = packets.make(1000, 10, static_cast<std::uint8_t>(1 - lost_port));
    const port::Packet same = packets.make(1001, 10, lost_port);
    ring.add({&other, 1}, 0);
    ring.add({&same, 1}, 0);
    position = ring.record_from(end, ring.written());
    EXPECT_EQ(ring.head_at(position).lost_before, 0U);
    EXPECT_EQ(ring.head_at(ring.next(position)).lost_before, 1U);
}

TEST(RecordRing, CutsPacketsAndReadsThemFromSeveralBuffers) {
    stages::RecordRing ring(0, 1500);
    Packets packets(70000);
    port::Packet first = packets.make(64, 1000);
    const port::Packet second = packets.make(1064, 3000);  // 1064 % 64 == 40
    second.mbuf->data_off = 1000;
    first.mbuf->nb_segs = 2;
    first.mbuf->next = second.mbuf;
    first.mbuf->pkt_len = 4000;
    first.wire_bytes = 4000;
    ring.add({&first, 1}, 0);
    EXPECT_EQ(ring.head_at(0).bytes, 1500U);
    EXPECT_EQ(ring.head_at(0).wire_bytes, 4000U);
    EXPECT_TRUE(packets.holds(ring.bytes_at(0), 0));
}

TEST(RecordRing, AnotherThreadSeesWholeRecordsOnly) {
    stages::RecordRing ring(0, 0);
    Packets packets(70000);
    constexpr core::TimeNs count = 20000;
    std::thread reader([&] {
        std::uint64_t position = 0;
        for (core::TimeNs expected = 0; expected < count;) {
            const std::uint64_t end = ring.written();
            for (position = ring.record_from(position, end); position < end;
                 position = ring.record_from(ring.next(position), end)) {
                ASSERT_EQ(ring.head_at(position).time_ns, expected);
                ASSERT_TRUE(packets.holds(ring.bytes_at(position), expected));
                ++expected;
            }
            ring.release(position);
        }
    });
    for (core::TimeNs time = 0; time < count;) {
        if (!ring.has_room()) {
            std::this_thread::yield();
            continue;
        }
        packets.mbufs.clear();
        const port::Packet packet = packets.make(time, static_cast<std::uint32_t>(time * 31 % 8000));
        ring.add({&packet, 1}, 0);
        ++time;
    }
    reader.join();
}

TEST(RecordFiles, NumbersGoBeforeTheExtension) {
    EXPECT_EQ(numbered_path("/data/run.pcapng", 2), "/data/run-0002.pcapng");
    EXPECT_EQ(numbered_path("run-1.pcapng.zst", 12345), "run-1-12345.pcapng.zst");
    EXPECT_EQ(numbered_path("/a.b/capture", 1), "/a.b/capture-0001");
    EXPECT_EQ(numbered_path(".pcapng", 1), ".pcapng-0001");
}

}  // namespace
}  // namespace weir::record

// Time stamps of a device that is made up, whose counter is the system's clock times a rate; and checksums that a
// device finds wrong. Needs EAL for the fields of mbufs.
#include <gtest/gtest.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <time.h>

#include <cstring>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "port/device_clock.hpp"
#include "port/live_port.hpp"
#include "wire/encode.hpp"

namespace weir::port {

namespace {

class DeviceClockTest : public ::testing::Test {
protected:
    void SetUp() override {
        ASSERT_EQ(::rte_mbuf_dyn_rx_timestamp_register(&field_, &flag_), 0);
        mbuf_ = {};
    }
    /// A counter of 1 GHz / 8 that began at 77.
    static std::uint64_t counter_at(core::TimeNs raw_ns) { return 77 + static_cast<std::uint64_t>(raw_ns) / 8; }
    void stamp(std::uint64_t ticks) {
        mbuf_.ol_flags = flag_;
        *RTE_MBUF_DYNFIELD(&mbuf_, field_, rte_mbuf_timestamp_t*) = ticks;
    }

    int field_ = -1;
    std::uint64_t flag_ = 0;
    rte_mbuf mbuf_{};
};

TEST_F(DeviceClockTest, MakesUnixTimeOfStamps) {
    const DeviceClock clock(
        "a counter", [] { return std::optional(counter_at(core::clock_ns(CLOCK_MONOTONIC_RAW))); }, field_, flag_);
    const core::TimeNs real = core::clock_ns(CLOCK_REALTIME);
    stamp(counter_at(core::clock_ns(CLOCK_MONOTONIC_RAW)));
    std::uint64_t moved = 0;
    const core::TimeNs time = clock.stamps().time_of(mbuf_, 0, INT64_MAX, moved);
    // Generous: whoever takes the processor away between two readings is seen as an error of the clock.
    EXPECT_NEAR(static_cast<double>(time - real), 0, 1e9);
    EXPECT_EQ(moved, 0u);
    EXPECT_EQ(clock.name(), "a counter");
    EXPECT_NEAR(clock.accuracy().ticks_per_s, 125e6, 125e6 / 2);
}

TEST_F(DeviceClockTest, KeepsStampsWithinWhatCanBe) {
    const DeviceClock clock(
        "a counter", [] { return std::optional(counter_at(core::clock_ns(CLOCK_MONOTONIC_RAW))); }, field_, flag_);
    const DeviceClock::Stamps stamps = clock.stamps();
    stamp(stamps.line.ticks + 1000);
    std::uint64_t moved = 0;
    const core::TimeNs time = stamps.time_of(mbuf_, 0, INT64_MAX, moved);
    EXPECT_EQ(stamps.time_of(mbuf_, time, time, moved), time);
    EXPECT_EQ(moved, 0u);
    EXPECT_EQ(stamps.time_of(mbuf_, 0, time - 5, moved), time - 5);         // the card is ahead
    EXPECT_EQ(stamps.time_of(mbuf_, time + 7, time + 9, moved), time + 7);  // promised to be over
    EXPECT_EQ(stamps.time_of(mbuf_, time + 9, time + 7, moved), time + 7);  // never later than now
    EXPECT_EQ(moved, 3u);
    mbuf_.ol_flags = 0;  // no stamp on this one
    EXPECT_EQ(stamps.time_of(mbuf_, 0, 42, moved), 42);
    EXPECT_EQ(moved, 3u);
}

TEST_F(DeviceClockTest, DoesNotBelieveAClockThatStandsStillOrCannotBeRead) {
    EXPECT_THROW(DeviceClock(
                     "x", [] { return std::optional<std::uint64_t>(5); }, field_, flag_),
                 core::RunError);
    EXPECT_THROW(DeviceClock(
                     "x", [] { return std::optional<std::uint64_t>(); }, field_, flag_),
                 core::RunError);
}

class BadChecksum : public ::testing::Test {
protected:
    void SetUp() override {
        wire::FrameSpec spec;
        frame_ = wire::make_udp_frame(spec, std::vector<std::byte>(64));
        mbuf_ = {};
        mbuf_.buf_addr = frame_.data();
        mbuf_.nb_segs = 1;
        mbuf_.data_len = static_cast<std::uint16_t>(frame_.size());
        mbuf_.pkt_len = mbuf_.data_len;
        checksum(0x1234);
    }
    void checksum(std::uint16_t value) { std::memcpy(frame_.data() + 14 + 20 + 6, &value, sizeof value); }

    std::vector<std::byte> frame_;
    rte_mbuf mbuf_{};
};

TEST_F(BadChecksum, IsWhatTheDeviceCallsBad) {
    EXPECT_FALSE(has_bad_checksum(mbuf_));  // it did not look
    mbuf_.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    EXPECT_FALSE(has_bad_checksum(mbuf_));
    mbuf_.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_NONE;
    EXPECT_FALSE(has_bad_checksum(mbuf_));
    mbuf_.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_BAD;
    EXPECT_TRUE(has_bad_checksum(mbuf_));
}

TEST_F(BadChecksum, IsThatOfAFrameInSeveralSegmentsToo) {
    frame_ = wire::make_udp_frame(wire::FrameSpec{}, std::vector<std::byte>(3000));
    mbuf_.buf_addr = frame_.data();
    mbuf_.nb_segs = 2;
    mbuf_.data_len = 1000;
    mbuf_.pkt_len = static_cast<std::uint32_t>(frame_.size());
    checksum(0x1234);
    mbuf_.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_BAD;
    EXPECT_TRUE(has_bad_checksum(mbuf_));
    checksum(0);
    EXPECT_FALSE(has_bad_checksum(mbuf_));
}

TEST_F(BadChecksum, IsNotOneOfZero) {
    mbuf_.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_BAD;
    checksum(0);
    EXPECT_FALSE(has_bad_checksum(mbuf_));
}

TEST_F(BadChecksum, IsNoneOfAFrameThatIsNotUdp) {
    mbuf_.ol_flags = RTE_MBUF_F_RX_L4_CKSUM_BAD;
    frame_[14 + 9] = std::byte{6};  // TCP, and the header's checksum to match
    const auto sum = static_cast<unsigned>(frame_[14 + 10]) * 256 + static_cast<unsigned>(frame_[14 + 11]) + 17 - 6;
    frame_[14 + 10] = static_cast<std::byte>(sum / 256);
    frame_[14 + 11] = static_cast<std::byte>(sum);
    EXPECT_FALSE(has_bad_checksum(mbuf_));
    mbuf_.data_len = 20;  // and reads nothing beyond a short one
    EXPECT_FALSE(has_bad_checksum(mbuf_));
}

}  // namespace
}  // namespace weir::port

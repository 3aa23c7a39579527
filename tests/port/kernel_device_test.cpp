// How packets of the kernel's ring become frames again. The ring itself is tested live
// (tests/live/kernel_device_test.py).
#include <gtest/gtest.h>
#include <linux/if_packet.h>

#include <algorithm>
#include <vector>

#include "port/kernel_device.hpp"

namespace weir::port {

namespace {

class KernelDeviceTest : public ::testing::Test {
protected:
    static constexpr std::uint32_t room = 256;

    KernelDeviceTest() : pool_("kernel", BufferPoolConfig{512, room}) {}

    /// A packet of the ring, as long as memory has of it: what is read beyond it would be seen by AddressSanitizer.
    const tpacket3_hdr& packet(std::uint32_t bytes, std::uint32_t wire_bytes) {
        memory_.assign(sizeof(tpacket3_hdr) + bytes, std::byte{0});
        for (std::uint32_t i = 0; i < bytes; ++i) memory_[sizeof(tpacket3_hdr) + i] = static_cast<std::byte>(i);
        auto* header = new (memory_.data()) tpacket3_hdr{};
        header->tp_mac = sizeof(tpacket3_hdr);
        header->tp_snaplen = bytes;
        header->tp_len = wire_bytes;
        return *header;
    }
    tpacket3_hdr& header() { return *reinterpret_cast<tpacket3_hdr*>(memory_.data()); }
    std::vector<std::uint8_t> copied(const tpacket3_hdr& from) {
        const OwnedMbuf mbuf(pool_.allocate());
        copy_frame(from, *mbuf);
        wire_bytes_ = mbuf->pkt_len;
        const auto* at = rte_pktmbuf_mtod(mbuf.get(), const std::uint8_t*);
        return {at, at + mbuf->data_len};
    }
    static std::vector<std::uint8_t> numbers(std::uint32_t first, std::uint32_t end) {
        std::vector<std::uint8_t> out;
        for (; first < end; ++first) out.push_back(static_cast<std::uint8_t>(first));
        return out;
    }

    BufferPool pool_;
    std::vector<std::byte> memory_;
    std::uint32_t wire_bytes_ = 0;
};

TEST_F(KernelDeviceTest, CopiesAFrame) {
    EXPECT_EQ(copied(packet(60, 60)), numbers(0, 60));
    EXPECT_EQ(wire_bytes_, 60U);
    EXPECT_EQ(copied(packet(room, room)), numbers(0, room));
}

TEST_F(KernelDeviceTest, SaysHowLongACutFrameWas) {
    EXPECT_EQ(copied(packet(room + 1, room + 1)), numbers(0, room));
    EXPECT_EQ(wire_bytes_, room + 1);
    // Cut by the kernel already.
    EXPECT_EQ(copied(packet(100, 9000)), numbers(0, 100));
    EXPECT_EQ(wire_bytes_, 9000U);
}

TEST_F(KernelDeviceTest, PutsAVlanTagBackWhereItWas) {
    packet(60, 60);
    header().tp_status = TP_STATUS_VLAN_VALID | TP_STATUS_VLAN_TPID_VALID;
    header().hv1.tp_vlan_tpid = 0x88a8;
    header().hv1.tp_vlan_tci = 0x2007;
    std::vector<std::uint8_t> expected = numbers(0, 12);
    for (const int byte : {0x88, 0xa8, 0x20, 0x07}) expected.push_back(static_cast<std::uint8_t>(byte));
    std::ranges::copy(numbers(12, 60), std::back_inserter(expected));
    EXPECT_EQ(copied(header()), expected);
    EXPECT_EQ(wire_bytes_, 64U);
    // Kernels that do not say which kind of tag mean the usual one.
    header().tp_status = TP_STATUS_VLAN_VALID;
    expected[12] = 0x81;
    expected[13] = 0x00;
    EXPECT_EQ(copied(header()), expected);
    // A priority alone, VLAN 0, is a tag as well.
    header().hv1.tp_vlan_tci = 0;
    expected[14] = expected[15] = 0;
    EXPECT_EQ(copied(header()), expected);
}

TEST_F(KernelDeviceTest, CutsATaggedFrameToo) {
    packet(room, room);
    header().tp_status = TP_STATUS_VLAN_VALID;
    const std::vector<std::uint8_t> got = copied(header());
    EXPECT_EQ(got.size(), room);
    EXPECT_EQ(got.back(), static_cast<std::uint8_t>(room - 4 - 1));
    EXPECT_EQ(wire_bytes_, room + 4);
}

}  // namespace

}  // namespace weir::port

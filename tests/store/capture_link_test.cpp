#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>

#include "capture_bytes.hpp"
#include "memory_sources.hpp"
#include "store/capture/reader.hpp"

namespace weir::store {
namespace {

using test::Bytes;
using test::frame_of;
using test::join;
using test::MemoryStream;

struct Kind {
    std::uint16_t link;
    Bytes header;  ///< as captured
    std::uint16_t type;
    Bytes source;
};

const Bytes nobody(6, 0);
const Bytes mac{2, 4, 6, 8, 10, 12};

/// A packet of 60 bytes that begins as an IP header of this version.
Bytes packet(unsigned version) {
    Bytes bytes = frame_of(60, 9);
    bytes[0] = static_cast<std::uint8_t>(version << 4U | 5U);
    return bytes;
}

Bytes cooked(std::uint16_t hardware, std::uint16_t type) {
    return test::Builder(true).u16(0).u16(hardware).u16(6).append(mac).u16(0).u16(type).bytes;
}

Bytes cooked2(std::uint16_t hardware, std::uint16_t type) {
    return test::Builder(true).u16(type).u16(0).u32(3).u16(hardware).number(4, 1).number(6, 1).append(mac).u16(0).bytes;
}

std::vector<Kind> kinds() {
    return {{113, cooked(1, 0x0800), 0x0800, mac},
            {113, cooked(1, 0x86dd), 0x86dd, mac},
            {113, cooked(824, 0x0800), 0, mac},  // netlink: no EtherType
            {276, cooked2(1, 0x0800), 0x0800, mac},
            {276, cooked2(772, 0x86dd), 0x86dd, mac},
            {12, {}, 0x0800, nobody},
            {101, {}, 0x0800, nobody},
            {101, {}, 0x86dd, nobody},
            {228, {}, 0x0800, nobody},
            {229, {}, 0x86dd, nobody},
            {0, {2, 0, 0, 0}, 0x0800, nobody},
            {0, {0, 0, 0, 2}, 0x0800, nobody},
            {0, {30, 0, 0, 0}, 0x86dd, nobody},
            {0, {2, 0, 0, 30}, 0, nobody},
            {108, {0, 0, 0, 2}, 0x0800, nobody},
            {108, {0, 0, 0, 24}, 0x86dd, nobody}};
}

Bytes expected(const Kind& kind, const Bytes& body) {
    return join({nobody, kind.source, test::Builder(true).u16(kind.type).bytes, body});
}

struct Read {
    Bytes bytes;
    std::uint32_t wire_bytes;
};

std::vector<Read> read(const Bytes& file) {
    CaptureReader reader(std::make_unique<MemoryStream>(std::as_bytes(std::span(file))), "test");
    std::vector<Read> all;
    CaptureReader::Record record;
    while (reader.next(record)) {
        Bytes bytes(record.bytes.size());
        if (!bytes.empty()) std::memcpy(bytes.data(), record.bytes.data(), bytes.size());
        all.push_back({std::move(bytes), record.wire_bytes});
    }
    EXPECT_FALSE(reader.cut_off()) << reader.cut_off_text();
    return all;
}

TEST(CaptureLink, OtherLinkTypesBecomeEthernetFramesInPcapAndPcapng) {
    for (const Kind& kind : kinds()) {
        SCOPED_TRACE(testing::Message() << "link " << kind.link << ", type " << kind.type);
        const Bytes body = packet(kind.type == 0x86dd ? 6 : 4);
        const Bytes record = join({kind.header, body});
        const test::PcapOptions options{.link = kind.link};
        const auto wire = static_cast<std::uint32_t>(record.size() + 100);
        for (const Bytes& file : {join({test::pcap_header(options), test::pcap_record(options, 1, 2, record),
                                        test::pcap_record(options, 1, 3, record, wire)}),
                                  join({test::pcapng_header(true, 9, kind.link), test::pcapng_record(true, 12, record),
                                        test::pcapng_record(true, 13, record, wire)})}) {
            const std::vector<Read> all = read(file);
            ASSERT_EQ(all.size(), 2U);
            EXPECT_EQ(all[0].bytes, expected(kind, body));
            EXPECT_EQ(all[0].wire_bytes, 14 + body.size());
            EXPECT_EQ(all[1].bytes, expected(kind, body));
            EXPECT_EQ(all[1].wire_bytes, 14 + body.size() + 100);
        }
    }
}

TEST(CaptureLink, ARecordThatIsTooShortForItsOwnHeaderIsStillARecord) {
    for (const Kind& kind : kinds()) {
        const test::PcapOptions options{.link = kind.link};
        for (std::size_t size = 0; size <= kind.header.size(); ++size) {
            const Bytes cut(kind.header.begin(), kind.header.begin() + static_cast<std::ptrdiff_t>(size));
            const std::vector<Read> all =
                read(join({test::pcap_header(options), test::pcap_record(options, 1, 2, cut)}));
            ASSERT_EQ(all.size(), 1U) << kind.link;
            EXPECT_EQ(all[0].bytes.size(), size < kind.header.size() ? 0U : 14U) << kind.link;
        }
    }
}

TEST(CaptureLink, ALengthThatNoPacketHasDoesNotBecomeAShortOne) {
    constexpr std::uint32_t longest = ~0U;
    for (const Kind& kind : kinds()) {
        const test::PcapOptions options{.link = kind.link};
        const Bytes record = join({kind.header, packet(4)});
        const std::vector<Read> all =
            read(join({test::pcap_header(options), test::pcap_record(options, 1, 2, record, longest)}));
        ASSERT_EQ(all.size(), 1U) << kind.link;
        EXPECT_GE(all[0].wire_bytes, longest - kind.header.size()) << kind.link;
    }
}

}  // namespace
}  // namespace weir::store

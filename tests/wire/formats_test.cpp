// This packet -> this counter for jungfrau, ejfat and message, and decode(encode(x)) == x.
#include <fstream>
#include <iterator>
#include <tuple>

#include "core/error.hpp"
#include "options/option.hpp"
#include "source_root.hpp"
#include "wire/format.hpp"
#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
using test::decode;
using test::Exact;
using test::pattern;
using test::verdict_of;

Bytes jungfrau(const SlsHeader& header, std::size_t payload_bytes = 8192) {
    Bytes out(48 + payload_bytes);
    EXPECT_EQ(write_sls(header, pattern(payload_bytes, header.packet_number), out), out.size());
    return out;
}

Bytes ejfat(const EjfatHeader& header, std::size_t payload_bytes) {
    Bytes out(36 + payload_bytes);
    out.resize(write_ejfat(header, pattern(payload_bytes, header.offset), out));
    return out;
}

TEST(Formats, TableHasThemAll) {
    for (const char* name : {"jungfrau", "moench", "eiger", "ejfat", "dune", "ess", "spead", "message", "declared"}) {
        ASSERT_NE(find_format(name), nullptr) << name;
        EXPECT_EQ(find_format(name)->name, name);
    }
    EXPECT_EQ(find_format("mythen"), nullptr);
    EXPECT_EQ(find_format(""), nullptr);
}

std::string text_of(const std::string& name) {
    std::ifstream in(weir::test::source_root() / name);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Formats, EntriesNameThingsThatExist) {
    for (const FormatEntry& entry : formats()) {
        EXPECT_FALSE(text_of("docs/" + std::string(entry.page)).empty()) << entry.name << ": " << entry.page;
        if (!entry.image.detector.empty()) {
            EXPECT_NE(entry.image_shape, nullptr) << entry.name;
        }
        if (entry.describe == nullptr) {
            EXPECT_TRUE(entry.keys.empty()) << entry.name;
        }
    }
    EXPECT_EQ(described_format().name, "declared");
    EXPECT_FALSE(is_built_in("declared"));
    EXPECT_EQ(built_in_formats().size() + 1, formats().size());
}

TEST(Formats, EveryKeyOfAFormatIsDescribed) {
    for (const FormatEntry& entry : formats()) {
        if (entry.describe == nullptr) continue;
        const auto described = entry.describe().keys();
        for (const std::string_view key : entry.keys)
            EXPECT_NE(std::ranges::find(described, key), described.end()) << entry.name << ": " << key;
    }
}

TEST(Formats, BurstKeepsItsOrder) {
    const FormatContext context = find_format("jungfrau")->make_context({});
    std::vector<Exact> payloads;
    for (std::uint32_t i = 0; i < 5; ++i) {
        SlsHeader header{.frame_number = 100 + i, .packet_number = i};
        if (i == 3) header.detector_type = 1;
        payloads.emplace_back(jungfrau(header));
    }
    std::vector<Datagram> datagrams;
    for (const Exact& payload : payloads) datagrams.push_back(datagram_of(payload));
    std::array<Fragment, 5> out;
    std::array<Verdict, 5> verdict;
    find_format("jungfrau")->decode_burst(context, datagrams, out.data(), verdict.data());
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(verdict[i], i == 3 ? Verdict::malformed_header : ok);
        if (i == 3) continue;
        EXPECT_EQ(out[i].number, 100 + i);
        EXPECT_EQ(out[i].offset, i * 8192);
    }
}

TEST(Jungfrau, RoundTrip) {
    const SlsHeader header{.frame_number = 0x0102030405060708,
                           .exposure_100ns = 100,
                           .packet_number = 127,
                           .bunch_id = 77,
                           .timestamp_100ns = 88,
                           .module_id = 513,
                           .row = 3,
                           .column = 4};
    const Bytes bytes = jungfrau(header);
    const Exact payload(bytes);
    const FormatContext context = find_format("jungfrau")->make_context({});
    Fragment fragment;
    ASSERT_EQ(decode("jungfrau", context, payload, fragment), ok);
    EXPECT_EQ(fragment.number, header.frame_number);
    EXPECT_EQ(fragment.offset, 127U * 8192);
    EXPECT_EQ(fragment.bytes, 8192U);
    EXPECT_TRUE(fragment.total_known);
    EXPECT_EQ(fragment.total, 1048576U);
    EXPECT_EQ(fragment.header_source, 513U);
    EXPECT_EQ(fragment.payload, payload.data() + 48);
    EXPECT_EQ(fragment.header, payload.data());
    EXPECT_EQ(fragment.header_bytes, 48);
    EXPECT_EQ(context.number_bits, 64);
    EXPECT_EQ(context.message_bytes, 1048576U);
}

TEST(Jungfrau, HeaderBytesAreWhereTheDetectorPutsThem) {
    const Bytes bytes = jungfrau({.frame_number = 0x1122334455667788,
                                  .packet_number = 0x0a,
                                  .timestamp_100ns = 9,
                                  .module_id = 0x1234,
                                  .row = 0x5678,
                                  .column = 0x9abc,
                                  .daq_info = 0xdeadbeef});
    EXPECT_EQ(bytes[0], std::byte{0x88});
    EXPECT_EQ(bytes[7], std::byte{0x11});
    EXPECT_EQ(bytes[12], std::byte{0x0a});
    EXPECT_EQ(bytes[24], std::byte{9});
    EXPECT_EQ(bytes[32], std::byte{0x34});
    EXPECT_EQ(bytes[35], std::byte{0x56});
    EXPECT_EQ(bytes[37], std::byte{0x9a});
    EXPECT_EQ(bytes[43], std::byte{0xde});
    EXPECT_EQ(bytes[46], std::byte{3});
    EXPECT_EQ(bytes[47], std::byte{2});
}

TEST(Jungfrau, TwoInterfaces) {
    const FormatOptions options{.interfaces = 2};
    EXPECT_EQ(find_format("jungfrau")->make_context(options).message_bytes, 524288U);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({.packet_number = 63}), options), ok);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({.packet_number = 64}), options), Verdict::malformed_packet_number);
}

TEST(Jungfrau, Malformed) {
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({.packet_number = 128})), Verdict::malformed_packet_number);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({.packet_number = 0xffffffff})), Verdict::malformed_packet_number);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({.detector_type = 5})), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({.version = 0})), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({.version = 1})), ok);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({.version = 3})), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({}, 8191)), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({}, 8193)), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of("jungfrau", jungfrau({}, 0)), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of("jungfrau", Bytes(47)), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("jungfrau", Bytes{}), Verdict::malformed_header);
}

TEST(Jungfrau, InterfacesAreOneOrTwo) {
    for (const int interfaces : {0, 3, -1})
        EXPECT_THROW((void)find_format("jungfrau")->make_context({.interfaces = interfaces}), core::UsageError);
}

TEST(Ejfat, RoundTripAloneAndBehindTheLoadBalancer) {
    for (const auto& [lb_version, re_version] :
         {std::pair<std::uint8_t, std::uint8_t>{0, 1}, {2, 1}, {3, 1}, {0, 2}, {2, 2}, {3, 2}}) {
        SCOPED_TRACE(testing::Message() << "LB " << int{lb_version} << ", RE " << int{re_version});
        const EjfatHeader header{.data_id = 0xabcd,
                                 .offset = 8000,
                                 .total = 9000,
                                 .event = 0x0102030405060708,
                                 .lb_version = lb_version,
                                 .re_version = re_version,
                                 .entropy = 5,
                                 .tick = 999};
        const Bytes bytes = ejfat(header, 1000);
        EXPECT_EQ(bytes.size(), 1000U + (lb_version != 0 ? 36 : 20));
        const Exact payload(bytes);
        Fragment fragment;
        ASSERT_EQ(decode("ejfat", find_format("ejfat")->make_context({}), payload, fragment), ok);
        EXPECT_EQ(std::to_integer<int>(*fragment.header), 16 * re_version);
        EXPECT_EQ(fragment.number, header.event);
        EXPECT_EQ(fragment.offset, 8000U);
        EXPECT_EQ(fragment.bytes, 1000U);
        EXPECT_EQ(fragment.total, 9000U);
        EXPECT_TRUE(fragment.total_known);
        EXPECT_EQ(fragment.header_source, 0xabcdU);
        EXPECT_EQ(fragment.header_bytes, 20);
        EXPECT_EQ(fragment.payload, fragment.header + 20);
        EXPECT_EQ(fragment.payload + fragment.bytes, payload.data() + payload.size());
    }
}

TEST(Ejfat, Malformed) {
    const auto re = [](std::uint32_t offset, std::uint32_t total, std::size_t bytes) {
        return verdict_of("ejfat", ejfat({.offset = offset, .total = total}, bytes));
    };
    EXPECT_EQ(re(0, 100, 100), ok);
    EXPECT_EQ(re(1, 100, 100), Verdict::malformed_range);
    EXPECT_EQ(re(100, 100, 1), Verdict::malformed_range);
    EXPECT_EQ(re(0xffffffff, 100, 2), Verdict::malformed_range);  // offset + bytes wraps
    EXPECT_EQ(re(0, 0, 1), Verdict::malformed_range);
    EXPECT_EQ(re(0, 0, 0), ok);  // an empty buffer is a whole message
    EXPECT_EQ(re(1, 0, 0), Verdict::malformed_range);
    EXPECT_EQ(re(50, 100, 0), Verdict::malformed_payload_length);
    EXPECT_EQ(re(0, (16U << 20) + 1, 1), Verdict::malformed_message_size);
    EXPECT_EQ(re(0, 16U << 20, 1), ok);
    EXPECT_EQ(verdict_of("ejfat", ejfat({.total = 101}, 1), {.message_bytes_max = 100}),
              Verdict::malformed_message_size);
    EXPECT_EQ(verdict_of("ejfat", Bytes(19, std::byte{0x10})), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("ejfat", Bytes{}), Verdict::malformed_header);
}

TEST(Ejfat, HeaderMustBeRightBitForBit) {
    Bytes bytes = ejfat({.total = 10}, 10);
    for (const auto& [first, second, verdict] : {std::tuple{0x10, 0, ok},
                                                 {0x20, 0, ok},
                                                 {0x00, 0, Verdict::malformed_header},
                                                 {0x30, 0, Verdict::malformed_header},
                                                 {0x11, 0, Verdict::malformed_header},
                                                 {0x21, 0, Verdict::malformed_header},
                                                 {0x10, 1, Verdict::malformed_header},
                                                 {0x20, 1, Verdict::malformed_header}}) {
        bytes[0] = static_cast<std::byte>(first);
        bytes[1] = static_cast<std::byte>(second);
        EXPECT_EQ(verdict_of("ejfat", bytes), verdict) << first << ' ' << second;
    }

    for (const auto& [at, value] :
         {std::pair{0, 0x4d}, {1, 0x41}, {2, 1}, {2, 4}, {3, 0}, {3, 2}, {16, 0x00}, {16, 0x30}, {17, 1}}) {
        Bytes behind_lb = ejfat({.total = 10, .lb_version = 2}, 10);
        EXPECT_EQ(verdict_of("ejfat", behind_lb), ok);
        behind_lb[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
        EXPECT_EQ(verdict_of("ejfat", behind_lb), Verdict::malformed_header) << at;
    }
    Bytes short_one = ejfat({.total = 10, .lb_version = 2}, 0);
    short_one.resize(35);
    EXPECT_EQ(verdict_of("ejfat", short_one), Verdict::malformed_header);
}

TEST(Ejfat, SyncIsControl) {
    Bytes sync(28);
    sync[0] = std::byte{'L'};
    sync[1] = std::byte{'C'};
    sync[2] = std::byte{2};
    EXPECT_EQ(verdict_of("ejfat", sync), Verdict::control);
    sync[2] = std::byte{1};
    EXPECT_EQ(verdict_of("ejfat", sync), Verdict::control);
    sync[2] = std::byte{3};
    EXPECT_EQ(verdict_of("ejfat", sync), Verdict::malformed_header);
    sync[2] = std::byte{2};
    sync.resize(27);
    EXPECT_EQ(verdict_of("ejfat", sync), Verdict::malformed_header);
}

TEST(WholeMessage, PayloadIsTheMessage) {
    const Bytes bytes = pattern(1234);
    const Exact payload(bytes);
    const FormatContext context = find_format("message")->make_context({});
    EXPECT_FALSE(context.carries_number);
    Fragment fragment;
    ASSERT_EQ(decode("message", context, payload, fragment), ok);
    EXPECT_EQ(fragment.payload, payload.data());
    EXPECT_EQ(fragment.bytes, 1234U);
    EXPECT_EQ(fragment.total, 1234U);
    EXPECT_EQ(fragment.offset, 0U);
    EXPECT_EQ(fragment.number, 0U);
    EXPECT_EQ(fragment.header_bytes, 0);
    EXPECT_EQ(verdict_of("message", Bytes{}), ok);
    EXPECT_EQ(verdict_of("message", Bytes(11), {.message_bytes_max = 10}), Verdict::malformed_message_size);
}

/// The contract of FormatEntry: a decoder looks at no byte beyond header_read_bytes, whatever the length says.
TEST(Formats, OnlyTheHeaderIsRead) {
    const Bytes whole = jungfrau({.frame_number = 9, .packet_number = 1});
    const Exact header{std::span(whole).first(48)};
    Datagram datagram = datagram_of(header);
    datagram.payload_bytes = 48 + 8192;
    Fragment fragment;
    Verdict verdict = Verdict::count_;
    find_format("jungfrau")
        ->decode_burst(find_format("jungfrau")->make_context({}), {&datagram, 1}, &fragment, &verdict);
    EXPECT_EQ(verdict, ok);
    EXPECT_EQ(fragment.number, 9U);
}

TEST(Encode, TooSmallABufferWritesNothing) {
    Bytes small(47);
    EXPECT_EQ(write_sls({}, {}, small), 0U);
    EXPECT_EQ(write_ejfat({}, Bytes(28), small), 0U);
    EXPECT_EQ(write_udp_frame({}, Bytes(6), small), 0U);
    EXPECT_EQ(write_frame_headers({}, 0, std::span(small).first(41)), 0U);
    EXPECT_EQ(small, Bytes(47));
}

}  // namespace
}  // namespace weir::wire

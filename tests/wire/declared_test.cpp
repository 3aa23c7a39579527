// Declared formats: what a description means, which packets it refuses, and which descriptions are contradictory.
#include <functional>

#include "core/error.hpp"
#include "wire/format.hpp"
#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
using test::datagram_of;
using test::Exact;
using test::pattern;

/// The example of docs/reference/formats/declared.md.
DeclaredSpec example() {
    DeclaredSpec spec;
    spec.name = "mydet";
    spec.header_bytes = 16;
    spec.event = DeclaredField{.offset = 0, .bytes = 8};
    spec.index = DeclaredField{.offset = 8, .bytes = 4};
    spec.magic = DeclaredField{.offset = 12, .bytes = 2};
    spec.magic_value = 0xcafe;
    spec.source = DeclaredField{.offset = 14, .bytes = 2};
    spec.payload_bytes = 4096;
    spec.packets = 64;
    return spec;
}

/// index and total instead of packets: the last packet may be short.
DeclaredSpec with_total() {
    DeclaredSpec spec = example();
    spec.packets.reset();
    spec.source.reset();
    spec.header_bytes = 20;
    spec.payload_bytes = 100;
    spec.total = DeclaredField{.offset = 16, .bytes = 4};
    return spec;
}

DeclaredSpec with_offset() {
    DeclaredSpec spec = with_total();
    spec.index.reset();
    spec.payload_bytes.reset();
    spec.offset = DeclaredField{.offset = 8, .bytes = 4};
    return spec;
}

FormatContext context_of(const DeclaredSpec& spec, std::uint32_t message_bytes_max = 0) {
    FormatOptions options;
    options.message_bytes_max = message_bytes_max;
    options.declared = spec;
    return find_format("declared")->make_context(options);
}

Verdict decode(const FormatContext& context, const Exact& payload, Fragment& out) {
    const Datagram datagram = datagram_of(payload);
    Verdict verdict = Verdict::count_;
    find_format("declared")->decode_burst(context, {&datagram, 1}, &out, &verdict);
    return verdict;
}

Bytes packet(const DeclaredSpec& spec, const DeclaredValues& values, std::size_t payload_bytes) {
    Bytes out(spec.header_bytes + payload_bytes);
    EXPECT_EQ(write_declared(spec, values, pattern(payload_bytes), out), out.size());
    return out;
}

Verdict verdict_of(const DeclaredSpec& spec, const DeclaredValues& values, std::size_t payload_bytes) {
    Fragment fragment;
    return decode(context_of(spec), Exact(packet(spec, values, payload_bytes)), fragment);
}

TEST(Declared, RoundTrip) {
    const DeclaredSpec spec = example();
    const Exact payload(packet(spec, {.event = 0x1122334455667788, .index = 63, .source = 7}, 4096));
    const FormatContext context = context_of(spec);
    EXPECT_EQ(context.number_bits, 64);
    EXPECT_EQ(context.message_bytes, 262144U);
    EXPECT_TRUE(context.carries_source);
    Fragment fragment;
    ASSERT_EQ(decode(context, payload, fragment), ok);
    EXPECT_EQ(fragment.number, 0x1122334455667788U);
    EXPECT_EQ(fragment.offset, 63U * 4096);
    EXPECT_EQ(fragment.bytes, 4096U);
    EXPECT_EQ(fragment.total, 262144U);
    EXPECT_TRUE(fragment.total_known);
    EXPECT_EQ(fragment.header_source, 7U);
    EXPECT_EQ(fragment.header, payload.data());
    EXPECT_EQ(fragment.header_bytes, 16);
    EXPECT_EQ(fragment.payload, payload.data() + 16);
}

TEST(Declared, BytesByHand) {
    // Little-endian: event 0x0201, index 3. The encoder does not take part.
    DeclaredSpec spec = example();
    spec.payload_bytes = 2;
    const std::array<std::uint8_t, 18> wire{1, 2, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0xfe, 0xca, 0, 9, 0xaa, 0xbb};
    Fragment fragment;
    ASSERT_EQ(decode(context_of(spec), Exact(test::bytes_of(wire)), fragment), ok);
    EXPECT_EQ(fragment.number, 0x0201U);
    EXPECT_EQ(fragment.offset, 6U);
    EXPECT_EQ(fragment.header_source, 0x0900U);
    // The same bytes read big-endian.
    spec.byte_order = ByteOrder::big;
    spec.magic_value = 0xfeca;
    spec.index = DeclaredField{.offset = 8, .bytes = 1};
    ASSERT_EQ(decode(context_of(spec), Exact(test::bytes_of(wire)), fragment), ok);
    EXPECT_EQ(fragment.number, 0x0102000000000000U);
    EXPECT_EQ(fragment.offset, 6U);
    EXPECT_EQ(fragment.header_source, 9U);
}

TEST(Declared, MaskThenShift) {
    DeclaredSpec spec = example();
    spec.event = DeclaredField{.offset = 0, .bytes = 4, .mask = 0x00ffff00, .shift = 8};
    const FormatContext context = context_of(spec);
    EXPECT_EQ(context.number_bits, 16);
    Bytes bytes = packet(spec, {.event = 0xabcd}, 4096);
    bytes[0] = bytes[3] = std::byte{0x77};  // outside the mask
    Fragment fragment;
    ASSERT_EQ(decode(context, Exact(bytes), fragment), ok);
    EXPECT_EQ(fragment.number, 0xabcdU);
}

TEST(Declared, HeaderOfFourBytes) {
    for (const ByteOrder order : {ByteOrder::little, ByteOrder::big}) {
        DeclaredSpec spec;
        spec.name = "tiny";
        spec.byte_order = order;
        spec.header_bytes = 4;
        spec.event = DeclaredField{.offset = 1, .bytes = 2};
        spec.index = DeclaredField{.offset = 3, .bytes = 1};
        spec.payload_bytes = 10;
        spec.packets = 4;
        Fragment fragment;
        ASSERT_EQ(decode(context_of(spec), Exact(packet(spec, {.event = 0x1234, .index = 3}, 10)), fragment), ok);
        EXPECT_EQ(fragment.number, 0x1234U);
        EXPECT_EQ(fragment.offset, 30U);
    }
}

TEST(Declared, WrapBits) {
    DeclaredSpec spec = example();
    spec.wrap_bits = 48;
    EXPECT_EQ(context_of(spec).number_bits, 48);
    EXPECT_EQ(verdict_of(spec, {.event = (1ULL << 48) - 1}, 4096), ok);
    EXPECT_EQ(verdict_of(spec, {.event = 1ULL << 48}, 4096), Verdict::malformed_header);
}

/// Seconds, and which of 25,000 packets in each.
DeclaredSpec of_two_fields() {
    DeclaredSpec spec;
    spec.name = "mydet";
    spec.header_bytes = 8;
    spec.event = DeclaredField{.offset = 0, .bytes = 4, .mask = 0x3fffffff};
    spec.event_part = DeclaredField{.offset = 4, .bytes = 3};
    spec.event_count = 25'000;
    return spec;
}

TEST(Declared, ANumberOfTwoFieldsRisesByOne) {
    const DeclaredSpec spec = of_two_fields();
    const FormatContext context = context_of(spec);
    EXPECT_EQ(context.number_bits, 64);
    const std::uint64_t last = 86'399ULL * 25'000 + 24'999;  // of a second
    for (const std::uint64_t number : {std::uint64_t{0}, last, last + 1}) {
        Fragment fragment;
        ASSERT_EQ(decode(context, Exact(packet(spec, {.event = number}, 10)), fragment), ok) << number;
        EXPECT_EQ(fragment.number, number);
    }
    Bytes wrong = packet(spec, {.event = last}, 10);
    set_declared_field(spec, spec.event_part, 25'000, wrong);
    Fragment fragment;
    EXPECT_EQ(decode(context, Exact(wrong), fragment), Verdict::malformed_header);
}

TEST(Declared, ASequenceNumberIsReadAsItIs) {
    DeclaredSpec spec = with_offset();
    EXPECT_EQ(context_of(spec).sequence_bits, 0);
    spec.sequence = DeclaredField{.offset = 12, .bytes = 4, .mask = 0xfff0, .shift = 4};
    spec.magic.reset();
    const FormatContext context = context_of(spec);
    EXPECT_EQ(context.sequence_bits, 12);
    for (const std::uint64_t sequence : {0x0ULL, 0x1ULL, 0xfffULL}) {
        Fragment fragment;
        ASSERT_EQ(decode(context, Exact(packet(spec, {.total = 10, .sequence = sequence}, 10)), fragment), ok);
        EXPECT_EQ(fragment.sequence, sequence);
    }
}

TEST(Declared, PacketsFixTheSize) {
    EXPECT_EQ(verdict_of(example(), {.index = 64}, 4096), Verdict::malformed_packet_number);
    EXPECT_EQ(verdict_of(example(), {.index = 0xffffffff}, 4096), Verdict::malformed_packet_number);
    EXPECT_EQ(verdict_of(example(), {.index = 63}, 4095), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of(example(), {.index = 0}, 4097), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of(example(), {.index = 0}, 0), Verdict::malformed_payload_length);
}

TEST(Declared, MagicAndShortHeader) {
    Bytes bytes = packet(example(), {}, 4096);
    bytes[12] ^= std::byte{1};
    Fragment fragment;
    EXPECT_EQ(decode(context_of(example()), Exact(bytes), fragment), Verdict::malformed_header);
    EXPECT_EQ(decode(context_of(example()), Exact(Bytes(15)), fragment), Verdict::malformed_header);
    EXPECT_EQ(decode(context_of(example()), Exact(Bytes{}), fragment), Verdict::malformed_header);
}

TEST(Declared, TotalLetsTheLastPacketBeShort) {
    const DeclaredSpec spec = with_total();
    EXPECT_EQ(verdict_of(spec, {.index = 0, .total = 250}, 100), ok);
    EXPECT_EQ(verdict_of(spec, {.index = 2, .total = 250}, 50), ok);
    EXPECT_EQ(verdict_of(spec, {.index = 2, .total = 250}, 100), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of(spec, {.index = 1, .total = 250}, 50), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of(spec, {.index = 3, .total = 250}, 100), Verdict::malformed_packet_number);
    EXPECT_EQ(verdict_of(spec, {.index = 3, .total = 300}, 100), Verdict::malformed_packet_number);
    EXPECT_EQ(verdict_of(spec, {.index = 0, .total = 0}, 0), ok);  // an empty message
    EXPECT_EQ(verdict_of(spec, {.index = 1, .total = 0}, 0), Verdict::malformed_packet_number);
    EXPECT_EQ(verdict_of(spec, {.index = 0, .total = 0}, 1), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of(spec, {.index = 0, .total = 1U << 25}, 100), Verdict::malformed_message_size);
}

TEST(Declared, TotalThatIsAlwaysTheSame) {
    DeclaredSpec spec = example();
    spec.packets.reset();
    spec.payload_bytes = 7680;
    spec.total_bytes = 12800;
    const FormatContext context = context_of(spec);
    EXPECT_EQ(context.message_bytes, 12800U);
    EXPECT_EQ(context.packets_per_message, 2U);
    const auto verdict = [&](std::uint64_t index, std::size_t bytes) {
        Bytes out(16 + bytes);
        EXPECT_EQ(write_declared(spec, {.event = 1, .index = index}, pattern(bytes), out), out.size());
        Fragment fragment;
        const Verdict answer = decode(context, Exact(out), fragment);
        if (answer == ok) {
            EXPECT_EQ(fragment.offset, index * 7680);
            EXPECT_EQ(fragment.total, 12800U);
            EXPECT_TRUE(fragment.total_known);
        }
        return answer;
    };
    EXPECT_EQ(verdict(0, 7680), ok);
    EXPECT_EQ(verdict(1, 5120), ok);
    EXPECT_EQ(verdict(0, 5120), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict(1, 7680), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict(2, 5120), Verdict::malformed_packet_number);

    spec.index.reset();
    spec.payload_bytes.reset();
    EXPECT_EQ(context_of(spec).message_bytes, 12800U);  // every packet is a whole message of this size
    spec.offset = DeclaredField{.offset = 8, .bytes = 4};
    EXPECT_EQ(context_of(spec).message_bytes, 12800U);
    EXPECT_THROW((void)context_of(spec, 12799), core::UsageError);
    spec.total_bytes = 0;
    EXPECT_THROW((void)context_of(spec), core::UsageError);
    spec.total_bytes = 12800;
    spec.total = DeclaredField{.offset = 12, .bytes = 2};
    EXPECT_THROW((void)context_of(spec), core::UsageError);
}

TEST(Declared, Offset) {
    const DeclaredSpec spec = with_offset();
    EXPECT_EQ(verdict_of(spec, {.offset = 40, .total = 100}, 60), ok);
    EXPECT_EQ(verdict_of(spec, {.offset = 40, .total = 100}, 61), Verdict::malformed_range);
    EXPECT_EQ(verdict_of(spec, {.offset = 100, .total = 100}, 1), Verdict::malformed_range);
    EXPECT_EQ(verdict_of(spec, {.offset = 40, .total = 100}, 0), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of(spec, {.offset = 0, .total = 0}, 0), ok);
    EXPECT_EQ(verdict_of(spec, {.offset = 0xffffffff, .total = 100}, 60), Verdict::malformed_range);
}

TEST(Declared, OffsetInAllEightBytesDoesNotWrap) {
    DeclaredSpec spec = with_total();
    spec.header_bytes = 28;
    spec.index = DeclaredField{.offset = 20, .bytes = 8};
    EXPECT_EQ(verdict_of(spec, {.index = ~0ULL, .total = 100}, 100), Verdict::malformed_packet_number);
    EXPECT_EQ(verdict_of(spec, {.index = 1ULL << 63, .total = 100}, 100), Verdict::malformed_packet_number);
    spec.payload_bytes = 65535;
    EXPECT_EQ(verdict_of(spec, {.index = 0x8000800080009ULL, .total = 100}, 100), Verdict::malformed_packet_number);
}

TEST(Declared, WithoutPlaceEveryPacketIsAMessage) {
    DeclaredSpec spec = example();
    spec.index.reset();
    spec.packets.reset();
    spec.payload_bytes.reset();
    Fragment fragment;
    const FormatContext context = context_of(spec);
    ASSERT_EQ(decode(context, Exact(packet(spec, {.event = 5}, 77)), fragment), ok);
    EXPECT_EQ(fragment.total, 77U);
    EXPECT_EQ(fragment.offset, 0U);
    EXPECT_EQ(verdict_of(spec, {}, 0), ok);
    spec.payload_bytes = 77;  // fixed length
    EXPECT_EQ(verdict_of(spec, {}, 77), ok);
    EXPECT_EQ(verdict_of(spec, {}, 76), Verdict::malformed_payload_length);
    spec = with_total();
    spec.index.reset();
    spec.payload_bytes.reset();
    EXPECT_EQ(verdict_of(spec, {.total = 77}, 77), ok);
    EXPECT_EQ(verdict_of(spec, {.total = 78}, 77), Verdict::malformed_payload_length);
}

TEST(Declared, RandomFieldsRoundTrip) {
    const unsigned seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    for (int i = 0; i < 5000; ++i) {
        DeclaredSpec spec;
        spec.name = "random";
        spec.byte_order = random() % 2 != 0 ? ByteOrder::big : ByteOrder::little;
        const auto field = [&](std::uint32_t at) {
            const auto bytes = static_cast<std::uint32_t>(1 + random() % 8);
            DeclaredField out{.offset = at + static_cast<std::uint32_t>(random() % (9 - bytes)), .bytes = bytes};
            if (random() % 2 != 0) {
                const auto low = static_cast<std::uint32_t>(random() % (bytes * 8));
                const auto width = 1 + random() % (bytes * 8 - low);
                out.mask = (~0ULL >> (64 - width)) << low;
                out.shift = low;
            }
            return out;
        };
        spec.event = field(0);
        spec.offset = field(8);
        spec.source = DeclaredField{.offset = 16, .bytes = 4};
        spec.total = DeclaredField{.offset = 20, .bytes = 4};
        spec.header_bytes = static_cast<std::uint32_t>(24 + random() % 8);
        const FormatContext context = context_of(spec);
        const DeclaredValues values{.event = random() & context.event.mask,
                                    .offset = random() & 0xffff & context.offset.mask,
                                    .total = 70000,
                                    .source = random() & 0xffffffff};
        Fragment fragment;
        ASSERT_EQ(decode(context, Exact(packet(spec, values, 10)), fragment), ok);
        EXPECT_EQ(fragment.number, values.event);
        EXPECT_EQ(fragment.offset, values.offset);
        EXPECT_EQ(fragment.header_source, values.source);
    }
}

/// The message of the error, or "" if there is none.
std::string error_of(const std::function<void(DeclaredSpec&)>& change) {
    DeclaredSpec spec = example();
    change(spec);
    try {
        (void)context_of(spec);
    } catch (const core::UsageError& error) {
        return error.what();
    }
    return "";
}

TEST(Declared, ContradictionsNameTheKey) {
    struct Case {
        const char* key;
        std::function<void(DeclaredSpec&)> change;
    };
    const DeclaredField field{.offset = 0, .bytes = 2};
    const std::vector<Case> cases{
        {"header_bytes", [](auto& s) { s.header_bytes = 0; }},
        {"header_bytes", [](auto& s) { s.header_bytes = 1025; }},
        {"event:", [](auto& s) { s.event.reset(); }},
        {"event.bytes", [](auto& s) { s.event->bytes = 9; }},
        {"event.bytes", [](auto& s) { s.event->bytes = 0; }},
        {"index:", [](auto& s) { s.index->offset = 13; }},
        {"index:", [](auto& s) { s.index->offset = 0xffffffff; }},
        {"event.mask", [](auto& s) { s.event->mask = 0; }},
        {"event.mask", [](auto& s) { s.event->mask = 0xff00ff; }},
        {"index.mask", [](auto& s) { s.index->mask = 0x1ffffffff; }},
        {"event.shift", [](auto& s) { s.event->shift = 64; }},
        {"index.shift",
         [](auto& s) {
             s.index->mask = 0xff;
             s.index->shift = 8;
         }},
        {"event.wrap_bits", [](auto& s) { s.wrap_bits = 65; }},
        {"event.wrap_bits", [](auto& s) { s = of_two_fields(), s.wrap_bits = 30; }},
        {"event", [](auto& s) { s = of_two_fields(), s.event->bytes = 2, s.event->mask.reset(); }},
        {"event.count", [](auto& s) { s = of_two_fields(), s.event_count = 1; }},
        {"event.count", [](auto& s) { s = of_two_fields(), s.event_count = (1U << 24U) + 1; }},
        {"event.count", [](auto& s) { s = of_two_fields(), s.event_count = ~std::uint64_t{0}; }},
        {"event.count", [](auto& s) { s = of_two_fields(), s.event->mask.reset(), s.event->bytes = 8; }},
        {"event.wrap_bits", [](auto& s) { s.wrap_bits = 0; }},
        {"offset:", [&](auto& s) { s.offset = field; }},
        {"total:", [&](auto& s) { s.total = field; }},
        {"payload_bytes:", [](auto& s) { s.payload_bytes.reset(); }},
        {"payload_bytes:", [](auto& s) { s.payload_bytes = 0; }},
        {"payload_bytes:", [](auto& s) { s.payload_bytes = 65536; }},
        {"packets:", [](auto& s) { s.packets = 0; }},
        {"packets:", [](auto& s) { s.packets.reset(); }},
        {"packets:", [](auto& s) { s.packets = 4097; }},  // 16 MiB and one packet
        {"packets:", [](auto& s) { s.index.reset(); }},
        {"total:",
         [&](auto& s) {
             s.index.reset();
             s.packets.reset();
             s.total = field;
         }},
        {"magic.value", [](auto& s) { s.magic_value = 0x1cafe; }},
        {"source:", [](auto& s) { s.source = DeclaredField{.offset = 0, .bytes = 8}; }},
        {"sequence:", [](auto& s) { s.sequence = DeclaredField{.offset = 0, .bytes = 8}; }},
        {"sequence:", [](auto& s) { s.sequence = DeclaredField{.offset = 0, .bytes = 1, .mask = 0x7f}; }},
        {"sequence.mask", [](auto& s) { s.sequence = DeclaredField{.offset = 0, .bytes = 2, .mask = 0xfff0}; }},
    };
    EXPECT_EQ(error_of([](auto&) {}), "");
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const std::string error = error_of(cases[i].change);
        EXPECT_NE(error.find(cases[i].key), std::string::npos) << i << ": " << error;
        EXPECT_NE(error.find("\"mydet\""), std::string::npos) << i << ": " << error;
    }
}

}  // namespace
}  // namespace weir::wire

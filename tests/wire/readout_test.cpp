// This packet -> this counter for dune, ess and spead, with every field damaged in turn, and decode(encode(x)) == x.
#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "wire/format.hpp"
#include "wire_support.hpp"

namespace weir::wire {
namespace {

using test::Bytes;
using test::decode;
using test::Exact;
using test::pattern;
using test::verdict_of;

/// `payload` with one byte changed.
Bytes with(Bytes payload, std::size_t at, int value) {
    payload.at(at) = static_cast<std::byte>(value);
    return payload;
}

/// Every beginning of a good packet: its last byte missing, its last two, ... None may be accepted, but for those that
/// lack at most `slack` bytes.
void expect_no_beginning_is_accepted(const char* format, const Bytes& whole, std::size_t slack = 0) {
    ASSERT_EQ(verdict_of(format, whole), ok);
    for (std::size_t bytes = 0; bytes + slack < whole.size(); ++bytes)
        EXPECT_NE(verdict_of(format, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes))), ok)
            << format << ", " << bytes << " bytes";
}

Bytes dune(const DuneHeader& header, std::size_t payload_bytes = 7184) {
    Bytes out(16 + payload_bytes);
    EXPECT_EQ(write_dune(header, pattern(payload_bytes), out), out.size());
    return out;
}

TEST(Dune, RoundTrip) {
    const DuneHeader header{.version = 0x2a,
                            .detector = 3,
                            .crate = 0x2f1,
                            .slot = 9,
                            .stream = 0xa5,
                            .sequence = 0xabc,
                            .timestamp = 0x0102030405060708};
    const Exact payload(dune(header));
    Fragment fragment;
    ASSERT_EQ(decode("dune", FormatOptions{}, payload, fragment), ok);
    EXPECT_EQ(fragment.number, header.timestamp);
    EXPECT_EQ(fragment.sequence, 0xabcU);
    EXPECT_EQ(fragment.header_source, dune_source(header));
    EXPECT_EQ(fragment.offset, 0U);
    EXPECT_EQ(fragment.bytes, 7184U);
    EXPECT_EQ(fragment.total, 7184U);
    EXPECT_TRUE(fragment.total_known);
    EXPECT_EQ(fragment.payload, payload.data() + 16);
    EXPECT_EQ(fragment.header_bytes, 16);
    EXPECT_EQ(find_format("dune")->make_context({}).sequence_bits, 12);
}

TEST(Dune, HeaderBitsAreWhereDetdataformatsPutsThem) {
    // A WIBEth frame: block_length 0x382, sequence 5, stream 0x81, slot 2, crate 7, detector 3, version 1.
    const Bytes bytes = dune({.version = 1, .detector = 3, .crate = 7, .slot = 2, .stream = 0x81, .sequence = 5});
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    EXPECT_EQ(word, 0x382ULL << 52 | 5ULL << 40 | 0x81ULL << 26 | 2ULL << 22 | 7ULL << 12 | 3ULL << 6 | 1);
    EXPECT_EQ(bytes.size(), 7200U);
    EXPECT_EQ(dune_source({.detector = 3, .crate = 7, .slot = 2, .stream = 0x81}),
              3U + (7U << 6) + (2U << 16) + (0x81U << 20));
}

TEST(Dune, ReservedBitsAndVersionDecideNothing) {
    Bytes bytes = dune({});
    bytes[4] |= std::byte{0xfc};  // bits 39..34
    EXPECT_EQ(verdict_of("dune", bytes), ok);
    EXPECT_EQ(verdict_of("dune", dune({.version = 63})), ok);
}

TEST(Dune, BlockLengthMustFitTheDatagram) {
    for (const std::uint32_t words : {0x382U, 0x383U})
        EXPECT_EQ(verdict_of("dune", dune({.block_length = words})), ok) << words;
    for (const std::uint32_t words : {0x381U, 0x384U, 0U, 0xfffU})
        EXPECT_EQ(verdict_of("dune", dune({.block_length = words})), Verdict::malformed_payload_length) << words;
    // A TDE16 frame, 8980 bytes, is not a whole number of words.
    for (const std::uint32_t words : {1120U, 1121U, 1122U})
        EXPECT_EQ(verdict_of("dune", dune({.block_length = words}, 8964)), ok) << words;
    for (const std::uint32_t words : {1119U, 1123U})
        EXPECT_EQ(verdict_of("dune", dune({.block_length = words}, 8964)), Verdict::malformed_payload_length) << words;
    EXPECT_EQ(verdict_of("dune", dune({}, 0)), ok);
    EXPECT_EQ(verdict_of("dune", dune({}, 8 * 4095)), ok);
    EXPECT_EQ(verdict_of("dune", dune({}, 8 * 4096)), Verdict::malformed_payload_length);  // 12 bits hold 0
    EXPECT_EQ(verdict_of("dune", dune({}), {.message_bytes_max = 7183}), Verdict::malformed_message_size);
    EXPECT_EQ(verdict_of("dune", Bytes(15)), Verdict::malformed_header);
    // What one word more in block_length lets through.
    expect_no_beginning_is_accepted("dune", dune({.sequence = 1}, 64), 15);
}

Bytes ess(const EssHeader& header, std::size_t payload_bytes = 100) {
    Bytes out((header.version == 0 ? 30 : 32) + payload_bytes);
    EXPECT_EQ(write_ess(header, pattern(payload_bytes), out), out.size());
    return out;
}

TEST(Ess, RoundTripOfBothVersions) {
    for (const std::uint8_t version : {0, 1}) {
        const EssHeader header{.version = version,
                               .type = 0x34,
                               .output_queue = 11,
                               .pulse_seconds = 0x89abcdef,
                               .pulse_ticks = 88'052'499,
                               .previous_seconds = 1,
                               .previous_ticks = 88'052'499,
                               .sequence = 0xdeadbeef};
        const Exact payload(ess(header));
        Fragment fragment;
        ASSERT_EQ(decode("ess", FormatOptions{.ess = {.packets_per_pulse = 21}}, payload, fragment), ok);
        EXPECT_TRUE(fragment.in_sequence);
        EXPECT_FALSE(fragment.total_known);
        EXPECT_EQ(fragment.total, 21U);
        ASSERT_EQ(decode("ess", FormatOptions{.ess = {.packets_per_pulse = 1}}, payload, fragment), ok);
        EXPECT_FALSE(fragment.in_sequence);
        const std::uint32_t header_bytes = version == 0 ? 30 : 32;
        EXPECT_EQ(fragment.number, std::uint64_t{0x89abcdef} << 32 | 88'052'499);
        EXPECT_EQ(fragment.sequence, 0xdeadbeefU);
        EXPECT_EQ(fragment.header_source, 11U);
        EXPECT_EQ(fragment.bytes, 100U);
        EXPECT_EQ(fragment.total, 100U);
        EXPECT_TRUE(fragment.total_known);
        EXPECT_EQ(fragment.header_bytes, header_bytes);
        EXPECT_EQ(fragment.payload, payload.data() + header_bytes);
    }
    EXPECT_EQ(find_format("ess")->make_context({}).sequence_bits, 32);
}

TEST(Ess, HeaderBytesAreWhereTheReadoutPutsThem) {
    const Bytes bytes = ess({.pulse_seconds = 0x01020304, .pulse_ticks = 0x00112233, .sequence = 0x0a0b0c0d}, 4);
    const std::array<std::uint8_t, 30> expected{0, 0, 'E', 'S', 'S',  0x30, 34,   0,    0,    0x0b,
                                                4, 3, 2,   1,   0x33, 0x22, 0x11, 0,    0,    0,
                                                0, 0, 0,   0,   0,    0,    0x0d, 0x0c, 0x0b, 0x0a};
    EXPECT_TRUE(test::same(bytes.data(), test::bytes_of(expected)));
}

TEST(Ess, HeartbeatIsControlAndNumbered) {
    for (const std::uint8_t version : {0, 1}) {
        Fragment fragment;
        const Exact payload(ess({.version = version, .output_queue = 7, .sequence = 42}, 0));
        EXPECT_EQ(decode("ess", FormatOptions{}, payload, fragment), Verdict::control);
        EXPECT_EQ(fragment.sequence, 42U);
        EXPECT_EQ(fragment.header_source, 7U);
    }
}

TEST(Ess, EveryFieldIsChecked) {
    const Bytes good = ess({});
    EXPECT_EQ(verdict_of("ess", good), ok);
    EXPECT_EQ(verdict_of("ess", with(good, 0, 1)), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("ess", with(good, 1, 2)), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("ess", with(good, 1, 255)), Verdict::malformed_header);
    for (const std::size_t at : {2U, 3U, 4U})
        EXPECT_EQ(verdict_of("ess", with(good, at, 'X')), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("ess", with(good, 5, 0xee)), ok) << "any instrument";
    EXPECT_EQ(verdict_of("ess", with(good, 6, 129)), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of("ess", with(good, 7, 1)), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of("ess", with(good, 8, 11)), ok);
    EXPECT_EQ(verdict_of("ess", with(good, 8, 12)), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("ess", with(good, 9, 0xff)), ok) << "the state of the clocks is the reader's business";
    EXPECT_EQ(verdict_of("ess", ess({.pulse_ticks = 88'052'500})), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("ess", ess({.previous_ticks = 88'052'500})), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("ess", good, {.message_bytes_max = 99}), Verdict::malformed_message_size);
    EXPECT_EQ(verdict_of("ess", with(ess({}, 1), 1, 1)), Verdict::malformed_payload_length) << "31 bytes of version 1";
    expect_no_beginning_is_accepted("ess", good);
}

/// MeerKAT's F-engine: eleven items, of which two matter here.
constexpr std::uint32_t timestamp_item = 0x1600;
constexpr std::uint32_t engine_item = 0x4101;

Bytes spead(const SpeadHeader& header, std::size_t payload_bytes = 1000) {
    Bytes out(spead_front_bytes(header) + payload_bytes);
    EXPECT_EQ(write_spead(header, pattern(payload_bytes), out), out.size());
    return out;
}

TEST(Spead, RoundTripOfBothFlavours) {
    for (const std::uint32_t bits : {48U, 40U}) {
        const SpeadHeader header{.address_bits = bits, .heap = 0xabcdef0123, .heap_bytes = 5000, .offset = 4000};
        const Exact payload(spead(header));
        Fragment fragment;
        ASSERT_EQ(decode("spead", FormatOptions{.spead = {.address_bits = bits}}, payload, fragment), ok);
        EXPECT_EQ(fragment.number, header.heap);
        EXPECT_EQ(fragment.offset, 4000U);
        EXPECT_EQ(fragment.bytes, 1000U);
        EXPECT_EQ(fragment.total, 5000U);
        EXPECT_TRUE(fragment.total_known);
        EXPECT_EQ(fragment.payload, payload.data() + 40);
        EXPECT_EQ(fragment.header_bytes, 40);
        EXPECT_EQ(verdict_of("spead", spead(header), {.spead = {.address_bits = 88 - bits}}), Verdict::malformed_header)
            << "the other flavour";
        EXPECT_EQ(find_format("spead")->make_context({.spead = {.address_bits = bits}}).number_bits, bits);
        EXPECT_EQ(verdict_of("spead", spead(header)), ok) << "without the option each packet says its flavour";
    }
}

TEST(Spead, HeaderBytesAreThoseOfMeerkat) {
    const std::array<SpeadItem, 7> items{{{timestamp_item, 0x1122334455}, {engine_item, 5}}};
    const Bytes bytes = spead({.heap = 7, .heap_bytes = 8192, .items = items}, 8192);
    const std::array<std::uint8_t, 16> expected{0x53, 4, 2, 6, 0, 0, 0, 11, 0x80, 1, 0, 0, 0, 0, 0, 7};
    EXPECT_TRUE(test::same(bytes.data(), test::bytes_of(expected)));
    EXPECT_EQ(bytes.size(), 96U + 8192);
    EXPECT_EQ(verdict_of("spead", bytes), ok);
}

TEST(Spead, EventAndSourceAreItemsOfTheSender) {
    const std::array<SpeadItem, 3> items{{{0, 9}, {timestamp_item, 0xffff00000001}, {engine_item, 63}}};
    const FormatOptions options{.spead = {.event_item = timestamp_item, .source_item = engine_item}};
    Fragment fragment;
    const Exact payload(spead({.heap = 7, .heap_bytes = 1000, .items = items}));
    ASSERT_EQ(decode("spead", options, payload, fragment), ok);
    EXPECT_EQ(fragment.number, 0xffff00000001U);
    EXPECT_EQ(fragment.header_source, 63U);
    EXPECT_TRUE(find_format("spead")->make_context(options).carries_source);
    EXPECT_FALSE(find_format("spead")->make_context({}).carries_source);

    const auto without = [&](std::span<const SpeadItem> some) {
        return verdict_of("spead", spead({.heap_bytes = 1000, .items = some}), options);
    };
    EXPECT_EQ(without(std::span(items).first(2)), Verdict::malformed_header);
    EXPECT_EQ(without(std::span(items).last(1)), Verdict::malformed_header);
    const std::array<SpeadItem, 2> addressed{{{timestamp_item, 1, false}, {engine_item, 1}}};
    EXPECT_EQ(without(addressed), Verdict::malformed_header) << "only immediate items count";
    const std::array<SpeadItem, 2> wide{{{timestamp_item, 1}, {engine_item, 1ULL << 32}}};
    EXPECT_EQ(without(wide), Verdict::malformed_source);
}

TEST(Spead, TheOrderOfItemsDoesNotMatter) {
    const std::array<SpeadItem, 2> more{{{timestamp_item, 77}, {engine_item, 5}}};
    const Bytes usual = spead({.heap = 9, .heap_bytes = 5000, .offset = 4000, .items = more});
    for (const std::uint32_t event_item : {1U, timestamp_item})
        for (const std::uint32_t source_item : {0U, 1U, engine_item}) {
            const FormatOptions options{.spead = {.event_item = event_item, .source_item = source_item}};
            std::array<std::size_t, 6> order{0, 1, 2, 3, 4, 5};
            do {
                Bytes mixed = usual;
                for (std::size_t i = 0; i < order.size(); ++i)
                    std::memcpy(&mixed[8 + 8 * i], &usual[8 + 8 * order[i]], 8);
                Fragment fragment;
                ASSERT_EQ(decode("spead", options, Exact(mixed), fragment), ok);
                EXPECT_EQ(fragment.number, event_item == 1 ? 9U : 77U);
                EXPECT_EQ(fragment.header_source, source_item == 0 ? 0U : source_item == 1 ? 9U : 5U);
                EXPECT_EQ(fragment.offset, 4000U);
                EXPECT_EQ(fragment.total, 5000U);
                EXPECT_EQ(fragment.bytes, 1000U);
            } while (std::ranges::next_permutation(order).found);
        }
}

TEST(Spead, OfTwoEqualItemsTheLastCounts) {
    const std::array<SpeadItem, 4> again{{{1, 8}, {2, 6000}, {3, 100}, {4, 200}}};
    const FormatOptions options{.spead = {.source_item = 1}};
    Fragment fragment;
    const Exact payload(spead({.heap = 9, .heap_bytes = 5000, .offset = 4000, .items = again}));
    ASSERT_EQ(decode("spead", options, payload, fragment), ok);
    EXPECT_EQ(fragment.number, 8U);
    EXPECT_EQ(fragment.header_source, 8U);
    EXPECT_EQ(fragment.total, 6000U);
    EXPECT_EQ(fragment.offset, 100U);
    EXPECT_EQ(fragment.bytes, 200U);
}

TEST(Spead, HeapsMayKeepTheirSizeToThemselves) {
    Fragment fragment;
    const Exact payload(spead({.heap = 1, .offset = 3000}));
    ASSERT_EQ(decode("spead", FormatOptions{}, payload, fragment), ok);
    EXPECT_FALSE(fragment.total_known);
    EXPECT_EQ(fragment.offset, 3000U);
    const FormatOptions fixed{.spead = {.heap_bytes = 4000}};
    ASSERT_EQ(decode("spead", fixed, payload, fragment), ok);
    EXPECT_TRUE(fragment.total_known);
    EXPECT_EQ(fragment.total, 4000U);
    EXPECT_EQ(find_format("spead")->make_context(fixed).message_bytes, 4000U);
    EXPECT_EQ(verdict_of("spead", spead({.heap_bytes = 4000}), fixed), ok);
    EXPECT_EQ(verdict_of("spead", spead({.heap_bytes = 5000}), fixed), Verdict::malformed_message_size);
    EXPECT_EQ(verdict_of("spead", spead({.offset = 3001}), fixed), Verdict::malformed_range);
    EXPECT_EQ(verdict_of("spead", spead({.offset = 9001}), {.message_bytes_max = 10000}),
              Verdict::malformed_message_size);
    EXPECT_EQ(verdict_of("spead", spead({.offset = 9000}), {.message_bytes_max = 10000}), ok);
}

TEST(Spead, Malformed) {
    const Bytes good = spead({.heap_bytes = 1000});
    EXPECT_EQ(verdict_of("spead", good), ok);
    for (const auto& [at, value] : {std::pair{0, 0x54}, {1, 3}, {2, 3}, {3, 5}, {2, 0}, {3, 8}, {6, 1}})
        EXPECT_EQ(verdict_of("spead", with(good, static_cast<std::size_t>(at), value)), Verdict::malformed_header)
            << at;
    EXPECT_EQ(verdict_of("spead", with(good, 4, 0xff)), ok) << "reserved";
    EXPECT_EQ(verdict_of("spead", with(good, 7, 2)), Verdict::malformed_header)
        << "an item that is needed is not counted";
    for (const std::size_t item : {8U, 24U, 32U})
        EXPECT_EQ(verdict_of("spead", with(good, item, 0)), Verdict::malformed_header) << "addressed, not immediate";
    Bytes unsized = with(good, 16, 0);
    EXPECT_EQ(verdict_of("spead", unsized), ok) << "an addressed heap size declares nothing";

    const auto heap = [](std::uint64_t offset, std::uint64_t total, std::size_t bytes) {
        return verdict_of("spead", spead({.heap_bytes = total, .offset = offset}, bytes));
    };
    EXPECT_EQ(heap(0, 100, 100), ok);
    EXPECT_EQ(heap(1, 100, 100), Verdict::malformed_range);
    EXPECT_EQ(heap((1ULL << 48) - 1, 100, 2), Verdict::malformed_range);
    EXPECT_EQ(heap(0, 0, 0), ok) << "an empty heap is whole";
    EXPECT_EQ(heap(0, 0, 1), Verdict::malformed_range);
    EXPECT_EQ(heap(5, 100, 0), Verdict::malformed_payload_length);
    EXPECT_EQ(heap(0, (16U << 20) + 1, 1), Verdict::malformed_message_size);
    EXPECT_EQ(heap(0, 1ULL << 40, 1), Verdict::malformed_message_size);
    EXPECT_EQ(verdict_of("spead", spead({}, 0)), Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of("spead", spead({.offset = 1ULL << 40})), Verdict::malformed_message_size);

    EXPECT_EQ(verdict_of("spead", spead({.heap_bytes = 1000, .payload_bytes = 1001})),
              Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of("spead", spead({.heap_bytes = 1000, .payload_bytes = (1ULL << 48) - 1})),
              Verdict::malformed_payload_length);
    EXPECT_EQ(verdict_of("spead", spead({.heap_bytes = 1000, .payload_bytes = 999})), ok) << "what follows is padding";
    expect_no_beginning_is_accepted("spead", spead({.heap_bytes = 100}, 100));
}

TEST(Spead, ItemsAreBounded) {
    const std::vector<SpeadItem> items(61, SpeadItem{0x1000, 1});
    EXPECT_EQ(verdict_of("spead", spead({.items = std::span(items).first(61)})), ok);
    const std::vector<SpeadItem> more(62, SpeadItem{0x1000, 1});
    EXPECT_EQ(verdict_of("spead", spead({.items = more})), Verdict::malformed_header);
    EXPECT_EQ(verdict_of("spead", with(with(spead({}), 6, 0xff), 7, 0xff)), Verdict::malformed_header);
}

TEST(Spead, StreamControlIsControl) {
    for (const std::uint64_t what : {0, 1, 2, 3, 99}) {
        const std::array<SpeadItem, 1> items{{{6, what}}};
        EXPECT_EQ(verdict_of("spead", spead({.heap_bytes = 8, .items = items}, 8)), Verdict::control);
        EXPECT_EQ(verdict_of("spead", spead({.items = items}, 0)), Verdict::control);
    }
    const std::array<SpeadItem, 1> addressed{{{6, 0, false}}};
    EXPECT_EQ(verdict_of("spead", spead({.heap_bytes = 8, .items = addressed}, 8)), ok);
}

TEST(Spead, OptionsAreChecked) {
    const FormatEntry* entry = find_format("spead");
    EXPECT_NO_THROW(static_cast<void>(entry->make_context({.spead = {.event_item = 0x7fffff}})));
    EXPECT_NO_THROW(static_cast<void>(entry->make_context({.spead = {.address_bits = 40, .event_item = 0x7fffff}})));
    for (const SpeadOptions& spead :
         {SpeadOptions{.address_bits = 32}, SpeadOptions{.event_item = 0x800000}, SpeadOptions{.event_item = 0},
          SpeadOptions{.address_bits = 48, .event_item = 0x8000}, SpeadOptions{.event_item = 3},
          SpeadOptions{.source_item = 0x800000}, SpeadOptions{.source_item = 6},
          SpeadOptions{.heap_bytes = (16U << 20) + 1}})
        EXPECT_THROW(static_cast<void>(entry->make_context({.spead = spead})), core::UsageError);
}

TEST(Readout, TooSmallABufferWritesNothing) {
    Bytes small(29);
    EXPECT_EQ(write_dune({}, Bytes(16), small), 0U);
    EXPECT_EQ(write_ess({}, {}, small), 0U);
    EXPECT_EQ(write_spead({}, {}, small), 0U);
    EXPECT_EQ(small, Bytes(29));
}

}  // namespace
}  // namespace weir::wire

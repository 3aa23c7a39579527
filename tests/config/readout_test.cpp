// The keys of DUNE, ESS and SPEAD streams: what they give, how they are printed, and every way in which they are
// wrong_stream.
#include "case.hpp"

namespace weir::config::test {
namespace {

TEST(ConfigReadout, KeysReachTheDecoder) {
    const auto context = [](const std::string& format, const std::string& keys) {
        const RunConfig run = parse_config(udp_with(format, keys), "t");
        return format_entry(run.streams[0]).make_context(format_options(run, run.streams[0]));
    };
    EXPECT_EQ(context("dune", "").sequence_bits, 12);
    EXPECT_EQ(context("ess", "packets_per_pulse = 1").sequence_bits, 32);
    EXPECT_FALSE(context("ess", "packets_per_pulse = 1").in_sequence);
    EXPECT_TRUE(context("ess", "").in_sequence);
    EXPECT_EQ(context("ess", "packets_per_pulse = 21").packets_per_message, 21U);
    const wire::FormatContext plain = context("spead", "");
    EXPECT_EQ(plain.number_bits, 48);
    EXPECT_EQ(plain.message_bytes, 0U);
    EXPECT_FALSE(plain.carries_source);
    const wire::FormatContext spead = context(
        "spead",
        "address_bits = 40\nevent_item = 0x1600\nsource_item = 0x4101\nheap_bytes = \"20MiB\"\nsource_by = \"header\"");
    EXPECT_EQ(spead.number_bits, 40);
    EXPECT_EQ(spead.spead.event_item, 0x1600U);
    EXPECT_EQ(spead.spead.source_item, 0x4101U);
    EXPECT_EQ(spead.message_bytes, 20U << 20);
    EXPECT_EQ(spead.message_bytes_max, 20U << 20) << "a fixed size raises the bound";
}

TEST(ConfigReadout, PrintedKeysReadBackTheSame) {
    for (const auto& [format, keys] :
         {std::pair{"dune", "source_by = \"header\"\nsource_ids = [0x0830003, 0x0930003]"}, std::pair{"ess", ""},
          std::pair{"spead", ""}, std::pair{"spead", "address_bits = 40\nevent_item = 0x7fffff\nheap_bytes = 4096"},
          std::pair{"spead", "source_by = \"header\"\nsource_item = 0x4101\nsource_ids = [3, 4]"}}) {
        const RunConfig run = parse_config(udp_with(format, keys), "t");
        EXPECT_TRUE(run == parse_config(print_config(run), "printed")) << print_config(run);
        EXPECT_FALSE(run == parse_config(udp_with("ejfat", ""), "t"));
    }
    EXPECT_FALSE(parse_config(udp_with("spead", "heap_bytes = 5"), "t") == parse_config(udp_with("spead", ""), "t"));
}

class ConfigReadoutError : public ConfigError {};

TEST_P(ConfigReadoutError, NamesLineKeyFoundAndAccepted) {
    expect_refused(GetParam());
}

const std::vector<Case> readout_cases{
    wrong_stream("PacketsPerPulse", "ess", "packets_per_pulse = 16385 #!", {"stream.packets_per_pulse", "0..16384"}),
    wrong_stream("PacketsPerPulseElsewhere", "dune", "packets_per_pulse = 1 #!",
                 {"stream.packets_per_pulse", "format = \"ess\""}),
    wrong_stream("AddressBits", "spead", "address_bits = 44 #!",
                 {"stream.address_bits", "found 44", "48 (SPEAD-64-48) or 40"}),
    wrong_stream("AddressBitsRange", "spead", "address_bits = 64 #!", {"stream.address_bits", "64"}),
    wrong_stream("AddressBitsElsewhere", "ess", "address_bits = 48 #!", {"stream.address_bits", "format = \"spead\""}),
    wrong_stream("EventItemWide", "spead", "event_item = 0x800000 #!", {"stream.event_item", "1..8388607"}),
    wrong_stream("EventItemWideForItsFlavour", "spead", "address_bits = 48\nevent_item = 0x8000 #!",
                 {"stream.event_item", "1..32767"}),
    wrong_stream("EventItemOfTheHeap", "spead", "event_item = 3 #!",
                 {"stream.event_item", "item 3", "the heap counter"}),
    wrong_stream("EventItemNull", "spead", "event_item = 0 #!", {"stream.event_item"}),
    wrong_stream("SourceItem", "spead", "source_item = 6 #!", {"stream.source_item", "item 6"}),
    wrong_stream("SourceItemElsewhere", "ejfat", "source_item = 9 #!", {"stream.source_item", "format = \"spead\""}),
    wrong_stream("HeapBytes", "spead", "heap_bytes = 0 #!", {"stream.heap_bytes"}),
    wrong_stream("HeapBytesElsewhere", "jungfrau", "heap_bytes = 9 #!", {"stream.heap_bytes", "format = \"spead\""}),
    wrong_stream("HeapBytesBeyondTheBound", "spead", "heap_bytes = 4096\nmax_message_bytes = 100 #!",
                 {"stream.max_message_bytes", "at least the 4KiB"}),
    Case{"NoSourceItem",
         udp_text,
         {{"[[stream]]", "[[stream]] #!"}, {"format = \"jungfrau\"", "format = \"spead\"\nsource_by = \"header\""}},
         {"stream.source_item: found nothing", "source_by = \"header\""}}};
INSTANTIATE_TEST_SUITE_P(Stream, ConfigReadoutError, testing::ValuesIn(readout_cases), case_name);

}  // namespace
}  // namespace weir::config::test

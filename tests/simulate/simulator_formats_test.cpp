// The simulator's detectors and declared formats: every message is there, as a receiver with the same options decodes
// it.
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "core/error.hpp"
#include "simulate/simulator.hpp"
#include "wire/network.hpp"

namespace weir::simulate {
namespace {

using Bytes = std::vector<std::byte>;

/// Sends everything, decodes it, and compares each message with what the simulator says it sent.
void expect_decodes(const SimulatorConfig& config, std::string_view format, const wire::FormatOptions& options) {
    Simulator simulator(config);
    const wire::FormatEntry* entry = wire::find_format(format);
    const wire::FormatContext context = entry->make_context(options);
    std::map<std::pair<std::uint64_t, std::uint32_t>, Bytes> messages;
    Bytes buffer(simulator.frame_bytes_max());
    Simulator::Frame frame;
    std::uint64_t bytes = 0;
    while (simulator.next(buffer, frame)) {
        const Bytes exact(buffer.begin(), buffer.begin() + frame.bytes);
        wire::Datagram datagram;
        ASSERT_EQ(wire::parse_frame(exact.data(), frame.bytes, frame.bytes, datagram), wire::ok);
        ASSERT_EQ(datagram.dport, simulator.endpoint(frame.source));
        datagram.lane = static_cast<std::uint8_t>(frame.source % 2);
        wire::Fragment fragment;
        wire::Verdict verdict = wire::Verdict::count_;
        entry->decode_burst(context, {&datagram, 1}, &fragment, &verdict);
        ASSERT_EQ(verdict, wire::ok);
        Bytes& message = messages[{fragment.number, frame.source}];
        message.resize(fragment.total);
        std::copy_n(fragment.payload, fragment.bytes, message.begin() + fragment.offset);
        bytes += fragment.bytes;
        if (context.carries_source && !config.one_port) continue;
        if (config.format == "declared") {
            EXPECT_EQ(fragment.header_source, config.source_id + frame.source);
        }
    }
    EXPECT_EQ(messages.size(), config.events * config.sources);
    EXPECT_EQ(bytes, simulator.account().message_bytes);
    for (const auto& [key, message] : messages) {
        Bytes expected(simulator.message_bytes(key.first, key.second));
        simulator.message_content(key.first, key.second, 0, expected);
        EXPECT_TRUE(message == expected) << format << " " << key.first << " " << key.second;
    }
}

TEST(SimulatorFormats, DetectorsInEveryReadout) {
    const SimulatorConfig base{.sources = 2, .events = 2};
    for (const std::uint32_t interfaces : {1U, 2U}) {
        SimulatorConfig config = base;
        config.interfaces = interfaces;
        const int option = static_cast<int>(interfaces);
        for (const std::uint32_t rows : {16U, 256U, 512U}) {
            config.rows = rows;
            expect_decodes(config, "jungfrau", {.interfaces = option, .sls = {.rows = rows}});
        }
        config.format = "moench";
        for (const std::uint32_t rows : {16U, 400U}) {
            config.rows = rows;
            expect_decodes(config, "moench", {.interfaces = option, .sls = {.rows = rows}});
        }
    }
    SimulatorConfig eiger = base;
    eiger.format = "eiger";
    for (const std::uint32_t bits : {4U, 12U, 32U}) {
        for (const bool tengiga : {true, false}) {
            eiger.bit_depth = bits;
            eiger.tengiga = tengiga;
            expect_decodes(eiger, "eiger", {.sls = {.bit_depth = bits, .tengiga = tengiga}});
        }
    }
}

TEST(SimulatorFormats, PartialReadoutShowsTheMiddleOfTheImage) {
    Simulator whole({.sources = 1, .events = 1});
    Simulator part({.sources = 1, .events = 1, .rows = 64});
    Bytes all(whole.message_bytes(1, 0));
    Bytes middle(part.message_bytes(1, 0));
    whole.message_content(1, 0, 0, all);
    part.message_content(1, 0, 0, middle);
    ASSERT_EQ(middle.size(), 64U * 2048);
    EXPECT_TRUE(std::equal(middle.begin(), middle.end(), all.begin() + (256 - 32) * 2048));
}

wire::DeclaredSpec declared() {
    wire::DeclaredSpec spec;
    spec.name = "mine";
    spec.header_bytes = 20;
    spec.event = wire::DeclaredField{.offset = 0, .bytes = 8};
    spec.source = wire::DeclaredField{.offset = 16, .bytes = 2};
    return spec;
}

TEST(SimulatorFormats, DeclaredInEveryWay) {
    SimulatorConfig config{.format = "declared", .sources = 3, .events = 20, .source_id = 9};
    config.one_port = true;
    const auto check = [&config](const wire::DeclaredSpec& spec) {
        config.declared = spec;
        expect_decodes(config, "declared", {.declared = spec});
    };
    check(declared());
    wire::DeclaredSpec indexed = declared();
    indexed.byte_order = wire::ByteOrder::big;
    indexed.index = wire::DeclaredField{.offset = 8, .bytes = 4, .mask = 0xffff00, .shift = 8};
    indexed.payload_bytes = 1000;
    indexed.total_bytes = 7001;
    check(indexed);
    indexed.total_bytes.reset();
    indexed.packets = 5;
    check(indexed);
    indexed.packets.reset();
    indexed.total = wire::DeclaredField{.offset = 12, .bytes = 4};
    check(indexed);
    wire::DeclaredSpec placed = declared();
    placed.offset = wire::DeclaredField{.offset = 8, .bytes = 4};
    placed.total = wire::DeclaredField{.offset = 12, .bytes = 4};
    config.mtu = 1500;
    check(placed);
}

/// The error names what is wrong.
void expect_refused(const SimulatorConfig& config, const std::string& part) {
    try {
        const Simulator simulator(config);
        ADD_FAILURE() << "accepted, without " << part;
    } catch (const core::UsageError& error) {
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
}

TEST(SimulatorFormats, ImpossibleOnesNameWhatIsAccepted) {
    expect_refused({.format = "moench", .rows = 100}, "steps of 16");
    expect_refused({.format = "eiger", .bit_depth = 10}, "4, 8, 12, 16 or 32");
    expect_refused({.format = "eiger", .first_event = 0}, "EIGER counts its frames from 1");
    expect_refused({.format = "eiger", .sources = 2, .interfaces = 2}, "--interfaces belongs to");
    expect_refused({.format = "ejfat", .rows = 8}, "belong to the formats jungfrau, moench and eiger");
    expect_refused({.format = "jungfrau", .bit_depth = 16}, "bit_depth");
    expect_refused({.format = "dune", .transport = SimulatedTransport::roce_send}, "--transport udp");
    expect_refused({.format = "moench", .mtu = 6475}, "6476 bytes");
    expect_refused({.format = "declared"}, "header_bytes");
    wire::DeclaredSpec spec = declared();
    spec.payload_bytes = 20000;
    expect_refused({.format = "declared", .declared = spec}, "never fragmented");
    spec = declared();
    spec.total = wire::DeclaredField{.offset = 8, .bytes = 2};
    spec.offset = wire::DeclaredField{.offset = 10, .bytes = 4};
    expect_refused({.format = "declared", .declared = spec, .bytes_max = 70000}, "holds numbers up to 65535");
}

}  // namespace
}  // namespace weir::simulate

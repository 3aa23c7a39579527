#include "simulate/simulator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "wire/format.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::simulate {
namespace {

using Bytes = std::vector<std::byte>;
using wire::Verdict;

struct Sent {
    Simulator::Frame frame;
    Bytes bytes;  ///< exact size, so that a sanitizer sees every read beyond
};

std::vector<Sent> all_of(Simulator& simulator) {
    std::vector<Sent> sent;
    Bytes buffer(simulator.frame_bytes_max());
    Simulator::Frame frame;
    while (simulator.next(buffer, frame)) {
        sent.push_back({frame, Bytes(buffer.begin(), buffer.begin() + frame.bytes)});
    }
    return sent;
}

wire::Datagram datagram_of(const Sent& sent) {
    wire::Datagram datagram;
    const auto bytes = static_cast<std::uint32_t>(sent.bytes.size());
    EXPECT_EQ(wire::parse_frame(sent.bytes.data(), bytes, bytes, datagram), wire::ok);
    return datagram;
}

struct Decoded {
    Verdict verdict;
    wire::Fragment fragment;
};

Decoded decode(const wire::Datagram& datagram, std::string_view format, int interfaces = 1) {
    const wire::FormatEntry* entry = wire::find_format(format);
    wire::FormatOptions options;
    options.interfaces = interfaces;
    const wire::FormatContext context = entry->make_context(options);
    Decoded decoded{};
    entry->decode_burst(context, {&datagram, 1}, &decoded.fragment, &decoded.verdict);
    return decoded;
}

using Key = std::pair<std::uint64_t, std::uint32_t>;  // event, source

/// What came of every message, as a naive receiver without faults collects it.
struct Collected {
    std::map<Key, Bytes> messages;
    std::map<Key, std::uint32_t> got;
    void add(const Key& key, std::uint32_t offset, std::uint32_t total, const std::byte* bytes, std::uint32_t count) {
        Bytes& message = messages[key];
        message.resize(std::max<std::size_t>(message.size(), total));
        std::copy_n(bytes, count, message.begin() + offset);
        got[key] += count;
    }
};

void expect_all_messages(Simulator& simulator, const Collected& collected, std::uint64_t events) {
    const SimulatorConfig& config = simulator.config();
    ASSERT_EQ(collected.messages.size(), events * config.sources);
    for (const auto& [key, message] : collected.messages) {
        const auto [event, source] = key;
        Bytes expected(simulator.message_bytes(event, source));
        simulator.message_content(event, source, 0, expected);
        EXPECT_EQ(collected.got.at(key), expected.size());
        EXPECT_TRUE(message == expected) << event << " " << source;
    }
}

TEST(Simulator, JungfrauDecodesToWhatWasMeant) {
    for (const std::uint32_t interfaces : {1U, 2U}) {
        Simulator simulator({.sources = 2, .events = 2, .first_event = 41, .interfaces = interfaces});
        Collected collected;
        for (const Sent& sent : all_of(simulator)) {
            const wire::Datagram datagram = datagram_of(sent);
            const auto [verdict, fragment] = decode(datagram, "jungfrau", static_cast<int>(interfaces));
            ASSERT_EQ(verdict, wire::ok);
            EXPECT_EQ(fragment.number, sent.frame.event);
            EXPECT_EQ(fragment.header_source, sent.frame.source / interfaces);
            EXPECT_EQ(datagram.dport, 50001 + sent.frame.source);
            EXPECT_EQ(datagram.src, 0x0a01000a + sent.frame.source);
            collected.add({fragment.number, sent.frame.source}, fragment.offset, fragment.total, fragment.payload,
                          fragment.bytes);
        }
        expect_all_messages(simulator, collected, 2);
        EXPECT_EQ(simulator.account().total().emitted, 2 * 2 * 128 / interfaces);
    }
}

TEST(Simulator, JungfrauPixelsAreLikeADetectors) {
    Simulator simulator({.sources = 1, .events = 1});
    Bytes frame(simulator.message_bytes(1, 0));
    simulator.message_content(1, 0, 0, frame);
    std::vector<std::uint16_t> pixels(frame.size() / 2);
    std::memcpy(pixels.data(), frame.data(), frame.size());
    const auto in_gain = [&](unsigned gain) {
        return std::ranges::count_if(pixels, [&](std::uint16_t pixel) { return pixel >> 14 == gain; });
    };
    EXPECT_EQ(in_gain(2), 0) << "no such gain";
    EXPECT_GT(in_gain(1), 100);
    EXPECT_LT(in_gain(1), 5000);
    std::ranges::nth_element(pixels, pixels.begin() + static_cast<int>(pixels.size() / 2));
    EXPECT_GT(pixels[pixels.size() / 2], 2450);
    EXPECT_LT(pixels[pixels.size() / 2], 3000);
}

TEST(Simulator, EjfatDecodesToWhatWasMeant) {
    for (const std::uint8_t lb : {0, 2, 3}) {
        Simulator simulator({.format = "ejfat",
                             .sources = 3,
                             .events = 20,
                             .first_event = 0xfffffffffffffff0,  // wraps on the way
                             .bytes_min = 0,
                             .bytes_max = 30000,
                             .lb_version = lb,
                             .vlan = 7});
        Collected collected;
        for (const Sent& sent : all_of(simulator)) {
            const wire::Datagram datagram = datagram_of(sent);
            EXPECT_LE(datagram.ip_bytes, 9000U);
            EXPECT_EQ(std::to_integer<int>(datagram.payload[0]), lb == 0 ? 0x10 : 'L');
            const auto [verdict, fragment] = decode(datagram, "ejfat");
            ASSERT_EQ(verdict, wire::ok);
            EXPECT_EQ(fragment.number, sent.frame.event);
            EXPECT_EQ(fragment.header_source, sent.frame.source);
            EXPECT_EQ(datagram.dport, 19522 + sent.frame.source);
            collected.add({fragment.number, fragment.header_source}, fragment.offset, fragment.total, fragment.payload,
                          fragment.bytes);
        }
        expect_all_messages(simulator, collected, 20);
    }
}

TEST(Simulator, MessagesAreDatagrams) {
    Simulator simulator({.format = "message", .sources = 2, .events = 30, .bytes_min = 0});
    EXPECT_EQ(simulator.config().bytes_max, 8972U);
    Collected collected;
    for (const Sent& sent : all_of(simulator)) {
        const auto [verdict, fragment] = decode(datagram_of(sent), "message");
        ASSERT_EQ(verdict, wire::ok);
        collected.add({sent.frame.event, sent.frame.source}, 0, fragment.total, fragment.payload, fragment.bytes);
    }
    expect_all_messages(simulator, collected, 30);
}

class SimulatorRoce : public testing::TestWithParam<std::tuple<SimulatedTransport, std::string, std::uint32_t>> {};

TEST_P(SimulatorRoce, DecodesToWhatWasMeant) {
    const auto [transport, format, mtu] = GetParam();
    const bool is_write = transport == SimulatedTransport::roce_write;
    Simulator simulator({.format = format,
                         .transport = transport,
                         .sources = 3,
                         .events = 25,
                         .first_event = 100,
                         .bytes_min = 0,
                         .bytes_max = 5000,
                         .mtu = mtu,
                         .first_psn = 0xfffff0});
    const std::uint32_t header_bytes = format == "ejfat" ? 20 : 0;
    struct QueuePair {
        std::uint32_t psn = 0xfffff0;
        Bytes message;
        std::uint32_t dma_length = 0;
    };
    std::map<std::uint32_t, QueuePair> queue_pairs;
    Collected collected;
    for (const Sent& sent : all_of(simulator)) {
        const wire::Datagram datagram = datagram_of(sent);
        EXPECT_EQ(datagram.dport, wire::roce_port);
        EXPECT_EQ(datagram.sport, 49152 + sent.frame.source);
        wire::RocePacket packet;
        ASSERT_EQ(wire::decode_roce(datagram, true, packet), wire::ok);
        EXPECT_EQ(packet.transport, wire::RoceTransport::uc);
        EXPECT_EQ(packet.is_write, is_write);
        EXPECT_EQ(packet.qp, 0x11 + sent.frame.source);
        QueuePair& pair = queue_pairs[packet.qp];
        EXPECT_EQ(packet.psn, pair.psn);
        pair.psn = (pair.psn + 1) & 0xffffff;
        const bool begins = packet.starts();
        const bool ends = packet.ends();
        EXPECT_EQ(begins, pair.message.empty());
        EXPECT_EQ(packet.has_immediate, ends);
        if (begins) {
            pair.dma_length = packet.dma_length;
        }
        if (!ends) {
            EXPECT_EQ(packet.bytes, mtu);
        }
        pair.message.insert(pair.message.end(), packet.payload, packet.payload + packet.bytes);
        if (ends) {
            EXPECT_EQ(packet.immediate, sent.frame.event);
            EXPECT_EQ(pair.dma_length, is_write ? pair.message.size() : 0U);
            ASSERT_GE(pair.message.size(), header_bytes);
            collected.add({sent.frame.event, sent.frame.source}, 0, 0, nullptr, 0);
            if (format == "ejfat") {
                wire::Datagram whole{.payload = pair.message.data(),
                                     .payload_bytes = static_cast<std::uint32_t>(pair.message.size())};
                const auto [verdict, fragment] = decode(whole, "ejfat");
                ASSERT_EQ(verdict, wire::ok);
                EXPECT_EQ(fragment.number, sent.frame.event);
                EXPECT_EQ(fragment.total, fragment.bytes);
            }
            const auto bytes = static_cast<std::uint32_t>(pair.message.size()) - header_bytes;
            collected.add({sent.frame.event, sent.frame.source}, 0, bytes, pair.message.data() + header_bytes, bytes);
            pair.message.clear();
        }
    }
    expect_all_messages(simulator, collected, 25);
}

INSTANTIATE_TEST_SUITE_P(All, SimulatorRoce,
                         testing::Combine(testing::Values(SimulatedTransport::roce_send,
                                                          SimulatedTransport::roce_write),
                                          testing::Values("message", "ejfat"), testing::Values(256U, 1024U, 4096U)));

TEST(Simulator, RoceWithoutImmediate) {
    Simulator simulator(
        {.format = "message", .transport = SimulatedTransport::roce_send, .events = 5, .immediate = false});
    for (const Sent& sent : all_of(simulator)) {
        wire::RocePacket packet;
        ASSERT_EQ(wire::decode_roce(datagram_of(sent), true, packet), wire::ok);
        EXPECT_FALSE(packet.has_immediate);
    }
}

SimulatorConfig faulty(std::uint64_t seed) {
    return {.format = "ejfat",
            .sources = 3,
            .events = 300,
            .seed = seed,
            .bytes_max = 40000,
            .drop = 0.05,
            .duplicate = 0.04,
            .truncate = 0.03,
            .reorder = 37};
}

TEST(Simulator, TheSameSeedGivesTheSameFrames) {
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE(seed);
    Simulator one(faulty(seed));
    Simulator two(faulty(seed));
    Simulator other(faulty(seed + 1));
    const std::vector<Sent> first = all_of(one);
    const std::vector<Sent> second = all_of(two);
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
        ASSERT_EQ(first[i].bytes, second[i].bytes) << i;
    }
    const std::vector<Sent> third = all_of(other);
    EXPECT_FALSE(std::ranges::equal(first, third, {}, &Sent::bytes, &Sent::bytes));
}

TEST(Simulator, TheAccountAddsUp) {
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE(seed);
    Simulator simulator(faulty(seed));
    const std::vector<Sent> sent = all_of(simulator);
    const SimulatorAccount& account = simulator.account();
    const SimulatorAccount::Source total = account.total();
    EXPECT_EQ(total.emitted, sent.size());
    EXPECT_EQ(total.generated - total.dropped + total.duplicated, total.emitted);
    EXPECT_GT(total.dropped, 0U);
    EXPECT_GT(total.duplicated, 0U);
    EXPECT_GT(total.truncated, 0U);

    // The same from the frames alone: which ranges came uncut, how often.
    std::uint64_t frame_bytes = 0;
    std::uint64_t truncated = 0;
    std::uint64_t duplicated = 0;
    std::map<Key, std::map<std::uint32_t, std::uint32_t>> arrived;
    for (const Sent& one : sent) {
        frame_bytes += one.bytes.size();
        wire::Datagram datagram;
        const auto bytes = static_cast<std::uint32_t>(one.bytes.size());
        const Verdict verdict = wire::parse_frame(one.bytes.data(), bytes, bytes, datagram);
        EXPECT_EQ(one.frame.truncated, verdict != wire::ok);
        if (verdict != wire::ok) {
            EXPECT_EQ(verdict, Verdict::malformed_ip_length);
            ++truncated;
            continue;
        }
        const auto fragment = decode(datagram, "ejfat").fragment;
        const bool again =
            !arrived[{one.frame.event, one.frame.source}].emplace(fragment.offset, fragment.bytes).second;
        duplicated += again ? 1 : 0;
    }
    EXPECT_EQ(frame_bytes, total.frame_bytes);
    EXPECT_EQ(truncated, total.truncated);
    EXPECT_LE(duplicated, total.duplicated);
    EXPECT_GE(duplicated + truncated, total.duplicated) << "a copy of a cut packet is no duplicate";

    std::uint64_t whole = 0;
    std::uint64_t empty = 0;
    for (std::uint64_t event = 1; event <= 300; ++event) {
        bool complete = true;
        bool any = false;
        for (std::uint32_t source = 0; source < 3; ++source) {
            std::uint32_t got = 0;
            for (const auto& [offset, bytes] : arrived[{event, source}]) {
                got += bytes;
                any = true;
            }
            complete = complete && got == simulator.message_bytes(event, source);
        }
        whole += complete ? 1 : 0;
        empty += any ? 0 : 1;
    }
    EXPECT_EQ(account.events, 300U);
    EXPECT_EQ(account.events_whole, whole);
    EXPECT_EQ(account.events_damaged, 300 - whole);
    EXPECT_EQ(account.events_empty, empty);
    EXPECT_GT(whole, 0U);
    EXPECT_LT(whole, 300U);
}

TEST(Simulator, ReorderingIsBoundedAndReal) {
    for (const std::uint32_t bound : {1U, 10U, 500U}) {
        // One packet per message and a single source: the event number is the place in the original order.
        SimulatorConfig config{.format = "message", .events = 3000, .bytes_max = 10, .reorder = bound};
        Simulator simulator(config);
        std::int64_t place = 0;
        std::int64_t farthest = 0;
        for (const Sent& sent : all_of(simulator)) {
            const std::int64_t moved = place++ - static_cast<std::int64_t>(sent.frame.event - config.first_event);
            EXPECT_LE(std::abs(moved), bound);
            farthest = std::max(farthest, std::abs(moved));
        }
        EXPECT_EQ(place, 3000);
        EXPECT_GE(farthest, (bound + 1) / 2);
    }
}

TEST(Simulator, FramesAreDueInOrderAndOnTime) {
    Simulator simulator({.format = "ejfat", .sources = 2, .events = 50, .bytes_min = 20000, .reorder = 20});
    double last = 0;
    for (const Sent& sent : all_of(simulator)) {
        EXPECT_GE(sent.frame.due_events, last);
        last = sent.frame.due_events;
    }
    EXPECT_GT(last, 49);
    EXPECT_LT(last, 50);
}

TEST(Simulator, StopEndsWithTheEvent) {
    for (const std::uint64_t after : {0U, 1U, 100U, 128U, 129U}) {
        Simulator simulator({.reorder = 10});
        Bytes buffer(simulator.frame_bytes_max());
        std::uint32_t bytes = 0;
        for (std::uint64_t i = 0; i < after; ++i) {
            ASSERT_TRUE(simulator.next(buffer, bytes));
        }
        simulator.stop();
        while (simulator.next(buffer, bytes)) {
        }
        const SimulatorAccount& account = simulator.account();
        EXPECT_EQ(account.total().emitted, account.events * 128) << after;
        EXPECT_EQ(account.events_whole, account.events) << after;
        EXPECT_LE(account.events, after / 128 + 1) << after;
    }
}

TEST(Simulator, EverythingDroppedIsEmptyEvents) {
    Simulator simulator({.events = 3, .drop = 1});
    EXPECT_TRUE(all_of(simulator).empty());
    EXPECT_EQ(simulator.account().events_empty, 3U);
    EXPECT_EQ(simulator.account().events_damaged, 3U);
    EXPECT_EQ(simulator.account().total().dropped, 3 * 128U);
}

TEST(Simulator, RefusesWhatContradictsItself) {
    const auto error_of = [](SimulatorConfig config) -> std::string {
        try {
            Simulator simulator(config);
        } catch (const core::UsageError& error) {
            return error.what();
        }
        return "no error";
    };
    const std::string message = "message";
    const std::string ejfat = "ejfat";
    const auto send = SimulatedTransport::roce_send;
    const std::vector<std::pair<SimulatorConfig, std::string>> cases{
        {{.sources = 0}, "--sources 0"},
        {{.sources = 3, .interfaces = 2}, "--sources 3"},
        {{.interfaces = 3}, "--interfaces 3"},
        {{.format = ejfat, .sources = 2, .interfaces = 2}, "--interfaces"},
        {{.format = "dune", .transport = send}, "--format dune"},
        {{.lb_version = 2}, "--lb"},
        {{.format = ejfat, .lb_version = 4}, "--lb 4"},
        {{.re_version = 2}, "--re"},
        {{.format = ejfat, .re_version = 3}, "--re 3"},
        {{.format = message, .transport = send, .mtu = 1500}, "--mtu 1500"},
        {{.format = message, .transport = send, .mtu = 128}, "--mtu 128"},
        {{.mtu = 1500}, "--mtu 1500"},
        {{.format = ejfat, .mtu = 100}, "--mtu 100"},
        {{.format = message, .bytes_max = 9000}, "--bytes 9000"},
        {{.format = ejfat, .bytes_min = 11, .bytes_max = 10}, "--bytes-min 11"},
        {{.format = ejfat, .bytes_max = 0xffffffff}, "--bytes 4294967295"},
        {{.sources = 2, .port = 65535}, "--port 65535"},
        {{.format = message, .transport = send, .port = 5000}, "--port"},
        {{.format = message, .transport = send, .first_psn = 1U << 24}, "--first-psn"},
        {{.format = message, .transport = send, .queue_pair = 1}, "--qp 1"},
        {{.vlan = 4096}, "--vlan"},
        {{.drop = 1.5}, "--drop 1.5"},
        {{.drop = 1}, "--drop 1 without --events"},
        {{.duplicate = -0.1}, "--duplicate -0.1"},
        {{.truncate = 2}, "--truncate 2"},
        {{.reorder = 2U << 20}, "--reorder"},
    };
    for (const auto& [config, text] : cases) {
        EXPECT_NE(error_of(config).find(text), std::string::npos) << text << ": " << error_of(config);
    }
}

}  // namespace
}  // namespace weir::simulate

// What is received becomes runs that verify: of weir's own streams the same events, of other senders what they sent;
// and what cannot be understood is counted.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/error.hpp"
#include "feed.hpp"
#include "reduce/pack/packer.hpp"
#include "store/run_reader.hpp"
#include "stream/receiver.hpp"
#include "stream/sink.hpp"
#include "temporary_directory.hpp"

namespace weir::stream {
namespace {

using reduce::pack::Codec;
using std::chrono::milliseconds;
using test::FedEvent;
using weir::test::TemporaryDirectory;

/// Nobody listens there; messages are handed over directly.
constexpr auto nowhere = "tcp://127.0.0.1:9";

/// All payloads of a run, by event; fails the test unless the run verifies.
std::map<std::uint64_t, std::pair<store::EventInfo, std::vector<std::byte>>> read_run(const std::string& path) {
    std::map<std::uint64_t, std::pair<store::EventInfo, std::vector<std::byte>>> out;
    const store::RunReader run(path);
    store::ScanHooks hooks;
    std::vector<std::byte> payload;
    hooks.begin = [&](const store::EventInfo&) { payload.clear(); };
    hooks.payload = [&](std::span<const std::byte> bytes) {
        payload.insert(payload.end(), bytes.begin(), bytes.end());
    };
    hooks.end = [&](const store::EventInfo& event) { out[event.id] = {event, payload}; };
    const store::Verification result = run.scan(hooks);
    EXPECT_TRUE(result.verified) << (result.problems.empty() ? "" : result.problems.front());
    return out;
}

std::vector<std::byte> all_of(const FedEvent& event) {
    std::vector<std::byte> out;
    for (const auto& source : event.sources) out.insert(out.end(), source.begin(), source.end());
    return out;
}

/// Images, packed and plain, of which one misses some bytes, and an event that is no image.
std::vector<FedEvent> mixed_events() {
    std::vector<FedEvent> events;
    for (unsigned id = 0; id < 4; ++id) {
        FedEvent event;
        event.id = 50 + id;
        event.content = store::Content::received;
        for (unsigned source = 0; source < 2; ++source)
            event.sources.push_back(test::as_bytes(test::noise(std::size_t{1024} * 64, id * 10 + source)));
        if (id % 2 == 0) event.codec = Codec::bitshuffle_lz4;
        if (id == 3) event.missing = {{{0, 4}, {100, 8193}}, {{131'000, 131'072}}};
        events.push_back(event);
    }
    FedEvent bytes;
    bytes.id = 90;
    bytes.content = store::Content::received;
    bytes.sources = {std::vector<std::byte>(10, std::byte{1}), std::vector<std::byte>(77, std::byte{2})};
    events.push_back(bytes);
    return events;
}

TEST(Receiver, WhatWeirSendsIsTheSameRunAgain) {
    const TemporaryDirectory folder;
    Sink::Config config;
    config.listen = {"tcp://127.0.0.1:*"};
    config.wait = true;
    config.start_timeout = milliseconds(0);
    config.linger = milliseconds(10'000);
    config.run = 12;
    config.name = "det";
    config.start_json = test::jungfrau_json();
    Sink sink(config);
    const std::vector<FedEvent> events = mixed_events();
    Receiver receiver(sink.consumers().front().address(), folder.path());
    std::thread feeding([&] {
        for (const FedEvent& event : events) test::feed(sink, event);
        sink.finish_data();
    });
    while (receiver.account().series.empty() || !receiver.account().series.back().ended)
        ASSERT_TRUE(receiver.receive(milliseconds(10'000)));
    feeding.join();

    const SeriesAccount& series = receiver.account().series.front();
    EXPECT_EQ(series.received, 5U);
    EXPECT_EQ(series.incomplete, 1U);
    EXPECT_EQ(series.missing, 0U);
    EXPECT_EQ(series.announced, 5U);
    EXPECT_EQ(series.dropped, 0U);
    EXPECT_EQ(series.path, (folder / "det-12").string());
    std::string why;
    EXPECT_EQ(series.lossless(why), "no");  // one event is incomplete
    const auto found = read_run(series.path);
    ASSERT_EQ(found.size(), 5U);
    for (const FedEvent& event : events) {
        const auto& [info, payload] = found.at(event.id);
        if (event.missing.empty()) {
            EXPECT_EQ(payload, all_of(event));
            EXPECT_TRUE(info.complete);
            continue;
        }
        EXPECT_FALSE(info.complete);
        EXPECT_EQ(info.sources[0].missing.size(), 2U);
        EXPECT_EQ(info.sources[0].missing[1].offset, 100U);
        EXPECT_EQ(info.sources[0].missing[1].bytes, 8093U);
        std::vector<std::byte> came = all_of(event);
        came.erase(came.begin() + 131'072 + 131'000, came.end());
        came.erase(came.begin() + 100, came.begin() + 8193);
        came.erase(came.begin(), came.begin() + 4);
        EXPECT_EQ(payload, came);
        EXPECT_EQ(info.sources[1].packets, 7U);
        EXPECT_EQ(info.sources[1].last_ns - info.sources[1].first_ns, 500);
    }
    const store::RunReader run(series.path);
    EXPECT_EQ(run.start()["start"]["config"]["stream"][0]["format"], "jungfrau");
    EXPECT_EQ(run.start()["start"]["stream"]["series_id"], 12);
}

/// A sender as the standard describes one.
struct Foreign {
    CborWriter out;
    bool self_described = false;
    std::string start_json;
    std::vector<std::byte> pixels = test::as_bytes(test::noise(std::size_t{100} * 30, 5));

    std::vector<std::byte> done() {
        std::vector<std::byte> bytes(out.written().begin(), out.written().end());
        out.clear();
        return bytes;
    }
    void ids(std::string_view type, std::uint64_t keys, std::uint64_t series = 3) {
        if (self_described) out.tag(55799);
        out.map(keys + 3);
        out.text("type");
        out.text(type);
        out.text("series_id");
        out.integer(series);
        out.text("series_unique_id");
        out.text("01H../x y");
    }
    std::vector<std::byte> start(std::uint64_t images, std::uint64_t series = 3) {
        ids("start", start_json.empty() ? 2 : 3, series);
        if (!start_json.empty()) {
            out.text("user_data");
            out.map(1);
            out.text("start_json");
            out.text(start_json);
        }
        out.text("number_of_images");
        out.integer(images);
        out.text("image_dtype");
        out.text("uint16");
        return done();
    }
    std::vector<std::byte> end(const std::vector<std::uint64_t>& dropped = {}) {
        ids("end", dropped.empty() ? 0 : 1);
        if (dropped.empty()) return done();
        out.text("user_data");
        out.map(1);
        out.text("dropped");
        out.map(dropped.size());
        for (const std::uint64_t count : dropped) {
            out.text("cause");
            out.integer(count);
        }
        return done();
    }
    std::vector<std::byte> image(std::uint64_t id, std::optional<Codec> codec = {}, std::uint64_t rows = 30,
                                 std::uint64_t series = 3) {
        ids("image", 2, series);
        out.text("image_id");
        out.integer(id);
        out.text("data");
        out.map(2);
        for (const char* channel : {"threshold_1", "threshold_2"}) {
            out.text(channel);
            out.tag(40);
            out.array(2);
            out.array(2);
            out.integer(rows);
            out.integer(100);
            out.tag(69);
            if (codec) {
                reduce::pack::Packer packer({*codec, 1, 2, false}, pixels.size());
                std::vector<std::byte> packed(packer.bound(pixels.size()));
                packed.resize(packer.pack(pixels, packed));
                out.tag(56500);
                out.array(3);
                out.text(*codec == Codec::bitshuffle_lz4 ? "bslz4" : "bszstd");
                out.integer(2);
                out.bytes(packed);
            } else {
                out.bytes(pixels);
            }
        }
        return done();
    }
};

TEST(Receiver, TakesTheStreamsOfOtherSenders) {
    const TemporaryDirectory folder;
    Foreign sender;
    Receiver receiver(nowhere, folder.path());
    receiver.take(sender.start(3));
    receiver.take(sender.image(0));
    receiver.take(sender.image(1, Codec::bitshuffle_lz4));
    receiver.take(sender.image(2, Codec::bitshuffle_zstd));
    receiver.take(sender.end());
    const SeriesAccount& series = receiver.account().series.front();
    std::string why;
    EXPECT_EQ(series.lossless(why), "yes") << why;
    const auto found = read_run(series.path);
    ASSERT_EQ(found.size(), 3U);
    std::vector<std::byte> both = sender.pixels;
    both.insert(both.end(), sender.pixels.begin(), sender.pixels.end());
    for (const auto& [id, event] : found) {
        EXPECT_EQ(event.first.sources.size(), 2U);
        EXPECT_EQ(event.second, both);
    }
    EXPECT_EQ(series.path, (folder / "01H.._x_y").string());  // no path of the sender's choice
}

TEST(Receiver, ASenderThatContradictsItselfProvesNothing) {
    const TemporaryDirectory folder;
    Foreign sender;
    Receiver receiver(nowhere, folder.path());
    receiver.take(sender.start(2));
    for (std::uint64_t id = 0; id < 3; ++id) receiver.take(sender.image(id));
    receiver.take(sender.end());
    std::string why;
    EXPECT_EQ(receiver.account().series.front().lossless(why), "unknown");
    EXPECT_EQ(why, "the sender of series 3 says that it had 2 events, and 3 came");
}

TEST(Receiver, CountsOfWhatWasDroppedDoNotWrap) {
    const TemporaryDirectory folder;
    Foreign sender;
    Receiver receiver(nowhere, folder.path());
    receiver.take(sender.start(1));
    receiver.take(sender.image(0));
    receiver.take(sender.end({std::uint64_t{1} << 63U, std::uint64_t{1} << 63U}));
    const SeriesAccount& series = receiver.account().series.front();
    std::string why;
    EXPECT_EQ(series.dropped, UINT64_MAX);
    EXPECT_EQ(series.lossless(why), "no");
}

TEST(Receiver, TheTagThatSaysThatItIsCborIsTakenOff) {
    const TemporaryDirectory folder;
    Foreign sender;
    sender.self_described = true;
    Receiver receiver(nowhere, folder.path());
    receiver.take(sender.start(1));
    receiver.take(sender.image(0, Codec::bitshuffle_lz4));
    receiver.take(sender.end());
    EXPECT_EQ(receiver.account().malformed, 0U);
    EXPECT_EQ(receiver.account().events(), 1U);
    std::string why;
    EXPECT_EQ(receiver.account().series.front().lossless(why), "yes") << why;
}

TEST(Receiver, WhenTheDiskFailsTheAccountSaysSo) {
    const TemporaryDirectory folder;
    Foreign sender;
    Receiver receiver(nowhere, folder.path());
    receiver.take(sender.start(2));
    receiver.take(sender.image(0));
    receiver.fail("cannot write x: No space left on device");
    receiver.finish();
    std::vector<std::string> why;
    EXPECT_EQ(receiver.account().lossless(why), "no");
    EXPECT_EQ(why.front(), "cannot write x: No space left on device");
    EXPECT_EQ(receive_json(receiver.account())["error"], why.front());
    const SeriesAccount& series = receiver.account().series.front();
    EXPECT_EQ(series.received, 0U) << "it was in a buffer";
    EXPECT_EQ(series.unwritten, 1U);
    EXPECT_EQ(receive_json(receiver.account())["series"][0]["unwritten"], 1);
    std::string its_why;
    EXPECT_EQ(series.lossless(its_why), "no");
    EXPECT_EQ(its_why, "1 events of series 3 came and could not be written: cannot write x: No space left on device");
}

/// As a weir sends it: the image id counts, and the event has a number of its own.
std::vector<std::byte> own_event(std::uint64_t image_id, std::uint64_t number, std::uint32_t epoch = 0) {
    store::EventInfo event;
    event.id = number;
    event.epoch = epoch;
    event.complete = true;
    event.payload_bytes = 4;
    event.sources.resize(1);
    event.sources[0].state = store::SourceState::complete;
    event.sources[0].declared_bytes = event.sources[0].received_bytes = 4;
    CborWriter own;
    put_event_head(own, "event", {3, "01H../x y", "", "{}", 0}, image_id, event);
    own.map(1);
    own.text("0");
    own.bytes(std::vector<std::byte>(4, std::byte{7}));
    return {own.written().begin(), own.written().end()};
}

struct Numbered {
    std::uint64_t image_id;
    std::uint64_t number;
    std::uint32_t epoch = 0;
};

SeriesAccount received_of(const std::vector<Numbered>& events, const TemporaryDirectory& folder) {
    Foreign sender;
    Receiver receiver(nowhere, folder.path());
    receiver.take(sender.start(0));
    for (const Numbered& one : events) receiver.take(own_event(one.image_id, one.number, one.epoch));
    receiver.finish();
    EXPECT_EQ(receiver.account().malformed, 0U);
    const store::RunReader run(receiver.account().series.front().path);
    std::uint64_t there = 0;
    store::ScanHooks hooks;
    hooks.end = [&there](const store::EventInfo&) { ++there; };
    EXPECT_TRUE(run.scan(hooks).verified);
    EXPECT_EQ(there, receiver.account().events());
    return receiver.account().series.front();
}

TEST(Receiver, AnEventUnderTwoImageIdsIsAConflict) {
    for (const std::uint64_t apart : {1U, 5U}) {
        const TemporaryDirectory folder;
        const SeriesAccount series = received_of({{0, 70}, {1, 71}, {2, 70}, {3, 70 + apart * 2}, {4, 71}}, folder);
        EXPECT_EQ(series.conflicts, 2U);
        EXPECT_EQ(series.received, 3U);
        EXPECT_EQ(series.missing, 0U);
        std::string why;
        EXPECT_EQ(series.lossless(why), "no");
        EXPECT_NE(why.find("2 messages of series 3 contradict others"), std::string::npos) << why;
    }
}

TEST(Receiver, AnImageIdForTwoEventsIsAConflict) {
    const TemporaryDirectory folder;
    const SeriesAccount series = received_of({{0, 70}, {1, 71}, {1, 72}, {0, 73}}, folder);
    EXPECT_EQ(series.conflicts, 2U);
    EXPECT_EQ(series.refused, 0U);
    EXPECT_EQ(series.received, 2U);
}

TEST(Receiver, WhatComesTwiceOrLateIsNoConflict) {
    const TemporaryDirectory folder;
    const SeriesAccount series = received_of({{0, 70}, {2, 72}, {2, 72}, {1, 71}, {3, 3}, {4, 2}}, folder);
    EXPECT_EQ(series.conflicts, 0U);
    EXPECT_EQ(series.refused, 2U);
    EXPECT_EQ(series.received, 4U);
}

TEST(Receiver, EpochsHaveNumbersOfTheirOwn) {
    const TemporaryDirectory folder;
    EXPECT_EQ(received_of({{0, 70}, {1, 70, 1}, {2, 71, 1}, {3, 69}}, folder).conflicts, 0U);
}

TEST(SeenNumbers, AreThoseOfASet) {
    EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& numbers) {
        SeenNumbers seen;
        std::set<SeenNumbers::Number> reference;
        for (const auto& [epoch, number] : numbers) {
            const SeenNumbers::Number one{epoch % 3, number % 40};
            RC_ASSERT(seen.has(one) == reference.contains(one));
            if (reference.insert(one).second) seen.add(one);
        }
        for (std::uint64_t epoch = 0; epoch < 4; ++epoch)
            for (std::uint64_t number = 0; number < 42; ++number)
                RC_ASSERT(seen.has({epoch, number}) == reference.contains({epoch, number}));
    }));
}

TEST(SeenNumbers, ForgetTheLowestAndTakeItForSeen) {
    SeenNumbers seen(2);
    for (const std::uint64_t number : {10U, 20U, 30U}) seen.add({1, number});
    EXPECT_TRUE(seen.has({1, 5})) << "nobody knows any more";
    EXPECT_TRUE(seen.has({0, 500}));
    EXPECT_TRUE(seen.has({1, 10}));
    EXPECT_FALSE(seen.has({1, 11}));
    EXPECT_TRUE(seen.has({1, 30}));
    seen.add({1, UINT64_MAX});
    EXPECT_TRUE(seen.has({1, UINT64_MAX}));
}

TEST(Receiver, NestingInATextOfTheSendersEndsNothing) {
    for (const std::size_t levels : {std::size_t{60}, std::size_t{100'000}}) {
        const TemporaryDirectory folder;
        Foreign sender;
        const std::string closed(levels, ']');
        sender.start_json = R"({"a":")" + closed + R"(","b":)" + std::string(levels, '[') + closed + "}";
        Receiver receiver(nowhere, folder.path());
        receiver.take(sender.start(1));
        receiver.take(sender.image(0));
        receiver.take(sender.end());
        const store::RunReader run(receiver.account().series.front().path);
        EXPECT_EQ(run.start()["start"].contains("b"), levels == 60) << run.start().dump();
    }
}

TEST(Receiver, GapsOfNumbersAreMissing) {
    const TemporaryDirectory folder;
    Foreign sender;
    Receiver receiver(nowhere, folder.path());
    receiver.take(sender.start(10));
    for (const std::uint64_t id : {0, 1, 4, 4, 3, 6}) receiver.take(sender.image(id));
    receiver.take(sender.end());
    const SeriesAccount& series = receiver.account().series.front();
    EXPECT_EQ(series.received, 4U);
    EXPECT_EQ(series.refused, 2U);
    EXPECT_EQ(series.missing, 6U);  // 2, 3, 5, 7, 8, 9
    std::string why;
    EXPECT_EQ(series.lossless(why), "no");
    EXPECT_EQ(read_run(series.path).size(), 4U);
}

TEST(Receiver, WithoutTotalsOrAnEndNothingIsProven) {
    const TemporaryDirectory folder;
    Foreign sender;
    Receiver receiver(nowhere, folder.path());
    receiver.take(sender.start(0));
    receiver.take(sender.image(0));
    receiver.take(sender.start(0));  // again, to who comes back: no other series
    receiver.take(sender.image(1));
    receiver.take(sender.end());
    receiver.take(sender.start(2, 4));
    receiver.take(sender.image(0, {}, 30, 4));
    receiver.take(sender.image(1, {}, 30, 4));
    receiver.finish();
    ASSERT_EQ(receiver.account().series.size(), 2U);
    std::string why;
    EXPECT_EQ(receiver.account().series[0].lossless(why), "unknown");
    EXPECT_NE(why.find("how many"), std::string::npos);
    EXPECT_EQ(receiver.account().series[1].lossless(why), "unknown");
    EXPECT_EQ(read_run(receiver.account().series[0].path).size(), 2U);
    EXPECT_EQ(read_run(receiver.account().series[1].path).size(), 2U);
    EXPECT_TRUE(receiver.account().series[1].path.ends_with("-2"));  // the same name is taken
}

TEST(Receiver, CountsWhatItCannotUnderstand) {
    const TemporaryDirectory folder;
    Foreign sender;
    Receiver receiver(nowhere, folder.path());
    receiver.take({});
    receiver.take(std::as_bytes(std::span("not CBOR", 8)));
    receiver.take(sender.image(0, {}, 31));  // a row more than there are bytes
    receiver.take(sender.start(0));
    auto torn = sender.image(0, Codec::bitshuffle_lz4);
    // The length of the first block, after the chunk's header, which has the size of a block: 8192.
    const std::array<std::byte, 4> block{std::byte{0}, std::byte{0}, std::byte{0x20}, std::byte{0}};
    const auto header = std::search(torn.begin(), torn.end(), block.begin(), block.end());
    ASSERT_NE(header, torn.end());
    header[block.size()] = std::byte{0x7f};
    receiver.take(torn);
    sender.ids("surprise", 0);
    receiver.take(sender.done());
    receiver.finish();
    EXPECT_EQ(receiver.account().malformed, 3U);
    EXPECT_EQ(receiver.account().unknown, 1U);
    EXPECT_EQ(receiver.account().problems.size(), 4U) << receive_json(receiver.account()).dump(1);
    EXPECT_EQ(receiver.account().series.front().refused, 1U);
    std::vector<std::string> why;
    EXPECT_EQ(receiver.account().lossless(why), "no");
}

// A hundred bytes that say that they are a GiB, which would be taken before they are looked at.
TEST(Receiver, AnImageIsNotBelievedToBeMoreThanItsBytesCanHold) {
    for (const char* codec : {"bslz4", "bszstd", "lz4"}) {
        Foreign sender;
        sender.ids("image", 2);
        sender.out.text("image_id");
        sender.out.integer(0);
        sender.out.text("data");
        sender.out.map(1);
        sender.out.text("threshold_1");
        sender.out.tag(40);
        sender.out.array(2);
        sender.out.array(2);
        sender.out.integer(1 << 14);
        sender.out.integer(1 << 15);
        sender.out.tag(69);
        sender.out.tag(56500);
        sender.out.array(3);
        sender.out.text(codec);
        sender.out.integer(2);
        std::vector<std::byte> packed(40);
        packed[4] = std::byte{0x40};  // 2^30, in 64 bits
        packed[10] = std::byte{0x20};
        sender.out.bytes(packed);
        std::string problem;
        EXPECT_FALSE(read_message(sender.done(), problem).has_value()) << codec;
        EXPECT_NE(problem.find("claims more bytes"), std::string::npos) << codec << ": " << problem;
    }
}

/// One message of each kind, changed in some places: whatever comes out of it, the run verifies.
TEST(Receiver, ChangedMessagesNeverMakeARunThatDoesNotVerify) {
    Foreign sender;
    std::vector<std::vector<std::byte>> messages{sender.start(2), sender.image(0),
                                                 sender.image(1, Codec::bitshuffle_lz4), sender.end()};
    store::EventInfo event;
    event.complete = false;
    event.cause = store::Cause::timeout;
    event.sources.resize(1);
    event.sources[0].state = store::SourceState::partial;
    event.sources[0].declared_bytes = 40;
    event.sources[0].received_bytes = 30;
    event.sources[0].missing = {{4, 10}};
    CborWriter own;
    put_event_head(own, "event", {3, "01H../x y", "", "{}", 0}, 2, event);
    own.map(1);
    own.text("0");
    own.bytes(std::vector<std::byte>(30));
    messages.insert(messages.begin() + 3, {own.written().begin(), own.written().end()});
    EXPECT_TRUE(rc::check([&](const std::vector<std::tuple<std::uint8_t, std::uint16_t, std::uint8_t>>& changes) {
        auto changed = messages;
        for (const auto& [which, at, to] : changes) {
            auto& message = changed[which % changed.size()];
            // Mostly the heads: pixels may be anything.
            message[at % std::min<std::size_t>(message.size(), 400)] = static_cast<std::byte>(to);
        }
        const TemporaryDirectory folder("/dev/shm");
        Receiver receiver(nowhere, folder.path());
        for (const auto& message : changed) receiver.take(message);
        receiver.finish();
        std::uint64_t there = 0;
        for (const SeriesAccount& series : receiver.account().series) {
            const store::RunReader run(series.path);
            const store::Verification result = run.scan({});
            RC_ASSERT(result.problems.empty());
            there += series.received;
        }
        RC_ASSERT(there == receiver.account().events());
    }));
}

TEST(Receiver, AnAddressThatIsNoneIsAMistake) {
    const TemporaryDirectory folder;
    EXPECT_THROW(Receiver("daq1:31001", folder.path()), core::UsageError);
}

}  // namespace
}  // namespace weir::stream

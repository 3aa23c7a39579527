// The stream sink with real ZeroMQ: what arrives, what is dropped and why, and that the account is right. Nothing here
// depends on how long something takes: it waits for what has to happen.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.hpp"
#include "feed.hpp"
#include "reduce/pack/unpacker.hpp"
#include "stream/sink.hpp"
#include "stream/stream_message.hpp"
#include "stream/zmq_library.hpp"

namespace weir::stream {
namespace {

using reduce::pack::Codec;
using std::chrono::milliseconds;
using test::FedEvent;
using test::feed;

constexpr std::uint32_t sent_columns = 64;
constexpr std::uint32_t module_rows = 256;
constexpr std::size_t module_pixels = std::size_t{sent_columns} * module_rows;
constexpr auto any_address = "tcp://127.0.0.1:*";

Sink::Config config_of(bool wait = false) {
    Sink::Config config;
    config.listen = {any_address};
    config.wait = wait;
    config.start_timeout = milliseconds(0);
    config.linger = milliseconds(0);
    config.run = 7;
    config.name = "test";
    config.start_json = test::pixels_json(sent_columns);
    return config;
}

/// A consumer: whole messages, one after the other.
class Puller {
public:
    explicit Puller(const std::string& address, int type = ZMQ_PULL, int queue = 1000) : socket_(context_, type) {
        socket_.set(ZMQ_RCVHWM, queue);
        if (type == ZMQ_SUB) zmq().zmq_setsockopt(socket_.get(), ZMQ_SUBSCRIBE, "", 0);
        socket_.connect(address);
    }
    /// The next message; nothing if none comes in ten seconds.
    std::vector<std::byte> take(int patience_ms = 10'000) {
        socket_.set(ZMQ_RCVTIMEO, patience_ms);
        zmq_msg_t message;
        zmq().zmq_msg_init(&message);
        std::vector<std::byte> out;
        if (zmq().zmq_msg_recv(&message, socket_.get(), 0) >= 0) {
            const auto* bytes = static_cast<const std::byte*>(zmq().zmq_msg_data(&message));
            out.assign(bytes, bytes + zmq().zmq_msg_size(&message));
        }
        zmq().zmq_msg_close(&message);
        return out;
    }

private:
    ZmqContext context_;
    ZmqSocket socket_;
};

struct Read {
    std::vector<std::byte> bytes;
    StreamMessage message;
};
/// What came next, which has to be a message.
std::unique_ptr<Read> next_message(Puller& puller) {
    auto read = std::make_unique<Read>();
    read->bytes = puller.take();
    // DECTRIS' reference parser takes nothing that does not begin with tag 55799.
    constexpr std::array self_described{std::byte{0xd9}, std::byte{0xd9}, std::byte{0xf7}};
    EXPECT_TRUE(
        std::ranges::equal(std::span(read->bytes).first(std::min<std::size_t>(read->bytes.size(), 3)), self_described));
    std::string problem;
    auto message = read_message(read->bytes, problem);
    EXPECT_TRUE(message) << problem;
    if (message) read->message = std::move(*message);
    return read;
}

void until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    bool held = holds();
    for (; !held && std::chrono::steady_clock::now() < end; held = holds())
        std::this_thread::sleep_for(milliseconds(1));
    ASSERT_TRUE(held);
}

void until_connected(Sink& sink, bool connected = true) {
    until([&] {
        sink.sync_if_due();
        return sink.consumers().front().is_connected() == connected;
    });
}

FedEvent image(std::uint64_t id, std::optional<Codec> codec = {}, std::size_t pixels = module_pixels) {
    FedEvent event;
    event.id = id;
    event.codec = codec;
    for (unsigned source = 0; source < 2; ++source)
        event.sources.push_back(test::as_bytes(test::noise(pixels, static_cast<unsigned>(id) * 10 + source)));
    return event;
}

std::vector<std::byte> pixels_of(const FedEvent& event) {
    std::vector<std::byte> out;
    for (const auto& source : event.sources) out.insert(out.end(), source.begin(), source.end());
    return out;
}

std::vector<std::byte> decoded(const StreamedChannel& channel) {
    if (!channel.codec) return {channel.bytes.begin(), channel.bytes.end()};
    std::vector<std::byte> out(channel.raw_bytes);
    reduce::pack::Unpacker unpacker;
    EXPECT_EQ(unpacker.unpack(*channel.codec, channel.type->bytes, channel.bytes, out), "");
    return out;
}

std::uint64_t dropped(const Sink& sink, DropCause cause) {
    return sink.stats().dropped[static_cast<std::size_t>(cause)];
}

std::string text(const CborValue* value) {
    return value == nullptr ? "nothing" : std::string(value->as_text());
}

TEST(StreamSink, SendsStartImagesAndEnd) {
    Sink::Config config = config_of();
    config.linger = milliseconds(10'000);
    Sink sink(config);
    Puller puller(sink.consumers().front().address());
    until_connected(sink);
    const std::vector<FedEvent> events{image(100), image(101, Codec::bitshuffle_lz4),
                                       image(102, Codec::bitshuffle_zstd)};
    for (const FedEvent& event : events) feed(sink, event, 16384);
    std::thread finish([&] { sink.finish_data(); });

    const auto start = next_message(puller);
    ASSERT_EQ(start->message.type, MessageType::start);
    EXPECT_EQ(start->message.value.items.front().as_text(), "type");
    EXPECT_EQ(start->message.series_id, 7U);
    EXPECT_EQ(start->message.series_unique_id, "test-7");
    EXPECT_EQ(text(start->message.value.find("image_dtype")), "uint16");
    EXPECT_EQ(start->message.value.find("image_size_x")->as_unsigned(), sent_columns);
    EXPECT_EQ(start->message.value.find("image_size_y")->as_unsigned(), 2U * module_rows);
    for (std::size_t i = 0; i < events.size(); ++i) {
        const auto read = next_message(puller);
        ASSERT_EQ(read->message.type, MessageType::image);
        EXPECT_EQ(read->message.value.items.front().as_text(), "type");
        EXPECT_EQ(read->message.image_id, i);
        ASSERT_EQ(read->message.channels.size(), 1U);
        const StreamedChannel& channel = read->message.channels.front();
        EXPECT_EQ(channel.codec, events[i].codec);
        EXPECT_EQ(channel.columns, sent_columns);
        EXPECT_EQ(channel.rows, 2U * module_rows);
        EXPECT_EQ(decoded(channel), pixels_of(events[i]));
        std::string problem;
        const auto event = event_of(read->message, problem);
        ASSERT_TRUE(event) << problem;
        EXPECT_EQ(event->id, events[i].id);
        EXPECT_TRUE(event->complete);
    }
    const auto end = next_message(puller);
    finish.join();
    ASSERT_EQ(end->message.type, MessageType::end);
    EXPECT_EQ(end->message.extra("sent")->as_unsigned(), 3U);
    EXPECT_EQ(end->message.extra("dropped")->find("no_consumer")->as_unsigned(), 0U);
    EXPECT_EQ(sink.stats().events, 3U);
    EXPECT_EQ(sink.stats().synced_events, 3U);
    EXPECT_EQ(sink.stats().interrupted, 0U);
}

TEST(StreamSink, APieceThatStayedPlainMakesTheImagePlain) {
    Sink sink(config_of());
    Puller puller(sink.consumers().front().address());
    until_connected(sink);
    FedEvent event = image(1, Codec::bitshuffle_lz4);
    event.plain_piece = 1;
    feed(sink, event, 16384);
    ASSERT_EQ(next_message(puller)->message.type, MessageType::start);
    const auto read = next_message(puller);
    EXPECT_FALSE(read->message.channels.front().codec);
    EXPECT_EQ(decoded(read->message.channels.front()), pixels_of(event));
}

TEST(StreamSink, WhatIsMissingIsSaidAndFilled) {
    Sink::Config config = config_of();
    config.start_json = test::jungfrau_json();
    Sink sink(config);
    Puller puller(sink.consumers().front().address());
    until_connected(sink);
    FedEvent event = image(1, Codec::bitshuffle_lz4, std::size_t{1024} * 8);
    event.content = store::Content::received;
    event.missing = {{}, {{8192, 8196}}};
    feed(sink, event);
    ASSERT_EQ(next_message(puller)->message.type, MessageType::start);
    const auto read = next_message(puller);
    ASSERT_EQ(read->message.type, MessageType::image);
    std::vector<std::byte> expected = pixels_of(event);
    for (std::size_t i = 0; i < 4; ++i) expected[event.sources[0].size() + 8192 + i] = std::byte{0xff};
    EXPECT_EQ(decoded(read->message.channels.front()), expected);
    std::string problem;
    const auto said = event_of(read->message, problem);
    ASSERT_TRUE(said) << problem;
    EXPECT_FALSE(said->complete);
    EXPECT_EQ(said->cause, store::Cause::timeout);
    ASSERT_EQ(said->sources[1].missing.size(), 1U);
    EXPECT_EQ(said->sources[1].missing[0].offset, 8192U);
    EXPECT_EQ(said->sources[1].missing[0].bytes, 4U);
}

TEST(StreamSink, AnEventThatIsNoImageIsByteStrings) {
    Sink::Config config = config_of();
    config.start_json = "{}";
    Sink sink(config);
    Puller puller(sink.consumers().front().address());
    until_connected(sink);
    FedEvent event;
    event.id = 5;
    event.content = store::Content::received;
    event.sources = {std::vector<std::byte>(100'001, std::byte{1}), {}, std::vector<std::byte>(3, std::byte{2})};
    event.codec = Codec::zstd;
    feed(sink, event);
    ASSERT_EQ(next_message(puller)->message.type, MessageType::start);
    const auto read = next_message(puller);
    ASSERT_EQ(read->message.type, MessageType::event);
    ASSERT_EQ(read->message.channels.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(read->message.channels[i].name, std::to_string(i));
        EXPECT_TRUE(std::ranges::equal(read->message.channels[i].bytes, event.sources[i]));
    }
}

TEST(StreamSink, WithoutAConsumerEveryEventIsDroppedForThatCause) {
    Sink sink(config_of());
    for (std::uint64_t id = 0; id < 5; ++id) feed(sink, image(id));
    sink.finish_data();
    EXPECT_EQ(sink.stats().events, 0U);
    EXPECT_EQ(dropped(sink, DropCause::no_consumer), 5U);
    EXPECT_EQ(sink.consumers().front().account().dropped[0], 5U);
}

TEST(StreamSink, ASlowConsumerIsBehindAndTheAccountBalances) {
    Sink::Config config = config_of();
    config.queue = 4;
    Sink sink(config);
    Puller puller(sink.consumers().front().address(), ZMQ_PULL, 1);
    until_connected(sink);
    // Far more than the buffers of two sockets hold, and nobody takes anything.
    constexpr std::uint64_t count = 800;
    for (std::uint64_t id = 0; id < count; ++id) feed(sink, image(id));
    const std::uint64_t behind = dropped(sink, DropCause::consumer_behind);
    EXPECT_GT(behind, 0U);
    sink.finish_data();
    const std::uint64_t late = dropped(sink, DropCause::too_late);
    EXPECT_GT(late, 0U);  // what ZeroMQ still had
    EXPECT_EQ(sink.stats().events + behind + late, count);
    EXPECT_EQ(dropped(sink, DropCause::no_consumer), 0U);
    const Consumer::Account& account = sink.consumers().front().account();
    EXPECT_EQ(account.sent, sink.stats().events);
    EXPECT_EQ(account.dropped[2], late);
    // What was called sent comes; the numbers tell what does not.
    std::uint64_t came = 0;
    for (auto bytes = puller.take(); !bytes.empty(); bytes = puller.take(came < sink.stats().events ? 10'000 : 300)) {
        std::string problem;
        const auto message = read_message(bytes, problem);
        if (message && message->type == MessageType::image) ++came;
    }
    EXPECT_GE(came, sink.stats().events);
    EXPECT_LE(came, sink.stats().events + late);
}

TEST(StreamSink, WhoComesBackGetsTheStartAgain) {
    Sink sink(config_of());
    const std::string address = sink.consumers().front().address();
    {
        Puller first(address);
        until_connected(sink);
        feed(sink, image(0));
        EXPECT_EQ(next_message(first)->message.type, MessageType::start);
        EXPECT_EQ(next_message(first)->message.image_id, 0U);
    }
    until_connected(sink, false);
    feed(sink, image(1));
    EXPECT_EQ(dropped(sink, DropCause::no_consumer), 1U);
    Puller second(address);
    until_connected(sink);
    // An idle sink owes it nothing but the start.
    const auto start = next_message(second);
    EXPECT_EQ(start->message.type, MessageType::start);
    EXPECT_EQ(start->message.extra("next_image_id")->as_unsigned(), 2U);
    feed(sink, image(2));
    const auto read = next_message(second);
    EXPECT_EQ(read->message.type, MessageType::image);
    EXPECT_EQ(read->message.image_id, 2U);
    until([&] {  // the consumer may have a message before ZeroMQ has let go of it
        sink.sync_if_due();
        return sink.stats().synced_events == 2U;
    });
    sink.finish_data();
    EXPECT_EQ(sink.stats().events, 2U);
    EXPECT_EQ(sink.stats().interrupted, 1U);
    EXPECT_EQ(sink.consumers().front().account().came, 2U);
}

TEST(StreamSink, TwoConsumersGetAllOfIt) {
    Sink::Config config = config_of();
    config.listen = {any_address, any_address};
    Sink sink(config);
    Puller first(sink.consumers()[0].address());
    until_connected(sink);
    feed(sink, image(0));
    EXPECT_EQ(next_message(first)->message.type, MessageType::start);
    EXPECT_EQ(next_message(first)->message.image_id, 0U);
    // One of both did not get it: it is not sent, but who got it is in its own account.
    EXPECT_EQ(sink.stats().events, 0U);
    EXPECT_EQ(dropped(sink, DropCause::no_consumer), 1U);
    EXPECT_EQ(sink.consumers()[0].account().sent, 1U);
    EXPECT_EQ(sink.consumers()[1].account().sent, 0U);
    Puller second(sink.consumers()[1].address());
    until([&] {
        sink.sync_if_due();
        return sink.consumers()[1].is_connected();
    });
    feed(sink, image(1, Codec::bitshuffle_lz4));
    EXPECT_EQ(next_message(second)->message.type, MessageType::start);
    for (Puller* puller : {&first, &second}) {
        const auto read = next_message(*puller);
        EXPECT_EQ(read->message.image_id, 1U);
        EXPECT_EQ(decoded(read->message.channels.front()), pixels_of(image(1)));
    }
    EXPECT_EQ(sink.stats().events, 1U);
}

TEST(StreamSink, ThatWaitsLosesNothing) {
    Sink::Config config = config_of(true);
    config.queue = 2;
    config.linger = milliseconds(60'000);
    Sink sink(config);
    constexpr std::uint64_t count = 600;
    std::thread feeding([&] {
        for (std::uint64_t id = 0; id < count; ++id) feed(sink, image(id));
        sink.finish_data();
    });
    // Comes when everything waits for it already, or nearly everything.
    std::this_thread::sleep_for(milliseconds(50));
    Puller puller(sink.consumers().front().address(), ZMQ_PULL, 1);
    EXPECT_EQ(next_message(puller)->message.type, MessageType::start);
    for (std::uint64_t id = 0; id < count; ++id) {
        const auto read = next_message(puller);
        ASSERT_EQ(read->message.image_id, id);
    }
    EXPECT_EQ(next_message(puller)->message.type, MessageType::end);
    feeding.join();
    EXPECT_EQ(sink.stats().events, count);
}

TEST(StreamSink, ThatWaitsEndsWhenTheRunIsStopped) {
    Sink::Config config = config_of(true);
    config.linger = milliseconds(20);
    Sink sink(config);
    std::atomic<bool> done{false};
    std::thread feeding([&] {
        for (std::uint64_t id = 0; id < 100; ++id) feed(sink, image(id));
        done = true;
    });
    std::this_thread::sleep_for(milliseconds(50));  // for nothing to happen
    EXPECT_FALSE(done);
    sink.stopping(false);
    feeding.join();
    EXPECT_EQ(dropped(sink, DropCause::no_consumer), 100U);
}

TEST(StreamSink, PreviewsAreSmallAndRare) {
    Sink::Config config = config_of();
    config.previews = any_address;
    config.preview_every = 2;
    config.preview_bin = 2;
    Sink sink(config);
    Puller subscriber(sink.how()["previews"], ZMQ_SUB);
    std::unique_ptr<Read> read;
    std::uint64_t id = 0;
    // A subscription takes a moment, and what is published before is gone.
    until([&] {
        feed(sink, image(id, Codec::bitshuffle_lz4));
        ++id;
        const auto bytes = subscriber.take(10);
        if (bytes.empty()) return false;
        read = std::make_unique<Read>();
        read->bytes = bytes;
        std::string problem;
        auto message = read_message(read->bytes, problem);
        if (message) read->message = std::move(*message);
        return read->message.type == MessageType::image;
    });
    const std::uint64_t shown = read->message.image_id;
    EXPECT_EQ(shown % 2, 0U);
    const StreamedChannel& channel = read->message.channels.front();
    EXPECT_EQ(channel.type->name, "float32");
    ASSERT_EQ(channel.rows, module_rows);
    ASSERT_EQ(channel.columns, sent_columns / 2);
    const auto pixels = pixels_of(image(shown));
    std::array<std::uint16_t, sent_columns + 2> first{};
    std::memcpy(first.data(), pixels.data(), sizeof first);
    float mean = 0;
    std::memcpy(&mean, channel.bytes.data(), sizeof mean);
    EXPECT_FLOAT_EQ(mean, static_cast<float>(first[0] + first[1] + first[sent_columns] + first[sent_columns + 1]) / 4);
}

TEST(StreamSink, AnAddressInUseIsAnError) {
    Sink first(config_of());
    Sink::Config config = config_of();
    config.listen = {first.consumers().front().address()};
    EXPECT_THROW(Sink second(config), core::RunError);
}

TEST(StreamSink, WhoConnectsAndSaysNothingIsNoConsumer) {
    Sink sink(config_of());
    // A port scanner: the connection is made, no greeting comes.
    ZmqContext context;
    ZmqSocket raw(context, ZMQ_STREAM);
    raw.connect(sink.consumers().front().address());
    std::this_thread::sleep_for(milliseconds(50));  // for nothing to come
    feed(sink, image(0));
    EXPECT_EQ(dropped(sink, DropCause::no_consumer), 1U);
    Puller puller(sink.consumers().front().address());
    until_connected(sink);
    feed(sink, image(1));
    EXPECT_EQ(next_message(puller)->message.type, MessageType::start);
    EXPECT_EQ(next_message(puller)->message.image_id, 1U);
}

}  // namespace
}  // namespace weir::stream

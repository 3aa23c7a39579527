// The latest event as a picture: which event is copied, when, and what is made of it.
#include "store/latest_event.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support.hpp"

namespace weir::store::test {
namespace {

using nlohmann::json;
using Buffer = std::vector<std::byte>;

constexpr std::uint32_t columns = 1024;

json raw_start(const char* format = "jungfrau") {
    return {{"config", {{"stream", {{{"format", format}}}}}}};
}

json pixel_start(const char* type) {
    json start = raw_start();
    start["payload"] = {{"content", "pixels"}, {"type", type}, {"columns", columns}};
    return start;
}

std::vector<std::uint16_t> ramp(std::uint32_t rows, std::uint16_t first) {
    std::vector<std::uint16_t> pixels(std::size_t{rows} * columns);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint16_t>(first + i);
    return pixels;
}

/// Formats events as a worker does; each flush ends a buffer.
class Worker {
public:
    explicit Worker(std::size_t buffer_bytes) : memory_(buffer_bytes + block_align) { fresh(); }

    void put(const TestEvent& event, bool compress = false) {
        EventRecord record;
        record.id = event.id;
        record.epoch = event.epoch;
        record.sources = static_cast<std::uint32_t>(event.sources.size());
        record.complete = event.cause == Cause::complete;
        record.cause = event.cause;
        record.payload_bytes = event.received_bytes();
        record.content = event.content;
        if (event.content != Content::received) record.reduced_bytes = event.payload().size();
        again([&] { return writer_.put_event(record); });
        for (const TestSource& source : event.sources) {
            SourceRecord put;
            put.source = source.id;
            put.state = source.state;
            put.declared_bytes = source.declared;
            put.received_bytes = source.received.size();
            put.packets = source.received.empty() ? 0 : 1;
            put.reduced_bytes = event.content == Content::received ? 0 : source.reduced.size();
            again([&] { return writer_.put_source(put, source.missing); });
        }
        put_payload(event.payload(), compress);
    }
    void flush() {
        if (!writer_.empty()) buffers.emplace_back(writer_.blocks().begin(), writer_.blocks().end());
        fresh();
    }
    std::vector<Buffer> buffers;

private:
    void fresh() {
        void* at = memory_.data();
        std::size_t space = memory_.size();
        at = std::align(block_align, memory_.size() - block_align, at, space);
        writer_.reset({static_cast<std::byte*>(at), memory_.size() - block_align});
    }
    template <class Put>
    void again(Put put) {
        if (put()) return;
        flush();
        ASSERT_TRUE(put());
    }
    void put_payload(std::span<const std::byte> rest, bool compress) {
        constexpr std::size_t piece = 20'000;
        do {
            const std::size_t count = std::min(rest.size(), piece);
            std::span<std::byte> room = writer_.open_payload();
            if (room.size() < ZSTD_compressBound(count)) {
                flush();
                room = writer_.open_payload();
            }
            std::size_t stored = count;
            if (compress)
                stored = ZSTD_compress(room.data(), room.size(), rest.data(), count, 1);
            else if (count > 0)
                std::memcpy(room.data(), rest.data(), count);
            writer_.close_payload(static_cast<std::uint32_t>(stored), static_cast<std::uint32_t>(count),
                                  compress ? Encoding::zstd : Encoding::raw, count == rest.size());
            rest = rest.subspan(count);
        } while (!rest.empty());
    }

    std::vector<std::byte> memory_;
    BlockWriter writer_;
};

void pass_all(LatestEvent& latest, const std::vector<Buffer>& buffers) {
    for (const Buffer& buffer : buffers) latest.pass(buffer);
}

template <class T>
std::vector<T> values_of(const LatestEvent::Picture& picture) {
    std::vector<T> values(picture.pixels.size() / sizeof(T));
    std::memcpy(values.data(), picture.pixels.data(), values.size() * sizeof(T));
    return values;
}

constexpr std::size_t large = std::size_t{1} << 20U;

TEST(LatestEvent, IsTheLastWholeOneOfABufferPixelForPixel) {
    LatestEvent latest(raw_start());
    EXPECT_EQ(latest.facts().generation, 0U);
    EXPECT_EQ(latest.take_picture()->facts.why_not, "no event has been written yet");
    Worker worker(large);
    worker.put(image_event(7, {ramp(2, 0), ramp(2, 9)}));
    worker.put(image_event(8, {ramp(2, 100), ramp(2, 300)}));
    worker.flush();
    pass_all(latest, worker.buffers);
    const auto picture = latest.take_picture();
    EXPECT_EQ(picture->facts.why_not, "");
    EXPECT_EQ(picture->facts.event, 8U);
    EXPECT_EQ(picture->facts.width, columns);
    EXPECT_EQ(picture->facts.height, 4U);
    EXPECT_EQ(picture->facts.type, "u16");
    std::vector<std::uint16_t> expected = ramp(2, 100);
    const std::vector<std::uint16_t> second = ramp(2, 300);
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_EQ(values_of<std::uint16_t>(*picture), expected);
    EXPECT_EQ(latest.take_picture(), picture) << "decoded again although nothing has changed";
}

TEST(LatestEvent, OfPixelsThatShareBytesHasEachByItself) {
    json start = raw_start("eiger");
    start["config"]["stream"][0]["bit_depth"] = 12;
    LatestEvent latest(start);
    std::vector<std::uint16_t> words(2 * 512 * 12 / 16);  // two rows
    const std::array<std::uint8_t, 6> first{0x21, 0x43, 0x65, 0xff, 0x1f, 0x00};
    std::memcpy(words.data(), first.data(), first.size());
    TestEvent event = image_event(7, {words});
    event.cause = Cause::timeout;
    event.sources[0].state = SourceState::partial;
    event.sources[0].missing = {{4, 5}};  // of the third pixel the upper half, of the fourth the lower
    event.sources[0].received.erase(event.sources[0].received.begin() + 4);
    Worker worker(large);
    worker.put(event);
    worker.flush();
    pass_all(latest, worker.buffers);
    const auto picture = latest.take_picture();
    EXPECT_EQ(picture->facts.why_not, "");
    EXPECT_EQ(picture->facts.width, 512U);
    EXPECT_EQ(picture->facts.height, 2U);
    EXPECT_EQ(picture->facts.type, "f32");
    const auto values = values_of<float>(*picture);
    ASSERT_EQ(values.size(), 1024U);
    EXPECT_EQ(values[0], 0x321);
    EXPECT_EQ(values[1], 0x654);
    EXPECT_TRUE(std::isnan(values[2]));
    EXPECT_TRUE(std::isnan(values[3]));
    EXPECT_EQ(values[4], 0);
}

TEST(LatestEvent, IsCopiedOnlyWhereSomebodyLookedAtTheOneBefore) {
    LatestEvent latest(raw_start(), std::chrono::milliseconds(0));
    LatestEvent seldom(raw_start(), std::chrono::hours(1));
    Worker worker(large);
    for (std::uint64_t id : {1, 2, 3}) {
        worker.put(image_event(id, {ramp(2, 0)}));
        worker.flush();
    }
    latest.pass(worker.buffers[0]);
    latest.pass(worker.buffers[1]);
    EXPECT_EQ(latest.facts().event, 1U) << "nobody has asked for another";
    EXPECT_EQ(latest.facts().generation, 1U);
    EXPECT_EQ(latest.take_picture()->facts.event, 1U);
    seldom.pass(worker.buffers[0]);
    EXPECT_EQ(seldom.take_picture()->facts.event, 1U);
    seldom.pass(worker.buffers[1]);
    EXPECT_EQ(seldom.facts().event, 1U) << "sooner than the interval allows";
    latest.pass(worker.buffers[2]);
    EXPECT_EQ(latest.facts().event, 3U);
    EXPECT_EQ(latest.facts().generation, 2U);
    EXPECT_EQ(latest.take_picture()->facts.event, 3U);
}

TEST(LatestEvent, MayBeginInOneBufferAndEndInAnother) {
    LatestEvent latest(raw_start());
    Worker worker(BlockWriter::buffer_bytes_min);
    worker.put(image_event(5, {ramp(40, 1), ramp(40, 2)}), true);
    worker.put(image_event(6, {ramp(40, 3), ramp(40, 4)}));
    worker.flush();
    ASSERT_GT(worker.buffers.size(), 3U);
    // Somebody who comes in the middle of an event gets the next one.
    pass_all(latest, {worker.buffers.begin() + 1, worker.buffers.end()});
    ASSERT_EQ(latest.facts().generation, 1U);
    EXPECT_EQ(latest.facts().event, 6U);
    const auto values = values_of<std::uint16_t>(*latest.take_picture());
    ASSERT_EQ(values.size(), 80U * columns);
    EXPECT_EQ(values.front(), 3);
    EXPECT_EQ(values[40 * columns], 4);
    LatestEvent from_the_start(raw_start());
    pass_all(from_the_start, worker.buffers);
    EXPECT_EQ(from_the_start.facts().event, 5U);
    EXPECT_EQ(values_of<std::uint16_t>(*from_the_start.take_picture()).front(), 1) << "not decompressed";
}

TEST(LatestEvent, HasNoNumberWhereNothingCame) {
    TestEvent event = image_event(3, {ramp(2, 10), ramp(2, 10), ramp(2, 10)});
    event.cause = Cause::timeout;
    // The second pixel, and half of the third; and all of a source.
    TestSource& partial = event.sources[1];
    partial.state = SourceState::partial;
    partial.missing = {{2, 5}};
    partial.received.erase(partial.received.begin() + 2, partial.received.begin() + 5);
    TestSource& absent = event.sources[2];
    absent.state = SourceState::absent_unknown;
    absent.declared = 0;
    absent.received.clear();
    Worker worker(large);
    worker.put(event);
    worker.flush();
    LatestEvent latest(raw_start());
    pass_all(latest, worker.buffers);
    EXPECT_EQ(latest.facts().type, "f32");
    const auto picture = latest.take_picture();
    ASSERT_EQ(picture->facts.why_not, "");
    const auto values = values_of<float>(*picture);
    ASSERT_EQ(values.size(), 6U * columns);
    EXPECT_EQ(values[1], 11);
    const std::size_t second = 2 * columns;
    EXPECT_EQ(values[second], 10);
    EXPECT_TRUE(std::isnan(values[second + 1]));
    EXPECT_TRUE(std::isnan(values[second + 2])) << "half a pixel is none";
    EXPECT_EQ(values[second + 3], 13);
    for (std::size_t i = 4 * columns; i < values.size(); ++i) ASSERT_TRUE(std::isnan(values[i]));
}

TEST(LatestEvent, OfReducersHasTheirValues) {
    std::vector<std::uint16_t> photons(std::size_t{2} * columns, 3);
    photons[5] = 65535;  // no value
    photons[6] = 65534;  // saturated
    TestEvent event = image_event(4, {ramp(2, 0)});
    event.content = Content::pixels;
    const auto bytes = std::as_bytes(std::span(photons));
    event.sources[0].reduced.assign(bytes.begin(), bytes.end());
    Worker worker(large);
    worker.put(event, true);
    worker.flush();
    LatestEvent latest(pixel_start("u16"));
    pass_all(latest, worker.buffers);
    const auto picture = latest.take_picture();
    EXPECT_EQ(picture->facts.type, "f32");
    EXPECT_EQ(picture->facts.height, 2U);
    const auto values = values_of<float>(*picture);
    ASSERT_EQ(values.size(), photons.size());
    EXPECT_EQ(values[4], 3);
    EXPECT_TRUE(std::isnan(values[5]));
    EXPECT_TRUE(std::isinf(values[6]));
}

TEST(LatestEvent, SaysWhyThereIsNone) {
    const auto why = [](const json& start, const TestEvent& event) {
        Worker worker(large);
        worker.put(event);
        worker.flush();
        LatestEvent latest(start);
        pass_all(latest, worker.buffers);
        EXPECT_TRUE(latest.take_picture()->pixels.empty());
        EXPECT_EQ(latest.take_picture()->facts.why_not, latest.facts().why_not);
        return latest.facts().why_not;
    };
    EXPECT_NE(why(raw_start("dune"), image_event(1, {ramp(2, 0)})).find("format dune are no images"),
              std::string::npos);
    json several = raw_start();
    several["config"]["stream"].push_back({{"format", "dune"}});
    EXPECT_NE(why(several, image_event(1, {ramp(2, 0)})).find("several formats"), std::string::npos);
    EXPECT_NE(why(raw_start(), image_event(1, {ramp(2, 0), ramp(3, 0)})).find("differ in size"), std::string::npos);
    EXPECT_NE(why(raw_start(), image_event(1, {std::vector<std::uint16_t>(5)})).find("no whole rows"),
              std::string::npos);
    json mep = raw_start();
    mep["payload"] = {{"content", "mep"}};
    EXPECT_NE(why(mep, image_event(1, {ramp(2, 0)})).find("multi-event packets"), std::string::npos);
}

TEST(LatestEvent, DamagedBlocksAreNoPictureAndNoHarm) {
    Worker worker(large);
    worker.put(image_event(1, {ramp(2, 0)}), true);
    worker.flush();
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
        Buffer damaged = worker.buffers[0];
        for (int k = 0; k < 3; ++k)
            damaged[random() % (i % 2 == 0 ? damaged.size() : 512)] = static_cast<std::byte>(random());
        LatestEvent latest(raw_start());
        latest.pass(damaged);
        const auto picture = latest.take_picture();
        EXPECT_EQ(picture->pixels.empty(), !picture->facts.why_not.empty());
    }
}

}  // namespace
}  // namespace weir::store::test

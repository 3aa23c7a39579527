// See support.hpp.
#include "support.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/crc32c.hpp"
#include "core/error.hpp"

namespace weir::store::test {

std::filesystem::path memory_folder() {
    return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::path();
}

std::vector<std::byte> TestEvent::payload() const {
    std::vector<std::byte> all;
    for (const TestSource& source : sources) {
        const std::vector<std::byte>& part = content == Content::received ? source.received : source.reduced;
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::size_t TestEvent::received_bytes() const {
    std::size_t bytes = 0;
    for (const TestSource& source : sources) bytes += source.received.size();
    return bytes;
}

namespace {

std::vector<std::byte> random_bytes(std::mt19937_64& random, std::size_t count) {
    // Few different values, so that compression has something to do.
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 7);
    return bytes;
}

std::uint32_t below(std::mt19937_64& random, std::uint32_t bound) {
    return static_cast<std::uint32_t>(random() % bound);
}

void make_partial(std::mt19937_64& random, TestSource& source) {
    std::uint32_t at = below(random, 2) * (1 + below(random, source.declared / 2));
    std::uint32_t missing = 0;
    while (at < source.declared && source.missing.size() < 40) {
        const std::uint32_t bytes = std::min(1 + below(random, 30), source.declared - at);
        source.missing.push_back({at, at + bytes});
        missing += bytes;
        at += bytes + 1 + below(random, 50);
    }
    source.received = random_bytes(random, source.declared - missing);
}

}  // namespace

TestEvent random_event(std::mt19937_64& random, std::uint64_t id, std::uint32_t sources, std::uint32_t bytes_max) {
    TestEvent event;
    event.id = id;
    event.epoch = static_cast<std::uint32_t>(id % 2);
    const bool complete = random() % 3 != 0;
    if (!complete) event.cause = static_cast<Cause>(1 + random() % 4);
    for (std::uint32_t s = 0; s < sources; ++s) {
        TestSource source;
        source.id = s * 2;
        source.state = complete ? SourceState::complete : static_cast<SourceState>(random() % 5);
        source.declared = 10 + below(random, bytes_max);
        source.meta = random_bytes(random, random() % 65);
        switch (source.state) {
            case SourceState::complete:
                if (random() % 10 == 0) source.declared = 0;
                source.received = random_bytes(random, source.declared);
                break;
            case SourceState::partial:
                make_partial(random, source);
                break;
            case SourceState::size_unknown:
                source.received = random_bytes(random, source.declared);
                source.declared = 0;
                break;
            case SourceState::absent:
                source.missing = {{0, source.declared}};
                source.meta.clear();
                break;
            case SourceState::absent_unknown:
                source.declared = 0;
                source.meta.clear();
                break;
        }
        event.sources.push_back(std::move(source));
    }
    return event;
}

TestEvent random_reduced_event(std::mt19937_64& random, std::uint64_t id, std::uint32_t sources,
                               std::uint32_t bytes_max) {
    TestEvent event = random_event(random, id, sources, bytes_max);
    event.content = static_cast<Content>(random() % content_names.size());
    event.result = {static_cast<Veto>(random() % veto_names.size()), static_cast<std::uint32_t>(random()),
                    static_cast<std::uint32_t>(random())};
    if (event.content == Content::received) return event;
    for (TestSource& source : event.sources)
        if (random() % 4 != 0) source.reduced = random_bytes(random, below(random, bytes_max));
    return event;
}

TestEvent image_event(std::uint64_t id, const std::vector<std::vector<std::uint16_t>>& pixels) {
    TestEvent event;
    event.id = id;
    for (std::uint32_t s = 0; s < pixels.size(); ++s) {
        TestSource source;
        source.id = s;
        source.declared = static_cast<std::uint32_t>(pixels[s].size() * 2);
        const auto bytes = std::as_bytes(std::span(pixels[s]));
        source.received.assign(bytes.begin(), bytes.end());
        event.sources.push_back(std::move(source));
    }
    return event;
}

Pump::Pump(RunWriter& run, std::size_t buffer_bytes) : run_(run), memory_(buffer_bytes + File::direct_alignment) {
    void* at = memory_.data();
    std::size_t space = memory_.size();
    at = std::align(File::direct_alignment, buffer_bytes, at, space);
    buffer_ = {static_cast<std::byte*>(at), buffer_bytes};
    writer_.reset(buffer_);
}

void Pump::fresh() {
    flush();
    // What an earlier use left in the buffer must not reach the file.
    std::fill(buffer_.begin(), buffer_.end(), std::byte{0xee});
}

void Pump::flush() {
    if (pad_bytes_ > 0) {
        ASSERT_TRUE(writer_.pad(pad_bytes_));
        ASSERT_EQ(writer_.blocks().size() % pad_bytes_, 0U);
    }
    if (!writer_.empty()) run_.append(writer_.blocks());
    while (run_.held() > 0) run_.collect();
    writer_.reset(buffer_);
}

void Pump::put(const TestEvent& event, bool compress) {
    put_description(event);
    put_payload(event, compress);
}

void Pump::put_and_take_back(const TestEvent& event) {
    fresh();
    const BlockWriter::Mark mark = writer_.mark();
    put_description(event);
    ASSERT_TRUE(writer_.event_open());
    const std::vector<std::byte> payload = event.payload();
    const std::span<std::byte> room = writer_.open_payload();
    const auto count = static_cast<std::uint32_t>(std::min(room.size(), payload.size()));
    std::copy_n(payload.begin(), count, room.begin());
    writer_.close_payload(count, count, Encoding::raw, count == payload.size());
    writer_.rewind(mark);
    ASSERT_FALSE(writer_.event_open());
    ASSERT_TRUE(writer_.empty());
}

void Pump::put_description(const TestEvent& event) {
    EventRecord record;
    record.id = event.id;
    record.epoch = event.epoch;
    record.sources = static_cast<std::uint32_t>(event.sources.size());
    record.complete = event.cause == Cause::complete;
    record.cause = event.cause;
    record.payload_bytes = event.received_bytes();
    record.content = event.content;
    if (event.content != Content::received) record.reduced_bytes = event.payload().size();
    record.packets = event.id + 1;
    record.first_ns = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(event.id) * 1000;
    record.last_ns = record.first_ns + 999;
    if (!writer_.put_event(record)) {
        fresh();
        ASSERT_TRUE(writer_.put_event(record));
    }
    for (const TestSource& source : event.sources) {
        SourceRecord put;
        put.source = source.id;
        put.state = source.state;
        put.declared_bytes = source.declared;
        put.received_bytes = source.received.size();
        put.packets = source.received.empty() ? 0 : 3;
        put.meta = source.meta;
        put.reduced_bytes = source.reduced.size();
        if (!writer_.put_source(put, source.missing)) {
            fresh();
            ASSERT_TRUE(writer_.put_source(put, source.missing));
        }
    }
}

void Pump::put_payload(const TestEvent& event, bool compress) {
    const std::vector<std::byte> payload = event.payload();
    std::span<const std::byte> rest = payload;
    do {
        std::span<std::byte> room = writer_.open_payload();
        if (room.empty() || (compress && room.size() < ZSTD_compressBound(100))) {
            fresh();
            room = writer_.open_payload();
            ASSERT_FALSE(room.empty());
        }
        std::size_t count = std::min(rest.size(), room.size());
        if (compress) {
            while (ZSTD_compressBound(count) > room.size()) count /= 2;
            const std::size_t stored = ZSTD_compress(room.data(), room.size(), rest.data(), count, 1);
            ASSERT_FALSE(ZSTD_isError(stored));
            writer_.close_payload(static_cast<std::uint32_t>(stored), static_cast<std::uint32_t>(count), Encoding::zstd,
                                  count == rest.size());
        } else {
            if (count > 0) std::memcpy(room.data(), rest.data(), count);
            writer_.close_payload(static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(count), Encoding::raw,
                                  count == rest.size());
        }
        rest = rest.subspan(count);
    } while (writer_.event_open());
    // What is known at the end goes into the block at the beginning, if that is still in this buffer.
    const bool asked = event.result.veto != Veto::none || event.result.pixels_above > 0 || event.result.peaks > 0;
    if (asked) patched_[{event.epoch, event.id}] = writer_.patch_event(event.result);
}

void write_run(const std::filesystem::path& path, const std::vector<TestEvent>& events, bool compress,
               std::uint64_t segment_bytes, std::uint16_t version) {
    RunWriter::Config config;
    config.path = path;
    config.name = "test";
    config.start_json = R"({"config": {"stream": [{"format": "jungfrau"}]}})";
    config.segment_bytes = segment_bytes;
    config.version = version;
    RunWriter run(config);
    Pump pump(run);
    for (const TestEvent& event : events) pump.put(event, compress);
    pump.flush();
    run.close({{"ledger", {{"events", {{"written", events.size()}}}}}, {"config", nlohmann::json::object()}});
}

std::map<Key, Found> read_all(const RunReader& run, Verification* verification) {
    std::map<Key, Found> all;
    std::vector<std::byte> payload;
    ScanHooks hooks;
    hooks.begin = [&](const EventInfo&) { payload.clear(); };
    hooks.payload = [&](std::span<const std::byte> bytes) {
        payload.insert(payload.end(), bytes.begin(), bytes.end());
    };
    hooks.end = [&](const EventInfo& info) {
        const bool is_new = all.emplace(Key{info.epoch, info.id}, Found{info, payload}).second;
        EXPECT_TRUE(is_new) << "event " << info.id << " is there twice";
    };
    const Verification result = run.scan(hooks);
    if (verification != nullptr) *verification = result;
    return all;
}

void expect_same(const TestEvent& event, const Found& found) {
    EXPECT_EQ(found.info.id, event.id);
    EXPECT_EQ(found.info.epoch, event.epoch);
    EXPECT_EQ(found.info.cause, event.cause);
    EXPECT_EQ(found.info.complete, event.cause == Cause::complete);
    EXPECT_EQ(found.info.packets, event.id + 1);
    EXPECT_EQ(found.info.last_ns - found.info.first_ns, 999);
    EXPECT_EQ(found.payload, event.payload());
    EXPECT_EQ(found.info.payload_bytes, event.received_bytes());
    EXPECT_EQ(found.info.content, event.content);
    EXPECT_EQ(found.info.content_bytes(), event.payload().size());
    ASSERT_EQ(found.info.sources.size(), event.sources.size());
    for (std::size_t i = 0; i < event.sources.size(); ++i) {
        const TestSource& want = event.sources[i];
        const SourceInfo& got = found.info.sources[i];
        EXPECT_EQ(got.id, want.id);
        EXPECT_EQ(got.state, want.state);
        EXPECT_EQ(got.declared_bytes, want.declared);
        EXPECT_EQ(got.received_bytes, want.received.size());
        EXPECT_EQ(got.meta, want.meta);
        EXPECT_EQ(got.reduced_bytes, want.reduced.size());
        ASSERT_EQ(got.missing.size(), want.missing.size());
        for (std::size_t r = 0; r < want.missing.size(); ++r) {
            EXPECT_EQ(got.missing[r].offset, want.missing[r].begin);
            EXPECT_EQ(got.missing[r].bytes, want.missing[r].end - want.missing[r].begin);
        }
    }
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return bytes_of(text);
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.good());
}

std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> with_changed_block(std::vector<std::byte> file, std::uint64_t at, const BlockChange& change) {
    BlockHeader header;
    std::memcpy(&header, file.data() + at, sizeof header);
    change(header, file.data() + at + sizeof header);
    header.body_crc = core::crc32c({file.data() + at + sizeof header, padded(header.stored_bytes)});
    header.header_crc = core::crc32c({reinterpret_cast<const std::byte*>(&header), header_crc_bytes});
    std::memcpy(file.data() + at, &header, sizeof header);
    return file;
}

std::string reason_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const core::RunError& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace weir::store::test

// The recorder's thread beside rx lcores and builders on threads of their own, for ThreadSanitizer: what it writes is
// what came.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>

#include "../stages/topology.hpp"
#include "record/recorder.hpp"
#include "store/capture/reader.hpp"

namespace weir::record::test {
namespace {

using namespace stages::test;

class RecorderTest : public StagesTest {
protected:
    void SetUp() override {
        std::string name = std::filesystem::temp_directory_path() / "weir_recorder_XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override {
        std::filesystem::remove_all(folder_);
        StagesTest::TearDown();
    }
    Recorder::Config config(config::RecordMode mode) const {
        Recorder::Config config;
        config.record.packets = mode;
        config.record.before = config.record.after = 0.02;
        config.record.keep_free = 0;
        config.files.path = folder_ / "test.pcapng";
        config.files.numbered = mode == config::RecordMode::incomplete;
        config.files.interfaces.resize(1);
        config.timeout_ns = 100 * stages::test::ms;
        config.replay = true;
        config.builders = 2;
        config.nodes = {-1, -1};
        return config;
    }
    /// Two rx lcores with inputs of their own.
    stages::test::Shape recorded(Recorder& recorder) const {
        stages::test::Shape shape;
        shape.rx = shape.builders = shape.workers = 2;
        shape.replay = false;
        shape.packet_ring = 32;  // lest an rx lcore whose thread runs first gets further ahead than events may be open
        shape.with_rx = [&recorder](stages::RxStage::Config& rx) { rx.record = &recorder.ring(rx.index); };
        shape.with_build = [&recorder](stages::BuildStage::Config& build) {
            build.triggers = recorder.triggers(build.builder.shard);
            build.geometry.resize(2);
        };
        return shape;
    }
    void feed(Topology& all, const Part& part) {
        port::Packet packet;
        while ((packet = make_.make(part)).mbuf == nullptr) std::this_thread::yield();
        while (!all.try_feed(packet, part.source)) std::this_thread::yield();
    }
    /// Packets in the file, by time; they have to be in order.
    static std::multimap<core::TimeNs, Bytes> read(const std::string& path) {
        std::multimap<core::TimeNs, Bytes> packets;
        store::CaptureReader reader(path);
        store::CaptureReader::Record record;
        core::TimeNs before = 0;
        while (reader.next(record)) {
            EXPECT_GE(record.time_ns, before) << "packets of several lcores are in order of time";
            before = record.time_ns;
            packets.emplace(record.time_ns, Bytes(record.bytes.begin(), record.bytes.end()));
        }
        EXPECT_FALSE(reader.cut_off());
        return packets;
    }

    std::filesystem::path folder_;
};

TEST_F(RecorderTest, WritesEveryPacketOfAllLcoresInOrderOfTime) {
    Recorder recorder(config(config::RecordMode::all));
    Topology all(recorded(recorder));
    for (std::uint32_t i = 0; i < 2; ++i) recorder.connect(i, all.signals(i), true);
    recorder.start();
    all.start_threads();
    std::multimap<core::TimeNs, Bytes> sent;
    for (std::uint64_t number = 0; number < 1000; ++number)
        for (std::uint32_t source = 0; source < 2; ++source) {
            const Part part{.source = source,
                            .number = number,
                            .time = static_cast<core::TimeNs>(2 * number + source) * stages::test::ms / 8};
            sent.emplace(start_ns + part.time, frame_of(part));
            feed(all, part);
            if (number == 500) static_cast<void>(recorder.status());  // as the control thread does
        }
    all.finish_threads();
    recorder.finish();
    expect_clean_end(all, pool_);
    const Recorder::Status status = recorder.status();
    EXPECT_EQ(status.seen, sent.size());
    EXPECT_EQ(status.written, sent.size());
    EXPECT_EQ(status.left_out, 0U);
    EXPECT_EQ(read(folder_ / "test.pcapng"), sent);
}

TEST_F(RecorderTest, SavesWhatIsAroundAnIncompleteEvent) {
    Recorder recorder(config(config::RecordMode::incomplete));
    Topology all(recorded(recorder));
    for (std::uint32_t i = 0; i < 2; ++i) recorder.connect(i, all.signals(i), true);
    recorder.start();
    all.start_threads();
    constexpr std::uint64_t incomplete = 200;
    for (std::uint64_t number = 0; number < 600; ++number)
        for (std::uint32_t source = 0; source < (number == incomplete ? 1U : 2U); ++source)
            feed(all,
                 {.source = source, .number = number, .time = static_cast<core::TimeNs>(number) * stages::test::ms});
    all.finish_threads();
    recorder.finish();
    expect_clean_end(all, pool_);
    EXPECT_EQ(all.count(assemble::EventCounter::incomplete_timeout), 1U);
    const Recorder::Status status = recorder.status();
    ASSERT_EQ(status.names.size(), 1U);
    EXPECT_EQ(status.triggers[static_cast<std::size_t>(stages::RecordTrigger::Reason::incomplete)], 1U);
    const std::multimap<core::TimeNs, Bytes> saved = read(folder_ / "test-0001.pcapng");
    ASSERT_FALSE(saved.empty());
    // From 20 ms before its first packet until 20 ms after its time-out.
    EXPECT_EQ(saved.begin()->first, start_ns + static_cast<core::TimeNs>(incomplete - 20) * ms);
    EXPECT_EQ(saved.rbegin()->first, start_ns + static_cast<core::TimeNs>(incomplete + 120) * ms);
    EXPECT_EQ(saved.size(), 2U * 141 - 1);
}

}  // namespace
}  // namespace weir::record::test

// `weir export --to hdf5 --virtual`: the HDF5 files of a cluster's builders as one run. What is in it, and what is
// refused. tests/store/hdf5_test.py reads the same by h5py.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "cluster_folder.hpp"
#include "store/hdf5/input_file.hpp"
#include "store/hdf5/tables.hpp"
#include "store/hdf5/writer.hpp"

namespace weir::store::test {
namespace {

constexpr std::uint32_t columns = 1024;
constexpr std::uint64_t message_bytes = std::uint64_t{2} * columns * sizeof(std::uint16_t);

struct Made {
    std::uint64_t id = 0;
    bool complete = true;
    std::uint32_t epoch = 0;
};

std::uint16_t pixel_of(std::uint64_t event, std::uint32_t source) {
    return static_cast<std::uint16_t>(100 * event + source);
}

class VirtualMasterTest : public ClusterFolder {
protected:
    struct Shape {
        const char* format = "jungfrau";
        std::uint32_t sources = 2;
        std::uint64_t bytes = message_bytes;
    };

    static json config_of(const Shape& shape) {
        json config = cluster_config();
        config["stream"] = {{{"format", shape.format}}};
        return config;
    }

    static EventInfo info_of(const Made& made, const Shape& shape) {
        EventInfo event;
        event.id = made.id;
        event.epoch = made.epoch;
        event.complete = made.complete;
        event.cause = made.complete ? Cause::complete : Cause::timeout;
        event.first_ns = static_cast<core::TimeNs>(1'000'000 * (1 + made.id));
        event.last_ns = event.first_ns + 5;
        event.packets = 2;
        for (std::uint32_t id = 0; id < shape.sources; ++id) {
            SourceInfo source;
            source.id = id;
            source.declared_bytes = source.received_bytes = shape.bytes;
            source.packets = 1;
            source.meta.assign(8, static_cast<std::byte>(made.id));
            if (!made.complete && id == 1) {
                source.state = SourceState::partial;
                source.missing = {{0, 8}, {16, 2}};
                source.received_bytes -= 10;
            }
            event.payload_bytes += source.received_bytes;
            event.sources.push_back(source);
        }
        return event;
    }

    static void put(hdf5::Writer& writer, const Made& made, const Shape& shape) {
        const EventInfo event = info_of(made, shape);
        writer.begin_event(event);
        for (const SourceInfo& source : event.sources) {
            const std::vector<std::uint16_t> pixels(source.received_bytes / 2, pixel_of(made.id, source.id));
            writer.put_payload(std::as_bytes(std::span(pixels)));
        }
        writer.end_event();
    }

    /// A builder's run: `node` is empty for one that says nothing of a cluster.
    void write_hdf5(const std::string& name, const std::vector<Made>& events, const std::string& node) const {
        write_hdf5(name, events, node, Shape());
    }
    void write_hdf5(const std::string& name, const std::vector<Made>& events, const std::string& node,
                    const Shape& shape, const json& config = {}) const {
        hdf5::Writer::Config how;
        how.path = folder_ / name;
        std::filesystem::create_directories(how.path.parent_path());
        how.name = "test";
        how.events_per_file = 5;
        json settings = config.is_null() ? config_of(shape) : config;
        how.start_json = json{{"config", settings}, {"machine", name}}.dump();
        hdf5::Writer writer(how);
        for (const Made& made : events) put(writer, made, shape);
        json members = {{"ledger", {{"events", {{"written", events.size()}}}}}};
        if (!node.empty()) members["cluster"] = builder_section(node, events.size());
        writer.close(members);
    }

    static std::vector<Made> made_of(const std::vector<std::uint64_t>& blocks) {
        std::vector<Made> events;
        for (const std::uint64_t block : blocks)
            for (std::uint64_t i = 0; i < block_events; ++i) events.push_back({block * block_events + i});
        return events;
    }

    void write_both() const {
        write_hdf5("bu0", made_of({0, 2}), "bu0");
        write_hdf5("bu1", made_of({1, 3}), "bu1");
    }

    /// With what it has said on standard error.
    [[nodiscard]] Said export_folder(std::vector<std::string> more = {}) const {
        more.insert(more.begin(), {folder_.string(), "--to", "hdf5", "--virtual"});
        testing::internal::CaptureStderr();
        Said said = execute(app::export_entry(), more);
        said.text += testing::internal::GetCapturedStderr();
        return said;
    }

    void expect_refused(const std::string& part) const {
        const Said said = export_folder();
        EXPECT_EQ(said.status, 1) << said.text;
        EXPECT_NE(said.text.find(part), std::string::npos) << said.text;
        for (const char* name : {"cluster.h5", ".cluster.h5.part"})
            EXPECT_FALSE(std::filesystem::exists(folder_ / name)) << name;
    }

    template <class T>
    static std::vector<T> read(const std::filesystem::path& master, const std::string& dataset, hid_t type) {
        const hdf5::InputFile file(master);
        const hdf5::Library library(master, "cannot read");
        const std::vector<hsize_t> shape = file.shape(dataset);
        std::vector<T> values(std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()));
        const hdf5::Handle opened =
            library.own(hdf5::h5().H5Dopen2(file.id(), dataset.c_str(), H5P_DEFAULT), hdf5::h5().H5Dclose);
        library.check(hdf5::h5().H5Dread(opened.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
        return values;
    }
    static std::vector<std::uint64_t> numbers(const std::filesystem::path& master, const std::string& dataset) {
        return read<std::uint64_t>(master, dataset, hdf5::h5().H5T_NATIVE_UINT64_g);
    }

    /// All that a reader finds of these events, in this order.
    static void check_images(const std::filesystem::path& master, const std::vector<Made>& events) {
        const hdf5::Session session;
        const auto number = numbers(master, "/entry/events/number");
        const auto epoch = numbers(master, "/entry/events/epoch");
        const auto complete = numbers(master, "/entry/events/complete");
        const auto first_ns = numbers(master, "/entry/events/first_ns");
        const auto missing_first = numbers(master, "/entry/sources/missing_first");
        const auto missing_count = numbers(master, "/entry/sources/missing_count");
        const auto missing_bytes = numbers(master, "/entry/missing/bytes");
        const auto header = numbers(master, "/entry/sources/header");
        const auto pixels = read<std::uint16_t>(master, "/entry/data/data", hdf5::h5().H5T_STD_U16LE_g);
        ASSERT_EQ(number.size(), events.size());
        ASSERT_EQ(pixels.size(), events.size() * message_bytes);  // two sources, two bytes each
        for (std::size_t i = 0; i < events.size(); ++i) {
            const Made& made = events[i];
            EXPECT_EQ(number[i], made.id);
            EXPECT_EQ(epoch[i], made.epoch);
            EXPECT_EQ(complete[i], made.complete ? 1U : 0U);
            EXPECT_EQ(first_ns[i], 1'000'000 * (1 + made.id));
            EXPECT_EQ(header[i * 128], made.id);
            EXPECT_EQ(pixels[i * message_bytes], pixel_of(made.id, 0));
            EXPECT_EQ(pixels[(i + 1) * message_bytes - 1], pixel_of(made.id, 1));
            EXPECT_EQ(missing_count[2 * i + 1], made.complete ? 0U : 2U);
            if (made.complete) continue;
            EXPECT_EQ(pixels[i * message_bytes + message_bytes / 2], 65535);
            EXPECT_EQ(missing_bytes.at(missing_first[2 * i + 1]), 8U);
            EXPECT_EQ(missing_bytes.at(missing_first[2 * i + 1] + 1), 2U);
        }
    }

    [[nodiscard]] std::filesystem::path master() const { return folder_ / "cluster.h5"; }
};

TEST_F(VirtualMasterTest, AllEventsAreInOrder) {
    write_both();
    const Said said = export_folder();
    EXPECT_EQ(said.status, 0) << said.text;
    EXPECT_NE(said.text.find("16 events of 2 runs"), std::string::npos) << said.text;
    EXPECT_NE(said.text.find("4 data files"), std::string::npos) << said.text;
    check_images(master(), made_of({0, 1, 2, 3}));
}

TEST_F(VirtualMasterTest, EverythingOfOneRunIsThere) {
    write_both();
    ASSERT_EQ(export_folder().status, 0);
    const hdf5::Session session;
    const hdf5::InputFile file(master());
    for (const char* name : {"/entry/title", "/entry/start_time", "/entry/end_time", "/entry/weir/start",
                             "/entry/instrument/detector/module_0/data_origin", "/entry/instrument/detector/data",
                             "/entry/data/event", "/entry/data/data_000003", "/entry/weir/runs/000001/ledger"})
        EXPECT_TRUE(file.has(name)) << name;
    EXPECT_EQ(file.text("/entry/start_time"), "1970-01-01T00:00:00.001000Z");
    EXPECT_EQ(file.text("/entry/end_time"), "1970-01-01T00:00:00.016000Z");
    hdf5::Layout layout;
    layout.image = true;
    layout.sources = {0, 1};
    for (const hdf5::ColumnKind& kind : hdf5::column_kinds(layout))
        EXPECT_TRUE(file.has(std::string("/entry/") + kind.group + "/" + kind.name)) << kind.name;
}

TEST_F(VirtualMasterTest, RowsMayBeInAnyOrder) {
    std::vector<Made> first = made_of({0, 2, 4});
    std::swap(first[1], first[2]);
    std::swap(first[3], first[6]);
    std::ranges::reverse(first.begin() + 8, first.end());
    write_hdf5("bu0", first, "bu0");
    write_hdf5("bu1", made_of({3, 1}), "bu1");
    ASSERT_EQ(export_folder().status, 0);
    check_images(master(), made_of({0, 1, 2, 3, 4}));
}

TEST_F(VirtualMasterTest, EpochsComeBeforeNumbers) {
    write_hdf5("bu0", {{7}, {2, true, 1}}, "bu0");
    write_hdf5("bu1", {{8}, {1, true, 1}}, "bu1");
    ASSERT_EQ(export_folder().status, 0);
    check_images(master(), {{7}, {8}, {1, true, 1}, {2, true, 1}});
}

TEST_F(VirtualMasterTest, MissingRangesAreThoseOfTheEvent) {
    write_hdf5("bu0", {{0}, {1, false}, {2}, {3}, {8}, {9}, {10, false}, {11}}, "bu0");
    write_hdf5("bu1", {{4, false}, {5}, {6}, {7, false}}, "bu1");
    ASSERT_EQ(export_folder().status, 0);
    check_images(master(), {{0}, {1, false}, {2}, {3}, {4, false}, {5}, {6}, {7, false}, {8}, {9}, {10, false}, {11}});
}

TEST_F(VirtualMasterTest, OfTwoCopiesTheCompleteOneCounts) {
    write_hdf5("bu0", {{0}, {1, false}, {2}}, "bu0");
    write_hdf5("bu1", {{1}, {2, false}, {3}}, "bu1");
    const Said said = export_folder();
    EXPECT_EQ(said.status, 0);
    EXPECT_NE(said.text.find("2 copies of events"), std::string::npos) << said.text;
    check_images(master(), {{0}, {1}, {2}, {3}});
}

TEST_F(VirtualMasterTest, StreamsOfBytesToo) {
    const Shape shape{"ejfat", 2, 300'000};
    write_hdf5("bu0", {{0}, {1, false}, {4}}, "bu0", shape);
    write_hdf5("bu1", {{2}, {3}}, "bu1", shape);
    ASSERT_EQ(export_folder().status, 0);
    const hdf5::Session session;
    const auto number = numbers(master(), "/entry/events/number");
    const auto offset = numbers(master(), "/entry/sources/payload_offset");
    const auto bytes = numbers(master(), "/entry/sources/payload_bytes");
    const auto payload = read<std::uint8_t>(master(), "/entry/data/payload", hdf5::h5().H5T_NATIVE_UINT8_g);
    ASSERT_EQ(number, (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
    ASSERT_EQ(payload.size(), 10U * 300'000 - 10);
    for (std::size_t i = 0; i < number.size(); ++i)
        for (std::uint32_t source = 0; source < 2; ++source) {
            const std::uint64_t at = offset[2 * i + source];
            EXPECT_EQ(bytes[2 * i + source], i == 1 && source == 1 ? 299'990U : 300'000U);
            for (const std::uint64_t byte : {at, at + bytes[2 * i + source] - 2})
                EXPECT_EQ(payload.at(byte) + 256 * payload.at(byte + 1), pixel_of(number[i], source)) << i;
        }
}

TEST_F(VirtualMasterTest, TheFolderMayBeMoved) {
    const std::filesystem::path all = directory_.path();
    folder_ = all / "run%b7";
    write_hdf5("node 0/bu0%d", made_of({0, 2}), "bu0");
    write_hdf5("node 1/bu1", made_of({1, 3}), "bu1");
    ASSERT_EQ(export_folder().status, 0);
    std::filesystem::create_directories(all / "there");
    std::filesystem::rename(folder_, all / "there" / "moved");
    check_images(all / "there" / "moved" / "cluster.h5", made_of({0, 1, 2, 3}));
}

TEST_F(VirtualMasterTest, ItMayLieElsewhere) {
    const std::filesystem::path all = directory_.path();
    folder_ = all / "run7";
    write_both();
    std::filesystem::create_directories(all / "views");
    const std::filesystem::path out = all / "views" / "master.h5";
    ASSERT_EQ(export_folder({"--out", out.string()}).status, 0);
    check_images(out, made_of({0, 1, 2, 3}));
    std::filesystem::create_directories(all / "elsewhere");
    for (const char* name : {"run7", "views"}) std::filesystem::rename(all / name, all / "elsewhere" / name);
    check_images(all / "elsewhere" / "views" / "master.h5", made_of({0, 1, 2, 3}));
}

TEST_F(VirtualMasterTest, WhatExistsIsNotOverwritten) {
    write_both();
    std::ofstream(master()) << "mine";
    const Said said = export_folder();
    EXPECT_EQ(said.status, 1);
    EXPECT_NE(said.text.find("exists already"), std::string::npos) << said.text;
    EXPECT_EQ(std::filesystem::file_size(master()), 4U);
    // A master.h5 in the folder would hide the runs of builders beside it.
    EXPECT_EQ(export_folder({"--out", (folder_ / "master.h5").string()}).status, 2);
    EXPECT_EQ(export_folder({"--out", (folder_ / "another.h5").string()}).status, 0);
    check_images(folder_ / "another.h5", made_of({0, 1, 2, 3}));
}

TEST_F(VirtualMasterTest, ABuilderWithoutARunIsNamed) {
    write_hdf5("bu0", made_of({0}), "bu0");
    const Said said = export_folder();
    EXPECT_EQ(said.status, 1);
    EXPECT_NE(said.text.find("no run of the builder bu1"), std::string::npos) << said.text;
    check_images(master(), made_of({0}));
}

TEST_F(VirtualMasterTest, ABuilderMayHaveNoEvent) {
    write_hdf5("bu0", {}, "bu0");
    write_hdf5("bu1", made_of({0}), "bu1");
    EXPECT_EQ(export_folder().status, 0);
    check_images(master(), made_of({0}));
}

TEST_F(VirtualMasterTest, FoldersWithoutSuchRunsAreRefused) {
    expect_refused("has no runs as HDF5 files");
    write_hdf5("bu0", {}, "bu0");
    expect_refused("have no event");
    folder_ = folder_ / "bu0";
    expect_refused("is itself one run");
    folder_ = folder_ / "nowhere";
    expect_refused("is no folder");
}

TEST_F(VirtualMasterTest, UnfinishedRunsAreRefused) {
    write_both();
    std::filesystem::rename(folder_ / "bu1", folder_ / ".bu1.part");
    expect_refused(".bu1.part is not finished");
}

TEST_F(VirtualMasterTest, IncompleteRunsAreRefused) {
    write_both();
    std::filesystem::rename(folder_ / "bu1" / "data-000001.h5", folder_ / "away.h5");
    expect_refused("bu1/data-000001.h5 is missing");
    std::filesystem::rename(folder_ / "away.h5", folder_ / "bu1" / "data-000001.h5");
    std::filesystem::rename(folder_ / "bu1" / "master.h5", folder_ / "away.h5");
    expect_refused("bu1/master.h5 is missing");
}

TEST_F(VirtualMasterTest, FilesOfOtherRunsAreRefused) {
    write_both();
    std::filesystem::copy(folder_ / "bu0" / "data-000001.h5", folder_ / "bu1" / "data-000002.h5");
    expect_refused("bu1/data-000002.h5 is of another run");
    std::filesystem::rename(folder_ / "bu1" / "data-000002.h5", folder_ / "bu1" / "data-000001.h5");
    expect_refused("bu1/data-000001.h5 is of another run");
    std::filesystem::remove(folder_ / "bu1" / "data-000001.h5");
    std::filesystem::copy(folder_ / "bu1" / "data-000000.h5", folder_ / "bu1" / "data-000001.h5");
    expect_refused("its first event is number 0 of the run, and not 5");
}

TEST_F(VirtualMasterTest, DamagedFilesAreRefused) {
    write_both();
    const std::filesystem::path file = folder_ / "bu1" / "data-000001.h5";
    const auto size = std::filesystem::file_size(file);
    std::filesystem::resize_file(file, size / 2);
    expect_refused("bu1/data-000001.h5");
    std::ofstream(file) << "no HDF5";
    expect_refused("bu1/data-000001.h5");
    std::ofstream(folder_ / "bu1" / "master.h5") << "";
    expect_refused("bu1/master.h5");
}

TEST_F(VirtualMasterTest, RunsThatDoNotBelongTogetherAreRefused) {
    write_hdf5("bu0", made_of({0}), "bu0");
    write_hdf5("other", made_of({1}), "", Shape(), {{"stream", {{{"format", "jungfrau"}}}}});
    expect_refused("other is a run of no cluster");
    std::filesystem::remove_all(folder_ / "other");
    json config = config_of(Shape());
    config["cluster"]["block"] = 8;
    write_hdf5("other", made_of({1}), "", Shape(), config);
    expect_refused("holds runs of different clusters: bu0 and other");
}

TEST_F(VirtualMasterTest, OtherImagesAreRefused) {
    write_hdf5("bu0", made_of({0}), "bu0");
    write_hdf5("bu1", made_of({1}), "bu1", {"jungfrau", 2, 2 * message_bytes});
    expect_refused("bu1/data-000000.h5 does not fit");
    std::filesystem::remove_all(folder_ / "bu1");
    write_hdf5("bu1", made_of({1}), "bu1", {"jungfrau", 3, message_bytes});
    expect_refused("of the sources 0, 1, 2; that has images of 4 x 1024 u16, of the sources 0, 1");
    std::filesystem::remove_all(folder_ / "bu1");
    write_hdf5("bu1", made_of({1}), "bu1", {"ejfat", 2, 100});
    expect_refused("it has a stream of bytes");
}

TEST_F(VirtualMasterTest, OptionsThatWouldBeIgnoredAreRefused) {
    write_both();
    for (const std::vector<std::string>& more :
         {std::vector<std::string>{"--events", "1-2"}, {"--complete"}, {"--codec", "lz4"}, {"--source", "1"}}) {
        const Said said = export_folder(more);
        EXPECT_EQ(said.status, 2) << more.front();
        EXPECT_NE(said.text.find("does not go with --virtual"), std::string::npos) << said.text;
    }
    EXPECT_EQ(execute(app::export_entry(), {folder_.string(), "--to", "npy", "--virtual"}).status, 2);
}

}  // namespace
}  // namespace weir::store::test

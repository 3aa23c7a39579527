// Snapshots of pedestals: what is read is what was written, and what is not whole is none.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "core/error.hpp"
#include "reduce/pixels/calibration.hpp"
#include "reduce/pixels/plane_files.hpp"
#include "store/pedestal_snapshot.hpp"
#include "temporary_directory.hpp"

namespace weir::store {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class PedestalSnapshots : public testing::Test {
protected:
    PedestalSnapshots() : state(reduce::jungfrau_pixels), mean(reduce::jungfrau_pixels), rms(reduce::jungfrau_pixels) {
        std::mt19937 random(1);
        for (std::size_t i = 0; i < mean.size(); ++i) {
            state.mean[i] = random() % 100 == 0 ? nan : 2700 + static_cast<double>(random()) * 1e-9;
            state.variance[i] = static_cast<float>(random()) * 1e-8F;
            state.weight[i] = 1000;
            mean[i] = static_cast<float>(state.mean[i]);
            rms[i] = std::sqrt(state.variance[i]);
        }
        about.gain = 1;
        about.window = 1000;
        about.generation = 12;
        about.dark_frames = 120;
        about.first_event = 5;
        about.last_epoch = 1;
        about.last_event = 605;
        about.created_ns = 1'700'000'000'000'000'000;
        about.run = "night";
    }

    [[nodiscard]] std::filesystem::path write() const {
        return write_pedestal_snapshot(folder, about, state, mean, rms);
    }
    [[nodiscard]] reduce::PedestalState read(const std::filesystem::path& path) const {
        PedestalSnapshot wanted;
        wanted.gain = 1;
        return read_pedestal_snapshot(path, wanted);
    }
    void expect_refused(const std::filesystem::path& path, const std::string& words) const {
        try {
            (void)read(path);
            ADD_FAILURE() << path << " was taken";
        } catch (const core::UsageError& error) {
            EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
        }
    }

    const weir::test::TemporaryDirectory folder;
    PedestalSnapshot about;
    reduce::PedestalState state;
    std::vector<float> mean;
    std::vector<float> rms;
};

TEST_F(PedestalSnapshots, GiveBackEveryBit) {
    const std::filesystem::path path = write();
    EXPECT_EQ(path, folder / "pedestal-0001.json");
    PedestalSnapshot wanted;
    wanted.gain = 1;
    const reduce::PedestalState found = read_pedestal_snapshot(path, wanted);
    EXPECT_EQ(wanted, about);
    for (std::size_t i = 0; i < state.mean.size(); ++i) {
        if (std::isnan(state.mean[i]))
            ASSERT_TRUE(std::isnan(found.mean[i]));
        else
            ASSERT_EQ(found.mean[i], state.mean[i]);
    }
    EXPECT_EQ(found.variance, state.variance);
    EXPECT_EQ(found.weight, state.weight);
    // By any of its names.
    EXPECT_EQ(read(folder / "pedestal-0001.f32").variance, state.variance);
    // As `jungfrau` reads them: bad pixels are 0.
    const reduce::PlaneFiles file("pedestal", {folder / "pedestal-0001.f32"}, 1, {1}, {4, 8});
    const std::vector<double> plane = file.read(0, 0);
    for (std::size_t i = 0; i < plane.size(); ++i) ASSERT_EQ(plane[i], std::isnan(mean[i]) ? 0 : mean[i]);
}

TEST_F(PedestalSnapshots, AreNumberedBehindWhatIsThere) {
    (void)write();
    std::ofstream(folder / "pedestal-0004.f32") << "left over from a crash";
    std::ofstream(folder / ".pedestal-0005.state.part") << "left over from a crash";
    std::ofstream(folder / "pedestal-x.json") << "not ours";
    EXPECT_EQ(write(), folder / "pedestal-0005.json");
    EXPECT_EQ(last_pedestal_snapshot(folder, 1), folder / "pedestal-0005.json");
    EXPECT_EQ(last_pedestal_snapshot(folder, 0), std::nullopt);
    EXPECT_EQ(last_pedestal_snapshot(folder / "nowhere", 1), std::nullopt);
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        EXPECT_NE(entry.path().extension(), ".part") << entry.path();
}

TEST_F(PedestalSnapshots, ThatAreNotWholeAreRefused) {
    const std::filesystem::path path = write();
    about.gain = 0;
    expect_refused(write(), "gain: found 0; accepted: 1");
    std::filesystem::resize_file(folder / "pedestal-0001.state", 1000);
    expect_refused(path, "found 1000 bytes");
    std::filesystem::remove(folder / "pedestal-0001.state");
    expect_refused(path, "pedestal-0001.state");
    std::ofstream(path) << "{ \"format\": \"weir pedestal 1\", \"gain\": 1 }";
    expect_refused(path, "lacks something");
    std::ofstream(path) << "[1, 2";
    expect_refused(path, "not the JSON file");
    expect_refused(folder / "pedestal-0099.json", "pedestal-0099.json");
}

TEST_F(PedestalSnapshots, ADamagedOneIsRefused) {
    const std::filesystem::path path = write();
    std::fstream file(folder / "pedestal-0001.state", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(12345);
    file.put('\x55');
    file.close();
    expect_refused(path, "damaged");
}

}  // namespace
}  // namespace weir::store

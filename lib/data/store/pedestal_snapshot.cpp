#include "store/pedestal_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "core/foreign_json.hpp"
#include "reduce/pixels/calibration.hpp"
#include "store/file.hpp"

namespace weir::store {

namespace {

using core::RunError;
using core::UsageError;
using nlohmann::json;

constexpr std::string_view format_name = "weir pedestal 1";
constexpr std::string_view prefix = "pedestal-";

std::span<const std::byte> bytes_of(const auto& values) {
    return std::as_bytes(std::span(values));
}

/// Of "pedestal-0012.json": 12; 0 for other names.
std::uint32_t number_of(const std::filesystem::path& path) {
    const std::string name = path.filename().string();
    if (!name.starts_with(prefix)) return 0;
    const char* first = name.data() + prefix.size();
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(first, name.data() + name.size(), number);
    return error == std::errc() && end != first && *end == '.' ? number : 0;
}

/// Files that get their names only when they are on the device.
class Writer {
public:
    explicit Writer(const std::filesystem::path& folder) : folder_(folder) {
        std::error_code error;
        std::filesystem::create_directories(folder, error);
        std::uint32_t number = 0;
        for (const auto& entry : std::filesystem::directory_iterator(folder, error))
            number = std::max(number, number_of(entry.path()));
        if (error) throw RunError(fmt::format("{}: cannot be listed: {}", folder.string(), error.message()));
        base_ = fmt::format("{}{:04}", prefix, number + 1);
    }

    /// Returns its place in the JSON text.
    json put(const std::string& suffix, std::initializer_list<std::span<const std::byte>> parts) {
        const std::string name = base_ + suffix;
        const std::filesystem::path part = folder_ / ("." + name + ".part");
        std::error_code error;
        std::filesystem::remove(part, error);
        File file = File::create(part);
        std::uint64_t at = 0;
        std::uint32_t crc = 0;
        for (const auto& bytes : parts) {
            file.write_at(at, bytes);
            crc = core::crc32c(bytes, crc);
            at += bytes.size();
        }
        file.sync();
        file.close();
        rename_new(part, folder_ / name);
        return {{"file", name}, {"bytes", at}, {"crc32c", crc}};
    }
    void sync() { Directory(folder_).sync(); }
    [[nodiscard]] std::filesystem::path path(const std::string& suffix) const { return folder_ / (base_ + suffix); }

private:
    std::filesystem::path folder_;
    std::string base_;
};

/// What `jungfrau` reads: 0 for a pixel without a pedestal, which is how it knows a bad one.
std::vector<float> pedestal_plane(const reduce::PedestalState& state, std::span<const float> mean) {
    std::vector<float> plane(mean.begin(), mean.end());
    for (std::size_t i = 0; i < plane.size(); ++i) {
        if (plane[i] == 0 && state.weight[i] > 0) plane[i] = static_cast<float>(state.mean[i]);
        if (std::isnan(plane[i])) plane[i] = 0;
    }
    return plane;
}

std::vector<std::byte> read_all(const std::filesystem::path& path) {
    try {
        File file = File::open_to_read(path);
        std::vector<std::byte> bytes(file.size());
        bytes.resize(file.read_at(0, bytes));
        return bytes;
    } catch (const RunError& error) {
        throw UsageError(error.what());
    }
}

json read_json(const std::filesystem::path& path) {
    const std::vector<std::byte> bytes = read_all(path);
    std::optional<json> about = core::read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!about || !about->is_object() || about->value("format", json()) != format_name)
        throw UsageError(
            fmt::format("{}: not the JSON file of a snapshot of pedestals ('{}')", path.string(), format_name));
    return *std::move(about);
}

void take_about(const json& about, PedestalSnapshot& out) {
    out.window = about.at("window_frames").get<std::uint32_t>();
    out.generation = about.at("generation").get<std::uint32_t>();
    out.dark_frames = about.at("dark_frames").get<std::uint64_t>();
    out.created_ns = about.at("created_ns").get<core::TimeNs>();
    out.run = about.at("run").get<std::string>();
    out.first_epoch = about.at("first_event").at(0).get<std::uint32_t>();
    out.first_event = about.at("first_event").at(1).get<std::uint64_t>();
    out.last_epoch = about.at("last_event").at(0).get<std::uint32_t>();
    out.last_event = about.at("last_event").at(1).get<std::uint64_t>();
}

void check_wanted(const std::filesystem::path& path, const json& about, const PedestalSnapshot& wanted) {
    const auto check = [&](const char* key, std::uint32_t value) {
        const auto found = about.at(key).get<std::uint32_t>();
        if (found != value)
            throw UsageError(
                fmt::format("{}: {}: found {}; accepted: {}, as in this run", path.string(), key, found, value));
    };
    check("gain", wanted.gain);
    check("modules", wanted.modules);
    check("storage_cells", wanted.storage_cells);
}

reduce::PedestalState read_state(const std::filesystem::path& path, const json& about, std::size_t pixels) {
    const json& entry = about.at("files").at("state");
    const std::filesystem::path file =
        path.parent_path() / std::filesystem::path(entry.at("file").get<std::string>()).filename();
    const std::vector<std::byte> bytes = read_all(file);
    reduce::PedestalState state(pixels);
    const std::size_t expected = pixels * (sizeof(double) + 2 * sizeof(float));
    if (bytes.size() != expected)
        throw UsageError(fmt::format("{}: found {} bytes; accepted: {}", file.string(), bytes.size(), expected));
    if (core::crc32c(bytes) != entry.at("crc32c").get<std::uint32_t>())
        throw UsageError(fmt::format("{}: damaged: its checksum is not the one in {}", file.string(), path.string()));
    const std::byte* from = bytes.data();
    const auto take = [&from](auto& values) {
        std::memcpy(values.data(), from, values.size() * sizeof values[0]);
        from += values.size() * sizeof values[0];
    };
    take(state.mean);
    take(state.variance);
    take(state.weight);
    return state;
}

}  // namespace

std::size_t PedestalSnapshot::pixels() const noexcept {
    return std::size_t{modules} * storage_cells * reduce::jungfrau_pixels;
}

std::filesystem::path write_pedestal_snapshot(const std::filesystem::path& folder, const PedestalSnapshot& about,
                                              const reduce::PedestalState& state, std::span<const float> mean,
                                              std::span<const float> rms) {
    Writer writer(folder);
    const std::vector<float> plane = pedestal_plane(state, mean);
    json text = {{"format", format_name},
                 {"gain", about.gain},
                 {"modules", about.modules},
                 {"storage_cells", about.storage_cells},
                 {"rows", reduce::jungfrau_rows},
                 {"columns", reduce::jungfrau_columns},
                 {"unit", "ADU"},
                 {"window_frames", about.window},
                 {"generation", about.generation},
                 {"dark_frames", about.dark_frames},
                 {"first_event", {about.first_epoch, about.first_event}},
                 {"last_event", {about.last_epoch, about.last_event}},
                 {"created_ns", about.created_ns},
                 {"run", about.run}};
    text["files"]["pedestal"] = writer.put(".f32", {bytes_of(plane)});
    text["files"]["rms"] = writer.put(".rms.f32", {std::as_bytes(rms)});
    text["files"]["state"] =
        writer.put(".state", {bytes_of(state.mean), bytes_of(state.variance), bytes_of(state.weight)});
    writer.sync();
    // Last, so that whoever finds it finds the rest.
    const std::string dump = text.dump(1) + "\n";
    writer.put(".json", {std::as_bytes(std::span(dump))});
    writer.sync();
    return writer.path(".json");
}

reduce::PedestalState read_pedestal_snapshot(const std::filesystem::path& path, PedestalSnapshot& wanted) {
    std::filesystem::path file = path;
    if (const std::uint32_t number = number_of(path); number != 0 && path.extension() != ".json")
        file = path.parent_path() / (path.filename().string().substr(0, path.filename().string().find('.')) + ".json");
    const json about = read_json(file);
    try {
        check_wanted(file, about, wanted);
        take_about(about, wanted);
        return read_state(file, about, wanted.pixels());
    } catch (const json::exception& error) {
        throw UsageError(
            fmt::format("{}: a snapshot of pedestals that lacks something: {}", file.string(), error.what()));
    }
}

std::optional<std::filesystem::path> last_pedestal_snapshot(const std::filesystem::path& folder, std::uint32_t gain) {
    std::vector<std::filesystem::path> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
        if (number_of(entry.path()) != 0 && entry.path().extension() == ".json") found.push_back(entry.path());
    std::ranges::sort(found, std::greater(), [](const auto& path) { return number_of(path); });
    for (const auto& path : found)
        if (read_json(path).value("gain", ~0U) == gain) return path;
    return std::nullopt;
}

}  // namespace weir::store

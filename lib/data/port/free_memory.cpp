#include "port/free_memory.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

namespace weir::port {

namespace {

namespace fs = std::filesystem;

/// The first number of a file; nothing for "max", and where there is no such file.
std::optional<std::uint64_t> number_in(const fs::path& file) {
    std::uint64_t value = 0;
    std::ifstream in(file);
    return in >> value ? std::optional(value) : std::nullopt;
}

/// The number after a key at the beginning of a line, or 0.
std::uint64_t value_of(const fs::path& file, std::string_view key) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string name;
        std::uint64_t value = 0;
        if (words >> name >> value && name == key) return value;
    }
    return 0;
}

struct Names {
    const char* limit;
    const char* used;
    const char* active;
    const char* inactive;
};
constexpr Names version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file", "total_inactive_file"};
constexpr Names version_2{"memory.max", "memory.current", "active_file", "inactive_file"};

/// What a group leaves: pages of files count as used there, and are given up first.
std::optional<std::uint64_t> left_in(const fs::path& group, const Names& names) {
    const std::optional<std::uint64_t> limit = number_in(group / names.limit);
    const std::optional<std::uint64_t> used = number_in(group / names.used);
    if (!limit.has_value() || !used.has_value()) return std::nullopt;
    const fs::path statistics = group / "memory.stat";
    const std::uint64_t files = value_of(statistics, names.active) + value_of(statistics, names.inactive);
    const std::uint64_t held = *used - std::min(*used, files);
    return *limit - std::min(*limit, held);
}

/// Of the group and all that it is in: each has a limit of its own.
void look_at_groups(const fs::path& mount, std::string path, const Names& names, FreeMemory& found) {
    for (;;) {
        if (const auto left = left_in(mount / fs::path(path).relative_path(), names);
            left.has_value() && *left < found.bytes) {
            found.bytes = *left;
            found.limited_by = "the memory limit of the control group " + path;
        }
        if (path.size() <= 1) return;
        path = fs::path(path).parent_path();
    }
}

}  // namespace

FreeMemory free_memory(const fs::path& root, const std::string& control_group) {
    FreeMemory found;
    constexpr std::uint64_t kib = 1024;
    found.bytes = value_of(root / "proc/meminfo", "MemAvailable:") * kib;
    found.known = found.bytes > 0;
    if (!found.known) return found;
    found.limited_by = "the machine (MemAvailable)";
    std::istringstream groups(control_group);
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == std::string::npos || second == std::string::npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const std::string path = line.substr(second + 1);
        if (controllers == ",,")
            look_at_groups(root / "sys/fs/cgroup", path, version_2, found);
        else if (controllers.find(",memory,") != std::string::npos)
            look_at_groups(root / "sys/fs/cgroup/memory", path, version_1, found);
    }
    return found;
}

FreeMemory free_memory() {
    std::ifstream file("/proc/self/cgroup");
    return free_memory("/", std::string(std::istreambuf_iterator<char>(file), {}));
}

}  // namespace weir::port

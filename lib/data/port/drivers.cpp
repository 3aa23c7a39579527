#include "port/drivers.hpp"

#include <fcntl.h>
#include <rte_build_config.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "config/device_facts.hpp"

namespace weir::port {

namespace {

constexpr const char* folder = RTE_EAL_PMD_PATH;
/// Set before rte_eal_init, by the thread that calls it. The first time it asks it asks whether to load all of it.
thread_local bool folder_is_hidden = false;

/// "/.../librte_net_pcap.so.23.0": the folder's name ends with the version.
std::string file_of(const std::string& driver) {
    const std::string_view path = folder;
    const std::size_t version = path.rfind('-');
    if (version == std::string_view::npos) return {};
    return std::string(path) + "/librte_" + driver + ".so." + std::string(path.substr(version + 1));
}

bool is_installed(const std::string& driver) {
    struct ::stat found {};
    return ::fstatat(AT_FDCWD, file_of(driver).c_str(), &found, 0) == 0;
}

}  // namespace

Drivers drivers_of(const std::vector<std::string>& devices) {
    std::vector<std::string> drivers;
    for (const std::string& device : devices) {
        std::string driver = config::driver_of(device);
        if (driver == "sim") continue;                // a ring, which weir is linked with
        if (driver == "kernel") driver = "net_null";  // what weir's own device looks like to DPDK
        if (!is_installed(driver)) return std::nullopt;
        if (std::ranges::find(drivers, driver) == drivers.end()) drivers.push_back(std::move(driver));
    }
    return drivers;
}

OnlyNamedDrivers::OnlyNamedDrivers(const Drivers& drivers) {
    if (!drivers) return;
    std::vector<std::string> named{"mempool_ring", "mempool_stack"};  // what pools are made of
    named.insert(named.end(), drivers->begin(), drivers->end());
    if (!std::ranges::all_of(named, is_installed)) return;
    for (const std::string& driver : named) arguments_.insert(arguments_.end(), {"-d", file_of(driver)});
    folder_is_hidden = true;
}

OnlyNamedDrivers::~OnlyNamedDrivers() {
    folder_is_hidden = false;
}

}  // namespace weir::port

// EAL of DPDK 22.11 has no option to leave its folder of drivers alone, but it asks by this function whether it is
// there. This one takes the C library's place in the program. Should another DPDK ask in another way, all drivers are
// loaded.
extern "C" __attribute__((visibility("default"))) int stat64(const char* path, struct stat64* found) noexcept {
    if (weir::port::folder_is_hidden && std::strcmp(path, weir::port::folder) == 0) {
        weir::port::folder_is_hidden = false;
        errno = ENOENT;
        return -1;
    }
    return ::fstatat64(AT_FDCWD, path, found, 0);
}

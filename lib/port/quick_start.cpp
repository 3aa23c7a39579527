#include "port/quick_start.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <rte_build_config.h>
#include <rte_eal.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

namespace weir::port {

namespace {

constexpr std::string_view driver_folder = RTE_EAL_PMD_PATH;
constexpr long calibration_ns = 100'000'000;
thread_local constinit bool is_quick = false;

}  // namespace

QuickStart::QuickStart() noexcept {
    is_quick = true;
}

QuickStart::~QuickStart() {
    is_quick = false;
}

bool QuickStart::load_pool_drivers() {
    // Of the version that EAL itself has: its file is called librte_eal.so.23.
    Dl_info eal{};
    if (::dladdr(reinterpret_cast<const void*>(&::rte_eal_init), &eal) == 0) return false;
    const std::string_view name = eal.dli_fname;
    const std::size_t suffix = name.rfind(".so.");
    if (suffix == std::string_view::npos) return false;
    // A pool begins as one of rings.
    return std::ranges::all_of(std::array{"ring", "stack"}, [&](std::string_view kind) {
        const std::string file = fmt::format("{}/librte_mempool_{}{}", driver_folder, kind, name.substr(suffix));
        return ::dlopen(file.c_str(), RTLD_NOW) != nullptr;
    });
}

}  // namespace weir::port

// Libraries find the program's own functions before those of the C library.

extern "C" int nanosleep(const timespec* wanted, timespec* left) {
    timespec sleep = *wanted;
    if (weir::port::is_quick && sleep.tv_sec == 0 && sleep.tv_nsec == weir::port::calibration_ns) sleep.tv_nsec /= 10;
    const int error = ::clock_nanosleep(CLOCK_REALTIME, 0, &sleep, left);
    if (error == 0) return 0;
    errno = error;
    return -1;
}

extern "C" int stat64(const char* path, struct stat64* out) {
    if (weir::port::is_quick && path == weir::port::driver_folder) {
        errno = ENOENT;
        return -1;
    }
    return ::fstatat64(AT_FDCWD, path, out, 0);
}

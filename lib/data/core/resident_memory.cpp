#include "core/resident_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weir::core {

void touch(void* memory, std::size_t bytes) noexcept {
    if (memory == nullptr || bytes == 0) return;
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = address / page * page;
    const std::uintptr_t end = (address + bytes + page - 1) / page * page;
#ifdef MADV_POPULATE_WRITE
    if (::madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE) == 0) return;
#endif
    // Kernels before 5.14: each page is written to, with what it holds.
    for (std::uintptr_t at = std::uintptr_t{0}; at < bytes; at += page) {
        auto* byte = static_cast<volatile unsigned char*>(memory) + at;
        *byte = *byte;
    }
    auto* last = static_cast<volatile unsigned char*>(memory) + bytes - 1;
    *last = *last;
}

std::string lock_memory(std::uint64_t bytes) {
    // On fault: much is reserved that is never used. Only what is there now: what comes later is not hot.
    if (::mlockall(MCL_CURRENT | MCL_ONFAULT) == 0) return {};
    const int reason = errno;
    rlimit limit{};
    constexpr unsigned mib = 20;
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        return fmt::format(
            "memory is not locked, so that the kernel may swap it out in the middle of a run: "
            "RLIMIT_MEMLOCK is {} KiB, and about {} MiB are in use (ulimit -l unlimited, LimitMEMLOCK=infinity, "
            "or CAP_IPC_LOCK)",
            limit.rlim_cur >> 10U, bytes >> mib);
    return fmt::format("memory is not locked, so that the kernel may swap it out in the middle of a run: {}",
                       std::strerror(reason));
}

}  // namespace weir::core

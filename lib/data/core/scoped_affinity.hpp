// Where the threads run that are started meanwhile.
#pragma once

#include <sched.h>

#include <cstdint>
#include <span>

namespace weir::core {

/// While it lives, this thread runs on these CPUs only, and the threads that it starts for good: libraries start theirs
/// wherever who first calls them may run. None given, or not allowed: nothing changes.
class ScopedAffinity {
public:
    explicit ScopedAffinity(std::span<const std::uint32_t> cpus) noexcept {
        cpu_set_t set;
        CPU_ZERO(&set);
        for (const std::uint32_t cpu : cpus)
            if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
        changed_ = CPU_COUNT(&set) > 0 && ::sched_getaffinity(0, sizeof before_, &before_) == 0 &&
                   ::sched_setaffinity(0, sizeof set, &set) == 0;
    }
    ~ScopedAffinity() {
        if (changed_) ::sched_setaffinity(0, sizeof before_, &before_);
    }
    ScopedAffinity(const ScopedAffinity&) = delete;
    ScopedAffinity& operator=(const ScopedAffinity&) = delete;

private:
    cpu_set_t before_{};
    bool changed_ = false;
};

}  // namespace weir::core

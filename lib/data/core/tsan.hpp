// For ThreadSanitizer only: says that two threads are ordered by something it cannot see, namely by what happens inside
// DPDK's libraries (mempools, the launch of lcores), which are not instrumented. Nothing in other builds.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define WEIR_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEIR_TSAN 1
#endif
#endif

#ifdef WEIR_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace weir::core {

/// What this thread did before is visible to who calls tsan_acquire with the same address later.
inline void tsan_release([[maybe_unused]] void* address) noexcept {
#ifdef WEIR_TSAN
    __tsan_release(address);
#endif
}

inline void tsan_acquire([[maybe_unused]] void* address) noexcept {
#ifdef WEIR_TSAN
    __tsan_acquire(address);
#endif
}

}  // namespace weir::core

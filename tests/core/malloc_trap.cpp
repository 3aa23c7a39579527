// A preloaded library that ends the program when a thread which declared itself hot (core/hot_thread.hpp) allocates or
// frees. Not part of weir: tests run under it, and `LD_PRELOAD=build/tests/libweir_malloc_trap.so weir run ...` works
// as well.
#include <execinfo.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

// In the program, which is linked so that it exports its symbols; absent in programs that are not weir's.
extern "C" __attribute__((weak)) bool weir_thread_is_hot() noexcept;

// glibc's own entry points: calling these needs no dlsym, which would allocate.
extern "C" {
void* __libc_malloc(std::size_t) noexcept;
void* __libc_calloc(std::size_t, std::size_t) noexcept;
void* __libc_realloc(void*, std::size_t) noexcept;
void* __libc_memalign(std::size_t, std::size_t) noexcept;
void __libc_free(void*) noexcept;
}

namespace {

// backtrace() may itself allocate: the thread that is about to abort is let through.
constinit thread_local bool reporting = false;

void say(const char* text) {
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

void check(const char* function) {
    if (weir_thread_is_hot == nullptr || reporting || !weir_thread_is_hot()) return;
    reporting = true;
    say("malloc trap: a polling lcore called ");
    say(function);
    say("\n");
    void* frames[32];
    ::backtrace_symbols_fd(frames, ::backtrace(frames, 32), STDERR_FILENO);
    std::abort();
}

}  // namespace

extern "C" {

void* malloc(std::size_t bytes) noexcept {
    check("malloc");
    return __libc_malloc(bytes);
}

void* calloc(std::size_t count, std::size_t bytes) noexcept {
    check("calloc");
    return __libc_calloc(count, bytes);
}

void* realloc(void* old, std::size_t bytes) noexcept {
    check("realloc");
    return __libc_realloc(old, bytes);
}

void free(void* memory) noexcept {
    if (memory != nullptr) check("free");
    __libc_free(memory);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
    check("memalign");
    return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
    check("aligned_alloc");
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
    check("posix_memalign");
    if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
    void* got = __libc_memalign(alignment, bytes);
    if (got == nullptr) return ENOMEM;
    *memory = got;
    return 0;
}

}  // extern "C"

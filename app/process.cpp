#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "core/refused_memory.hpp"

// GCC says it with macros, clang with features.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WEIR_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WEIR_SANITIZED
#endif
#endif

// As the standard library's own, and keeps in mind what there was no memory for. The sanitizers have theirs. Not
// inlined, lest GCC sees one side of malloc() and free() and not the other.
#ifndef WEIR_SANITIZED
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    weir::core::refuse_memory(bytes);
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
    std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
#endif

namespace weir::app {

void open_standard_descriptors() noexcept {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        // open takes the lowest number that is free, which is this one.
        if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
            static_cast<void>(::open("/dev/null", descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY));
    }
}

void let_writes_fail() noexcept {
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
}

bool output_reader_left() noexcept {
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    return ::poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace weir::app

// Preloaded into weir by the tests: while the file that $WEIR_FROZEN names exists, nothing can be written or synced, as
// on a disk or a file server that has stopped answering. Only files of runs are concerned: their directory is hidden,
// `.NAME.part`.
// Both names of pwrite are wanted: with 64-bit offsets by default one is an alias of the other.
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

void wait_until_thawed(int file) {
    const char* frozen = std::getenv("WEIR_FROZEN");
    char link[64];
    char path[4096];
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t bytes = ::readlink(link, path, sizeof path - 1);
    if (frozen == nullptr || bytes < 0) return;
    path[bytes] = 0;
    if (std::strstr(path, ".part/") == nullptr) return;
    while (::access(frozen, F_OK) == 0) {
        const timespec pause{0, 5'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

template <class Function>
Function* next(Function*, const char* name) {
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t count) {
    wait_until_thawed(file);
    return next(&::write, "write")(file, bytes, count);
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
    wait_until_thawed(file);
    return next(&::pwrite, "pwrite")(file, bytes, count, offset);
}
ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t offset) {
    wait_until_thawed(file);
    return next(&::pwrite64, "pwrite64")(file, bytes, count, offset);
}
int fsync(int file) {
    wait_until_thawed(file);
    return next(&::fsync, "fsync")(file);
}
int fdatasync(int file) {
    wait_until_thawed(file);
    return next(&::fdatasync, "fdatasync")(file);
}
}

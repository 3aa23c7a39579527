#include "store/creation_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include <cerrno>

namespace weir::store {

CreationLock::CreationLock(const std::filesystem::path& folder) noexcept
    : folder_(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_CLOEXEC)) {
    constexpr unsigned turns = 1000;
    constexpr timespec turn{0, 1'000'000};
    for (unsigned i = 0; i < turns; ++i) {
        taken_ = ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!taken_) return;
        ::nanosleep(&turn, nullptr);
    }
}

}  // namespace weir::store

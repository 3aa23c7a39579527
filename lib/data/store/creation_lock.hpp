// Keeps whoever creates something under a hidden name, and takes its lock, apart from whoever looks there for what
// killed programs have left: between the two steps the new file looks like a leftover.
#pragma once

#include <filesystem>

#include "store/file.hpp"

namespace weir::store {

/// One at a time in a folder, over all programs (flock(2) of the folder); for as long as it takes to open a file.
class CreationLock {
public:
    /// Waits for it, a second at most: somebody else may hold it for reasons of his own. Without effect where the
    /// folder cannot be opened or its file system has no such lock (NFS).
    explicit CreationLock(const std::filesystem::path& folder) noexcept;
    /// Somebody else held it for all that time.
    [[nodiscard]] bool is_taken() const noexcept { return taken_; }

private:
    Descriptor folder_;
    bool taken_ = false;
};

}  // namespace weir::store

// The two ways in which a command fails. Thrown while setting up and by ordinary threads; never on an lcore.
#pragma once

#include <stdexcept>
#include <string>

namespace weir::core {

/// Bad usage or configuration: the program ends with exit status 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The run, or the thing looked at, failed: exit status 1.
struct RunError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Throws UsageError with this text unless it holds.
inline void require(bool holds, const std::string& text) {
    if (!holds) throw UsageError(text);
}

}  // namespace weir::core

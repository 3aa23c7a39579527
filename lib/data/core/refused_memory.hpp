// Memory that was asked for in vain: how much and what for, which a std::bad_alloc does not say.
#pragma once

#include <cstddef>

namespace weir::core {

struct RefusedMemory {
    std::size_t bytes = 0;       ///< 0: not known
    const char* what = nullptr;  ///< AllocationContext::now() of the thread that asked; null: not known
};

/// Keeps in mind that there were no `bytes` more, and throws std::bad_alloc. Of whoever allocates by other means than
/// `new`.
[[noreturn]] void refuse_memory(std::size_t bytes);

/// The last that was refused, on any thread.
[[nodiscard]] RefusedMemory refused_memory() noexcept;

}  // namespace weir::core

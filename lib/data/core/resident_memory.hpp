// Memory that hot threads use, made theirs before they start: a page that is touched for the first time costs a page
// fault, and all of them come at once when the beam does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace weir::core {

/// Makes the pages of [memory, memory + bytes) resident; what is in them stays. Not for memory that others write to at
/// the same time.
void touch(void* memory, std::size_t bytes) noexcept;

/// Keeps what is resident from being taken away again, as far as the process may. Returns why not, in words with what
/// to do; empty if it was done. `bytes`: about how much that is.
[[nodiscard]] std::string lock_memory(std::uint64_t bytes);

}  // namespace weir::core

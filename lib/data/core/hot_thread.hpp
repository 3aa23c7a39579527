// A thread says here that it is polling: from then on it must not allocate. The malloc trap in tests/core asks, and
// ends the program if it does. Costs one thread-local byte, nothing per packet.
#pragma once

namespace weir::core {

/// Declares that the calling thread allocates nothing from now on (or may again). Set by the lcore runner around its
/// loop.
void hot_thread(bool hot) noexcept;

/// What the calling thread last declared.
[[nodiscard]] bool is_hot_thread() noexcept;

}  // namespace weir::core

/// The same for the malloc trap, which is a preloaded library and finds this by name in the program.
extern "C" bool weir_thread_is_hot() noexcept;

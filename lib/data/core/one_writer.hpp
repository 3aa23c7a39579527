// Counts that one thread writes and any thread may read.
#pragma once

#include <atomic>
#include <concepts>
#include <type_traits>

namespace weir::core {

/// For the one writer only: a plain load and store, so nothing is locked. With memory_order_release, who reads the
/// count sees what was done before.
template <std::unsigned_integral T>
void add(std::atomic<T>& value, std::type_identity_t<T> n = 1,
         std::memory_order order = std::memory_order_relaxed) noexcept {
    value.store(static_cast<T>(value.load(std::memory_order_relaxed) + n), order);
}
template <std::unsigned_integral T>
void subtract(std::atomic<T>& value, std::type_identity_t<T> n) noexcept {
    add(value, static_cast<T>(T{0} - n));
}
template <std::unsigned_integral T>
void add(std::atomic_ref<T> value, std::type_identity_t<T> n = 1) noexcept {
    value.store(static_cast<T>(value.load(std::memory_order_relaxed) + n), std::memory_order_relaxed);
}

}  // namespace weir::core

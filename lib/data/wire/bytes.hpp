// Unaligned loads and stores in a stated byte order. They check nothing: the caller has checked the length.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weir::wire {

static_assert(std::endian::native == std::endian::little, "weir is built for little-endian machines");

template <std::unsigned_integral T>
[[nodiscard]] constexpr T swap_bytes(T value) noexcept {
    if constexpr (sizeof(T) == 1) return value;
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

template <std::unsigned_integral T>
[[nodiscard]] inline T load_le(const std::byte* at) noexcept {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <std::unsigned_integral T>
[[nodiscard]] inline T load_be(const std::byte* at) noexcept {
    return swap_bytes(load_le<T>(at));
}

/// 24 bits, big-endian (queue pair numbers, PSNs).
[[nodiscard]] inline std::uint32_t load_be24(const std::byte* at) noexcept {
    return std::to_integer<std::uint32_t>(at[0]) << 16 | load_be<std::uint16_t>(at + 1);
}

template <std::unsigned_integral T>
inline void store_le(std::byte* at, T value) noexcept {
    std::memcpy(at, &value, sizeof value);
}

template <std::unsigned_integral T>
inline void store_be(std::byte* at, T value) noexcept {
    store_le(at, swap_bytes(value));
}

inline void store_be24(std::byte* at, std::uint32_t value) noexcept {
    at[0] = static_cast<std::byte>(value >> 16);
    store_be(at + 1, static_cast<std::uint16_t>(value));
}

}  // namespace weir::wire

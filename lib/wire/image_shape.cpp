#include "wire/image_shape.hpp"

#include <cstring>

#include "wire/bytes.hpp"

namespace weir::wire {

void unpack_pixels(std::uint32_t bits, std::span<const std::byte> packed, std::span<std::byte> out) noexcept {
    if (!is_packed(bits)) {
        if (!out.empty()) std::memcpy(out.data(), packed.data(), out.size());
        return;
    }
    const std::size_t pixels = out.size() / unpacked_bytes(bits);
    const auto byte = [&](std::size_t at) { return std::to_integer<std::uint32_t>(packed[at]); };
    for (std::size_t i = 0; i < pixels; ++i) {
        if (bits == 4) {
            out[i] = static_cast<std::byte>(i % 2 == 0 ? byte(i / 2) & 0xfU : byte(i / 2) >> 4U);
            continue;
        }
        // 12 bits: b0, and the lower half of b1 above it; the upper half of b1, and b2 above it.
        const std::size_t at = i / 2 * 3;
        const std::uint32_t value =
            i % 2 == 0 ? byte(at) | (byte(at + 1) & 0xfU) << 8U : byte(at + 1) >> 4U | byte(at + 2) << 4U;
        store_le(out.data() + 2 * i, static_cast<std::uint16_t>(value));
    }
}

}  // namespace weir::wire

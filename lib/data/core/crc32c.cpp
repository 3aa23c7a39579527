#include "core/crc32c.hpp"

#include <isa-l/crc.h>

namespace weir::core {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
    // ISA-L takes and returns the raw register; its length is an int, its pointer not const.
    std::uint32_t reg = ~seed;
    auto* at = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    std::size_t left = bytes.size();
    constexpr std::size_t step = std::size_t{1} << 30;
    while (left > 0) {
        const std::size_t now = left < step ? left : step;
        reg = ::crc32_iscsi(at, static_cast<int>(now), reg);
        at += now;
        left -= now;
    }
    return ~reg;
}

}  // namespace weir::core

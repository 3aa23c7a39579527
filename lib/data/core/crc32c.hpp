// CRC-32C (Castagnoli), the checksum of the event file's blocks. ISA-L does the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::core {

/// CRC-32C of `bytes` (polynomial 0x1EDC6F41 reflected, initial value and final inversion all ones, as in RFC 3720
/// section 12.1: "123456789" gives 0xE3069283). Pass a previous result as `seed` to continue over several spans.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0) noexcept;

}  // namespace weir::core

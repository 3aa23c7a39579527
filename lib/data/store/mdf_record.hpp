// An event of an MDF file, LHCb's file of raw events: a header of 48 bytes and raw banks. Byte by byte in
// docs/reference/reduce/mfp.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::store {

/// What a bank's header says of it.
struct MdfBank {
    std::uint8_t type = 0;
    std::uint8_t version = 0;
    std::uint16_t source_id = 0;
};

/// A bank says its length, header included, in 16 bits.
inline constexpr std::size_t mdf_bank_bytes_max = 65535 - 8;
/// A record says its length in 32 bits.
inline constexpr std::size_t mdf_record_bytes_max = 0xffff'ffff;

/// One record after the other, in the same memory.
class MdfRecord {
public:
    /// `run`: 0 where it is not known.
    explicit MdfRecord(std::uint32_t run);

    void begin();
    /// False, and nothing is added, if the bank has more than mdf_bank_bytes_max bytes or the record would have more
    /// than mdf_record_bytes_max.
    [[nodiscard]] bool add(const MdfBank& bank, std::span<const std::byte> body);
    /// The record, with sizes and checksum; valid until begin().
    [[nodiscard]] std::span<const std::byte> finish();

private:
    std::uint32_t run_;
    std::vector<std::byte> bytes_;
};

/// Bob Jenkins' one-at-a-time hash of bytes taken as signed, as MDF has it.
[[nodiscard]] std::uint32_t mdf_checksum(std::span<const std::byte> bytes) noexcept;

}  // namespace weir::store

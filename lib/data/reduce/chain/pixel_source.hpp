// Which pixels of which module a source sends, and what the detector header of a message says about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "assemble/message.hpp"
#include "reduce/pixels/calibration.hpp"
#include "wire/format.hpp"

namespace weir::reduce {

/// Which pixels of which module a source sends.
struct PixelSource {
    std::uint32_t module = 0;
    std::uint32_t first_row = 0;  ///< of the module; that of the first interface, if `interface_in_header`
    std::uint32_t rows = jungfrau_rows;
    /// Whether the source is the first or the second interface is in the header: its row is even or odd.
    bool interface_in_header = false;

    [[nodiscard]] std::size_t pixels() const noexcept { return std::size_t{rows} * jungfrau_columns; }
    bool operator==(const PixelSource&) const = default;
};

/// A little-endian field of a detector header, if the header reaches so far.
[[nodiscard]] inline std::optional<std::uint64_t> field_of(std::span<const std::byte> header,
                                                           const wire::DeclaredField& field) noexcept {
    if (std::size_t{field.offset} + field.bytes > header.size()) return std::nullopt;
    std::uint64_t value = 0;
    std::memcpy(&value, header.data() + field.offset, field.bytes);
    return (value & field.mask.value_or(~std::uint64_t{0})) >> field.shift;
}

/// The pixel of its module that a message with this header begins with.
[[nodiscard]] inline std::size_t first_pixel_of(const PixelSource& source, std::span<const std::byte> header) noexcept {
    constexpr std::size_t header_row_at = 34;  // of the slsDetector header (wire/formats/sls/sls.hpp)
    std::uint32_t row = source.first_row;
    if (source.interface_in_header && header.size() > header_row_at &&
        (std::to_integer<unsigned>(header[header_row_at]) & 1U) != 0)
        row += source.rows;
    return std::size_t{row} * jungfrau_columns;
}

[[nodiscard]] inline std::size_t first_pixel_of(const PixelSource& source, const assemble::Message& message) noexcept {
    return first_pixel_of(source, std::span(message.meta).first(message.meta_bytes));
}

/// The storage cell that a header names, if it is one of `cells`.
[[nodiscard]] inline std::optional<std::uint32_t> cell_of(std::span<const std::byte> header,
                                                          const wire::DeclaredField& field,
                                                          std::uint32_t cells) noexcept {
    if (cells == 1) return 0;
    const auto cell = field_of(header, field);
    if (!cell || *cell >= cells) return std::nullopt;
    return static_cast<std::uint32_t>(*cell);
}
[[nodiscard]] inline std::optional<std::uint32_t> cell_of(const assemble::Message& message,
                                                          const wire::DeclaredField& field,
                                                          std::uint32_t cells) noexcept {
    return cell_of(std::span(message.meta).first(message.meta_bytes), field, cells);
}

}  // namespace weir::reduce

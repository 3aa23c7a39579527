// The pedestals and gains of JUNGFRAU modules, read from files and turned into what convert() wants.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "reduce/pixels/pixels.hpp"

namespace weir::reduce {

inline constexpr std::size_t jungfrau_rows = 512;
inline constexpr std::size_t jungfrau_columns = 1024;
inline constexpr std::size_t jungfrau_pixels = jungfrau_rows * jungfrau_columns;

/// Where the calibration comes from. Files are raw little-endian arrays of 512 x 1024 per module, pixels row by row:
/// 32-bit or (told by the size) 64-bit floats. A list has one file for all modules, or one for each, in source order.
struct CalibrationConfig {
    using Files = std::vector<std::filesystem::path>;
    enum class GainUnit : std::uint8_t { adu_per_kev, adu_per_photon };
    enum class Unit : std::uint8_t { kev, photon };

    std::uint32_t modules = 1;
    std::array<Files, 3> pedestal;                    ///< ADU, for G0, G1, G2
    std::array<std::variant<double, Files>, 3> gain;  ///< not 0; G1 and G2 are negative
    GainUnit gain_unit = GainUnit::adu_per_kev;
    double photon_kev = 0;  ///< energy of a photon; needed where one unit is photons and the other keV
    Unit unit = Unit::kev;
    /// Instead of `gain`, if not empty: files as PSI writes them, one for each module: three blocks of 512 x 1024
    /// 64-bit floats, for G0, G1 and G2 (a fourth, for HG0, is not read). One file may hold those of all modules.
    Files gain_maps;
    Files mask;  ///< optional: bytes, not 0 marks a bad pixel
    /// Pedestal files have so many arrays for each module, one after the other, cell 0 first; gains and masks have as
    /// many, or one for all cells.
    std::uint32_t storage_cells = 1;
    static constexpr std::uint32_t storage_cells_max = 64;

    bool operator==(const CalibrationConfig&) const = default;
};

class Calibration {
public:
    /// Reads everything. A pixel is bad in a gain whose pedestal is 0, 16383 (how dead pixels are marked), or no
    /// number, or whose gain is 0 or no number; a masked one is bad in all. Throws core::UsageError naming the file,
    /// its size, and what was expected.
    explicit Calibration(const CalibrationConfig& config);

    /// What it will hold, files unseen: with gains of their own for each storage cell it is more.
    [[nodiscard]] static std::uint64_t memory_bytes(const CalibrationConfig& config) noexcept;
    [[nodiscard]] std::uint64_t memory_bytes() const noexcept;

    /// Of the pixels from `first_pixel` of a module on, in a storage cell (less than storage_cells()).
    [[nodiscard]] PixelCalibration of(std::uint32_t module, std::size_t first_pixel,
                                      std::uint32_t cell = 0) const noexcept;
    [[nodiscard]] std::uint32_t modules() const noexcept { return modules_; }
    [[nodiscard]] std::uint32_t storage_cells() const noexcept { return cells_; }
    /// Pixels of a module that are bad in a gain.
    [[nodiscard]] std::size_t bad(std::uint32_t module, std::size_t gain, std::uint32_t cell = 0) const noexcept;

private:
    std::uint32_t modules_;
    std::uint32_t cells_;
    std::uint32_t factor_cells_ = 1;  ///< gains are mostly the same for all storage cells, and then kept once
    std::array<std::vector<float>, 3> pedestal_;
    std::array<std::vector<float>, 3> factor_;
};

}  // namespace weir::reduce

// What the simulated detectors see: pixels and message bytes, each a pure function of seed, event number and place, so
// that a receiver's output can be checked without keeping what was sent. Not here: packets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::simulate {

/// A number without pattern from two others (the finalizer of splitmix64): the only source of chance in the simulator.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t value) noexcept {
    std::uint64_t x = seed + 0x9e3779b97f4a7c15ULL * (value + 1);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
    return x ^ x >> 31;
}

/// As mix(), but in [0, 1).
[[nodiscard]] constexpr double chance(std::uint64_t seed, std::uint64_t value) noexcept {
    return static_cast<double>(mix(seed, value) >> 11) * 0x1p-53;
}

/// JUNGFRAU images of modules that stand on top of each other: a pedestal per pixel, noise, the rings of a powder, and
/// bright spots that turn around the beam with the event number. Gain bits as in the detector: 00 below about 14,000
/// ADU, 01 (pedestal 13,600, falling with charge) near the beam and in spots that are too bright for the first gain.
class DetectorImages {
public:
    static constexpr std::uint32_t columns = 1024;
    static constexpr std::uint32_t row_bytes = columns * 2;  ///< pixels of 16 bits
    static constexpr std::uint32_t rows_per_module = 512;

    /// Takes about 1 MiB per module and variant (1 to 4 of them), and a tenth of a second.
    DetectorImages(std::uint32_t modules, std::uint64_t seed);

    /// Writes `row_count` rows from `row` (counted over all modules from the top) as little-endian 16-bit pixels. `out`
    /// has row_count * 2048 bytes. Repeated calls for one event are cheaper than for changing ones.
    void render(std::uint64_t event, std::uint32_t row, std::uint32_t row_count, std::byte* out) noexcept;

private:
    struct Spot {
        double radius;
        double angle;
        double peak_photons;
        int row = 0;
        int column = 0;
    };
    static constexpr std::size_t spots_per_detector = 24;
    static constexpr std::uint32_t noise_values = 1U << 16;

    void place_spots(std::uint64_t event) noexcept;

    std::uint32_t rows_;
    std::uint32_t variants_;
    std::uint64_t seed_;
    std::vector<std::uint16_t> base_;  ///< variant by variant: pedestal and rings, gain bits set
    std::vector<std::int16_t> noise_;  ///< noise_values and one row more, so that a row never wraps
    std::array<Spot, spots_per_detector> spots_{};
    std::uint64_t spots_event_ = 0;
    bool spots_placed_ = false;
};

/// Bytes of the messages of formats that do not care what they carry.
class MessageContent {
public:
    explicit MessageContent(std::uint64_t seed);

    /// Writes `count` bytes of the message of (event, source) from `offset` on.
    void copy(std::uint64_t event, std::uint32_t source, std::uint64_t offset, std::byte* out,
              std::size_t count) const noexcept;

private:
    std::uint64_t seed_;
    std::vector<std::byte> pool_;
};

}  // namespace weir::simulate

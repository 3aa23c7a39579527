// An event as a picture: 16-bit pixels of all sources below each other, stretched between two percentiles, as a PNG.
// For looking at, not for analysis.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/run_reader.hpp"

namespace weir::store {

struct Image {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::vector<std::uint16_t> pixels;  ///< row by row
    std::vector<bool> present;          ///< false where a byte of the pixel is missing; its value is then 0
};

/// The event's payload as little-endian 16-bit pixels, `width` to a row, the sources (or the one with the id `only`)
/// below each other. A source of which nothing came and whose size is not known is as high as the others if they are
/// equal. Throws core::RunError, with the reason, if that is no image.
Image event_image(const RunReader& run, const EventInfo& event, std::uint32_t width, std::optional<std::uint32_t> only);

struct Levels {
    std::uint16_t low = 0;
    std::uint16_t high = 0;
};

/// The 1st and 99th percentile of the present pixels: the values at positions ⌊(n-1)/100⌋ and ⌈99(n-1)/100⌉ of n sorted
/// ones.
Levels percentile_levels(const Image& image);

/// Maps low…high to 0…65535, rounded; values outside are clipped, missing pixels become 0.
void stretch(Image& image, Levels levels);

/// Throws core::RunError if an image of so many pixels is too large to be made.
void check_image_size(std::uint64_t width, std::uint64_t height);

/// A 16-bit PNG: gray with one channel, red, green and blue with three; `samples` row by row. Throws core::RunError if
/// the file exists or cannot be written.
void write_png(const std::filesystem::path& path, std::uint32_t width, std::uint32_t height, unsigned channels,
               std::span<const std::uint16_t> samples);
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace weir::store

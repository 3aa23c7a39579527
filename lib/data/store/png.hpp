// An image as a PNG file: for looking at, not for analysis.
#pragma once

#include <cstdint>
#include <filesystem>

#include "store/pixel_image.hpp"

namespace weir::store {

/// Throws core::RunError if an image of so many pixels is too large to be made.
void check_image_size(std::uint64_t width, std::uint64_t height);

/// A PNG of 16 bits a sample: gray from black to white; red where a pixel has no value and yellow where it is
/// saturated, if there are such. Throws core::RunError if the file exists or cannot be written.
void write_png(const std::filesystem::path& path, const PixelImage& image, PixelLevels levels);

}  // namespace weir::store

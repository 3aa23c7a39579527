// An event as a picture: values in gray, pixels without one in red, saturated ones in yellow. For looking at.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "store/payload_info.hpp"

namespace weir::store {

struct PixelImage {
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    std::vector<float> pixels;       ///< row by row; NaN: no value, +infinity: saturated
    bool placed_by_headers = false;  ///< sources stand where their headers say, not below each other
};

/// The pixels of a reduced event: of the sources (or of the one with the id `only`) below each other, `width` to a row.
/// Throws core::RunError, with the reason, if that is no image.
PixelImage pixel_image(const RunReader& run, const EventInfo& event, const PayloadInfo& info, std::uint32_t width,
                       std::optional<std::uint32_t> only);

struct PixelLevels {
    float low = 0;
    float high = 0;
};

/// What becomes black and white: the 1st and the 99th percentile of the values. Where more than half of them are 0 (few
/// photons, or a sparse event) 0 and the 99th percentile of those that are not.
PixelLevels pixel_levels(const PixelImage& image);

/// 16 bits from black to white of each pixel. All have a value.
std::vector<std::uint16_t> shade(const PixelImage& image, PixelLevels levels);

/// 16-bit red, green and blue of each pixel.
std::vector<std::uint16_t> paint(const PixelImage& image, PixelLevels levels);

}  // namespace weir::store

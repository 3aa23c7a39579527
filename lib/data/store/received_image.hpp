// An event as a picture, of what was received.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "store/image_stretches.hpp"
#include "store/pixel_image.hpp"
#include "wire/image_shape.hpp"

namespace weir::store {

/// The pixels that lie in `parts`, of which `came` did; NaN where something of one did not.
std::vector<float> received_values(std::uint32_t bits, std::span<const std::byte> parts, const ImageStretches& came);

/// How the event's messages are rows of pixels.
struct ReceivedShape {
    std::uint32_t columns = 0;
    std::uint32_t bits = 16;    ///< is_pixel_bits()
    std::string_view format{};  ///< of all streams: it may know where the images of sources stand; else empty
};

/// The event's sources, or the one with the id `only`: where their headers say that they stand, else below each other.
/// A source of which nothing came and whose size is not known is as high as the others if they are equal. Throws
/// core::RunError, with the reason, if that is no image.
PixelImage received_image(const RunReader& run, const EventInfo& event, const ReceivedShape& shape,
                          std::optional<std::uint32_t> only);

}  // namespace weir::store

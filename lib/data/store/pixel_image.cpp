// See pixel_image.hpp.
#include "store/pixel_image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "store/png.hpp"

namespace weir::store {

namespace {

constexpr std::array<std::uint16_t, 3> no_value{0xa000, 0x1000, 0x2000};
constexpr std::array<std::uint16_t, 3> saturated{0xffff, 0xd000, 0x0000};

float percentile(std::vector<float>& values, std::size_t percent) {
    const std::size_t last = values.size() - 1;
    // Down for a low one, up for a high one.
    const std::size_t place = percent < 50 ? last * percent / 100 : (last * percent + 99) / 100;
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place), values.end());
    return values[place];
}

class Gray {
public:
    explicit Gray(PixelLevels levels)
        : low_(levels.low), span_(std::max(levels.high - levels.low, std::abs(levels.high) * 1e-6F)) {}
    [[nodiscard]] std::uint16_t of(float value) const {
        const float above = span_ > 0 ? std::clamp((value - low_) / span_, 0.0F, 1.0F) : 0.0F;
        return static_cast<std::uint16_t>(std::lround(above * 65535.0F));
    }

private:
    float low_;
    float span_;
};

}  // namespace

PixelImage pixel_image(const RunReader& run, const EventInfo& event, const PayloadInfo& info, std::uint32_t width,
                       std::optional<std::uint32_t> only) {
    if (event.content != Content::pixels || info.content != Content::pixels)
        throw core::RunError(fmt::format("no image: the payload of event {}:{} is {}", event.epoch, event.id,
                                         content_names[static_cast<std::size_t>(event.content)]));
    const std::uint64_t row_bytes = std::uint64_t{width} * reduce::bytes_of(info.type);
    std::uint64_t bytes = 0;
    bool found = !only;
    for (const SourceInfo& source : event.sources) {
        if (only && source.id != *only) continue;
        found = true;
        if (row_bytes == 0 || source.reduced_bytes % row_bytes != 0)
            throw core::RunError(fmt::format(
                "no image: the {} bytes of source {} are not whole rows of {} pixels of {}", source.reduced_bytes,
                source.id, width, reduce::pixel_type_names[static_cast<std::size_t>(info.type)]));
        bytes += source.reduced_bytes;
        check_image_size(width, bytes / row_bytes);
    }
    if (!found) throw core::RunError(fmt::format("the event has no source {}", *only));
    if (bytes == 0) throw core::RunError("no image: the event has no pixels");
    std::vector<std::byte> payload;
    payload.reserve(bytes);
    run.read_payload(event, [&](std::size_t source, std::uint64_t, std::span<const std::byte> piece) {
        if (!only || event.sources[source].id == *only) payload.insert(payload.end(), piece.begin(), piece.end());
    });
    return {width, static_cast<std::uint32_t>(bytes / row_bytes), energies_of(info.type, payload), false};
}

PixelLevels pixel_levels(const PixelImage& image) {
    std::vector<float> values;
    for (const float value : image.pixels)
        if (std::isfinite(value)) values.push_back(value);
    const auto zeros = static_cast<std::size_t>(std::count(values.begin(), values.end(), 0.0F));
    const bool mostly_nothing = zeros > values.size() / 2;
    if (mostly_nothing) std::erase(values, 0.0F);
    if (values.empty()) return {};
    PixelLevels levels;
    levels.low = mostly_nothing ? std::min(0.0F, percentile(values, 1)) : percentile(values, 1);
    levels.high = percentile(values, 99);
    return levels;
}

std::vector<std::uint16_t> shade(const PixelImage& image, PixelLevels levels) {
    const Gray gray(levels);
    std::vector<std::uint16_t> shades;
    shades.reserve(image.pixels.size());
    for (const float value : image.pixels) shades.push_back(gray.of(value));
    return shades;
}

std::vector<std::uint16_t> paint(const PixelImage& image, PixelLevels levels) {
    const Gray gray(levels);
    std::vector<std::uint16_t> colours;
    colours.reserve(3 * image.pixels.size());
    for (const float value : image.pixels) {
        if (!std::isfinite(value)) {
            const auto& colour = std::isnan(value) || value < 0 ? no_value : saturated;
            colours.insert(colours.end(), colour.begin(), colour.end());
            continue;
        }
        colours.insert(colours.end(), 3, gray.of(value));
    }
    return colours;
}

}  // namespace weir::store

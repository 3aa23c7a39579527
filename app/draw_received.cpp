#include "draw_received.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "store/png.hpp"
#include "wire/format.hpp"

namespace weir::app {

std::string draw_received(const store::RunReader& run, const store::EventInfo& event, const store::ReceivedShape& shape,
                          std::optional<std::uint32_t> only, const std::string& file) {
    const store::PixelImage image = store::received_image(run, event, shape, only);
    const store::PixelLevels levels = store::pixel_levels(image);
    store::write_png(file, image, levels);
    const auto missing = std::ranges::count_if(image.pixels, [](float value) { return std::isnan(value); });
    std::string remarks;
    if (missing > 0) remarks += fmt::format(", red the {} that did not come", missing);
    if (image.placed_by_headers) remarks += ", sources where their headers say";
    if (const wire::FormatEntry* format = wire::find_format(shape.format); format != nullptr)
        if (!format->image.remark.empty()) remarks += fmt::format(", {}", format->image.remark);
    return fmt::format("{} x {} pixels of {} bits, values {:.6g} to {:.6g} from black to white{}, to {}", image.width,
                       image.height, shape.bits, levels.low, levels.high, remarks, file);
}

}  // namespace weir::app

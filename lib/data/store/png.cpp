// An image as a PNG. See png.hpp.
#include "store/png.hpp"

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <system_error>
#include <vector>

#include "core/error.hpp"
#include "store/file.hpp"

namespace weir::store {

namespace {

constexpr std::uint64_t image_pixels_max = std::uint64_t{1} << 29;
constexpr std::uint32_t side_max = 1'000'000;  // libpng's own limit

void append_bytes(png_structp png, png_bytep data, png_size_t length) {
    auto* const out = static_cast<std::vector<std::byte>*>(png_get_io_ptr(png));
    const auto* const bytes = reinterpret_cast<const std::byte*>(data);
    out->insert(out->end(), bytes, bytes + length);
}

/// libpng leaves by longjmp, so nothing with a destructor lives in here.
bool encode(png_structp png, png_infop info, std::uint32_t width, std::uint32_t height, unsigned channels,
            const std::uint16_t* samples, std::vector<std::byte>& out) {
    if (setjmp(png_jmpbuf(png)) != 0) return false;
    png_set_write_fn(png, &out, append_bytes, nullptr);
    png_set_IHDR(png, info, width, height, 16, channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, 3);
    png_write_info(png, info);
    png_set_swap(png);  // PNG is big-endian
    for (std::uint32_t row = 0; row < height; ++row)
        png_write_row(png, reinterpret_cast<png_const_bytep>(samples + std::size_t{row} * width * channels));
    png_write_end(png, info);
    return true;
}

}  // namespace

void check_image_size(std::uint64_t width, std::uint64_t height) {
    if (height <= side_max && width <= side_max && width * height <= image_pixels_max) return;
    throw core::RunError(fmt::format("no image: {} rows of {} pixels are too many", height, width));
}

void write_png(const std::filesystem::path& path, const PixelImage& image, PixelLevels levels) {
    const bool coloured = !std::ranges::all_of(image.pixels, [](float value) { return std::isfinite(value); });
    const std::vector<std::uint16_t> samples = coloured ? paint(image, levels) : shade(image, levels);
    std::vector<std::byte> bytes;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
    const bool good =
        info != nullptr && encode(png, info, image.width, image.height, coloured ? 3 : 1, samples.data(), bytes);
    png_destroy_write_struct(&png, &info);
    if (!good) throw core::RunError("libpng cannot encode the image");
    File file = File::create(path);
    try {
        file.write_at(0, bytes);
    } catch (const core::RunError&) {
        std::error_code error;  // half an image is none
        std::filesystem::remove(path, error);
        throw;
    }
}

}  // namespace weir::store

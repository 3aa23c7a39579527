// An event as a PNG. See image.hpp.
#include "store/image.hpp"

#include <fmt/core.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <filesystem>
#include <system_error>

#include "core/error.hpp"

namespace weir::store {

namespace {

constexpr std::uint64_t image_pixels_max = std::uint64_t{1} << 29;
constexpr std::uint32_t side_max = 1'000'000;  // libpng's own limit

/// How many bytes of the image each source has; 0 for those that are left out.
std::vector<std::uint64_t> source_bytes(const EventInfo& event, std::uint64_t row_bytes,
                                        std::optional<std::uint32_t> only) {
    std::vector<std::uint64_t> bytes(event.sources.size(), 0);
    std::optional<std::uint64_t> common;
    bool all_equal = true;
    for (const SourceInfo& source : event.sources) {
        if (!source.size_known()) continue;
        all_equal = all_equal && (!common || *common == source.declared_bytes);
        common = source.declared_bytes;
    }
    bool found = false;
    for (std::size_t i = 0; i < event.sources.size(); ++i) {
        const SourceInfo& source = event.sources[i];
        if (only && source.id != *only) continue;
        found = true;
        if (source.state == SourceState::size_unknown)
            throw core::RunError(fmt::format("no image: the size of source {} was never learnt", source.id));
        if (!source.size_known() && (!common || !all_equal))
            throw core::RunError(
                fmt::format("no image: nothing came from source {} and its size is not known", source.id));
        bytes[i] = source.size_known() ? source.declared_bytes : *common;
        if (bytes[i] % row_bytes != 0)
            throw core::RunError(fmt::format(
                "no image: the {} bytes of source {} are not whole rows of {} 16-bit pixels (--width sets another number)",
                bytes[i], source.id, row_bytes / 2));
    }
    if (!found)
        throw core::RunError(only ? fmt::format("the event has no source {}", *only)
                                  : "no image: the event has no sources");
    return bytes;
}

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

Image event_image(const RunReader& run, const EventInfo& event, std::uint32_t width,
                  std::optional<std::uint32_t> only) {
    const std::uint64_t row_bytes = std::uint64_t{width} * 2;
    if (width == 0 || width > side_max)
        throw core::UsageError(fmt::format("a width of {} pixels is not possible", width));
    const std::vector<std::uint64_t> bytes = source_bytes(event, row_bytes, only);
    std::vector<std::uint64_t> starts;
    std::uint64_t total = 0;
    for (const std::uint64_t part : bytes) {
        starts.push_back(total);
        total += part;
    }
    if (total == 0) throw core::RunError("no image: the event has no bytes");
    check_image_size(width, total / row_bytes);

    Image image;
    image.width = width;
    image.height = static_cast<std::uint32_t>(total / row_bytes);
    image.pixels.assign(total / 2, 0);
    std::vector<bool> byte_present(total, false);
    const std::span<std::byte> pixels = std::as_writable_bytes(std::span(image.pixels));
    run.read_payload(event, [&](std::size_t source, std::uint64_t offset, std::span<const std::byte> piece) {
        if (bytes[source] < offset || bytes[source] - offset < piece.size()) return;  // left out
        const std::uint64_t at = starts[source] + offset;
        std::copy(piece.begin(), piece.end(), pixels.begin() + static_cast<std::ptrdiff_t>(at));
        std::fill_n(byte_present.begin() + static_cast<std::ptrdiff_t>(at), piece.size(), true);
    });
    image.present.resize(total / 2);
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
        image.present[i] = byte_present[2 * i] && byte_present[2 * i + 1];
        if (!image.present[i]) image.pixels[i] = 0;
    }
    return image;
}

Levels percentile_levels(const Image& image) {
    std::vector<std::uint64_t> histogram(65536, 0);
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
        if (!image.present[i]) continue;
        ++histogram[image.pixels[i]];
        ++count;
    }
    if (count == 0) return {};
    const auto value_at = [&](std::uint64_t position) {
        std::uint64_t below = 0;
        std::uint32_t value = 0;
        while (below + histogram[value] <= position) below += histogram[value++];
        return static_cast<std::uint16_t>(value);
    };
    return {value_at((count - 1) / 100), value_at(((count - 1) * 99 + 99) / 100)};
}

void stretch(Image& image, Levels levels) {
    const std::uint64_t span = std::max<std::uint64_t>(1, levels.high - std::min(levels.low, levels.high));
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
        const std::uint64_t above = image.pixels[i] > levels.low ? image.pixels[i] - levels.low : 0;
        const std::uint64_t value = (std::min(above, span) * 65535 + span / 2) / span;
        image.pixels[i] = image.present[i] ? static_cast<std::uint16_t>(value) : 0;
    }
}

void write_png(const std::filesystem::path& path, std::uint32_t width, std::uint32_t height, unsigned channels,
               std::span<const std::uint16_t> samples) {
    std::vector<std::byte> bytes;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png != nullptr ? png_create_info_struct(png) : nullptr;
    const bool good = info != nullptr && encode(png, info, width, height, channels, samples.data(), bytes);
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

void write_png(const std::filesystem::path& path, const Image& image) {
    write_png(path, image.width, image.height, 1, image.pixels);
}

}  // namespace weir::store

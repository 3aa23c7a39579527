// PNG images decode to the pixels that the stretch promises.
#include <gtest/gtest.h>
#include <png.h>

#include "core/error.hpp"
#include "store/image.hpp"
#include "support.hpp"

namespace weir::store::test {
namespace {

/// Decodes with libpng's simplified reader, which shares no code with the writer's path.
std::vector<std::uint16_t> decode_png(const std::filesystem::path& path, std::uint32_t& width, std::uint32_t& height) {
    const std::vector<std::byte> file = read_file(path);
    // Signature, IHDR: width and height at 16, bit depth 16, colour type 0 (gray).
    EXPECT_EQ(file.at(24), std::byte{16});
    EXPECT_EQ(file.at(25), std::byte{0});
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png_create_info_struct(png);
    std::FILE* stream = std::fopen(path.c_str(), "rb");
    png_init_io(png, stream);
    png_read_png(png, info, PNG_TRANSFORM_IDENTITY, nullptr);
    width = png_get_image_width(png, info);
    height = png_get_image_height(png, info);
    std::vector<std::uint16_t> pixels;
    png_bytepp rows = png_get_rows(png, info);
    for (std::uint32_t y = 0; y < height; ++y)
        for (std::uint32_t x = 0; x < width; ++x)
            pixels.push_back(static_cast<std::uint16_t>(rows[y][2 * x] << 8 | rows[y][2 * x + 1]));
    png_destroy_read_struct(&png, &info, nullptr);
    std::fclose(stream);
    return pixels;
}

TEST(Image, PngDecodesToTheStretchedPixels) {
    std::vector<std::vector<std::uint16_t>> pixels(2);
    for (std::uint32_t i = 0; i < 64 * 10; ++i) {
        pixels[0].push_back(static_cast<std::uint16_t>(1000 + i * 5 % 640));
        pixels[1].push_back(static_cast<std::uint16_t>(2000 + i));
    }
    pixels[0][3] = 0;
    pixels[1][600] = 0xffff;
    const TemporaryDirectory directory;
    write_run(directory / "run", {image_event(7, pixels)}, true);
    const RunReader run(directory / "run");
    Image image = event_image(run, *run.find({}, 7), 64, {});
    ASSERT_EQ(image.width, 64U);
    ASSERT_EQ(image.height, 20U);

    std::vector<std::uint16_t> all = pixels[0];
    all.insert(all.end(), pixels[1].begin(), pixels[1].end());
    EXPECT_EQ(image.pixels, all);
    std::vector<std::uint16_t> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    const Levels levels = percentile_levels(image);
    EXPECT_EQ(levels.low, sorted[(sorted.size() - 1) / 100]);
    EXPECT_EQ(levels.high, sorted[((sorted.size() - 1) * 99 + 99) / 100]);
    stretch(image, levels);
    write_png(directory / "a.png", image);

    std::uint32_t width = 0;
    std::uint32_t height = 0;
    const std::vector<std::uint16_t> decoded = decode_png(directory / "a.png", width, height);
    EXPECT_EQ(width, 64U);
    EXPECT_EQ(height, 20U);
    ASSERT_EQ(decoded.size(), all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const double exact = (double{static_cast<double>(all[i])} - levels.low) * 65535 / (levels.high - levels.low);
        EXPECT_NEAR(decoded[i], std::clamp(exact, 0.0, 65535.0), 0.51) << i;
    }
    EXPECT_THROW(write_png(directory / "a.png", image), core::RunError);
    EXPECT_THROW(write_png(directory / "no" / "a.png", image), core::RunError);
}

TEST(Image, MissingPixelsAreBlackAndDoNotCount) {
    TestEvent event = image_event(1, {std::vector<std::uint16_t>(32, 500), std::vector<std::uint16_t>(32, 900)});
    event.cause = Cause::timeout;
    TestSource& first = event.sources[0];
    first.state = SourceState::partial;
    first.missing = {{3, 8}};  // the second byte of pixel 1, and pixels 2 and 3
    first.received.erase(first.received.begin() + 3, first.received.begin() + 8);
    event.sources.push_back({2, SourceState::absent_unknown, 0, {}, {}, {}});
    const TemporaryDirectory directory;
    write_run(directory / "run", {event});
    const RunReader run(directory / "run");
    Image image = event_image(run, *run.find({}, 1), 16, {});
    EXPECT_EQ(image.height, 6U);
    EXPECT_EQ(std::count(image.present.begin(), image.present.end(), true), 61);
    EXPECT_EQ(percentile_levels(image).low, 500);
    EXPECT_EQ(percentile_levels(image).high, 900);
    stretch(image, {500, 900});
    EXPECT_EQ(image.pixels[1], 0);
    EXPECT_EQ(image.pixels[40], 65535);
    EXPECT_EQ(event_image(run, *run.find({}, 1), 16, 1).height, 2U);
}

TEST(Image, WhatIsNoImageIsRefusedWithAReason) {
    TestEvent odd = image_event(1, {std::vector<std::uint16_t>(33, 5)});
    TestEvent unknown = image_event(2, {std::vector<std::uint16_t>(32, 5)});
    unknown.cause = Cause::end_of_run;
    unknown.sources[0].state = SourceState::size_unknown;
    unknown.sources[0].declared = 0;
    TestEvent none = image_event(3, {});
    const TemporaryDirectory directory;
    write_run(directory / "run", {odd, unknown, none});
    const RunReader run(directory / "run");
    const auto reason = [&](std::uint64_t id, std::uint32_t width, std::optional<std::uint32_t> only) {
        try {
            event_image(run, *run.find({}, id), width, only);
        } catch (const std::runtime_error& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    EXPECT_NE(reason(1, 16, {}).find("whole rows"), std::string::npos);
    EXPECT_NE(reason(1, 0, {}).find("width"), std::string::npos);
    EXPECT_NE(reason(1, 33, 5).find("no source 5"), std::string::npos);
    EXPECT_NE(reason(2, 16, {}).find("never learnt"), std::string::npos);
    EXPECT_NE(reason(3, 16, {}).find("no sources"), std::string::npos);
    EXPECT_EQ(reason(1, 33, {}), "no error");
}

TEST(Image, EqualPixelsDoNotDivideByZero) {
    Image image{2, 1, {9, 9}, {true, true}};
    stretch(image, percentile_levels(image));
    EXPECT_EQ(image.pixels[0], 0);
    Image empty{2, 1, {0, 0}, {false, false}};
    EXPECT_EQ(percentile_levels(empty).high, 0);
}

}  // namespace
}  // namespace weir::store::test

// PNG images decode to the pixels that the stretch promises.
#include <gtest/gtest.h>
#include <png.h>

#include <cmath>

#include "core/error.hpp"
#include "store/png.hpp"
#include "store/received_image.hpp"
#include "support.hpp"
#include "wire/format.hpp"

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

constexpr ReceivedShape wide(std::uint32_t columns) {
    return {columns, 16, {}};
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
    const PixelImage image = received_image(run, *run.find({}, 7), wide(64), {});
    ASSERT_EQ(image.width, 64U);
    ASSERT_EQ(image.height, 20U);

    std::vector<std::uint16_t> all = pixels[0];
    all.insert(all.end(), pixels[1].begin(), pixels[1].end());
    EXPECT_EQ(image.pixels, std::vector<float>(all.begin(), all.end()));
    std::vector<std::uint16_t> sorted = all;
    std::sort(sorted.begin(), sorted.end());
    const PixelLevels levels = pixel_levels(image);
    EXPECT_EQ(levels.low, sorted[(sorted.size() - 1) / 100]);
    EXPECT_EQ(levels.high, sorted[((sorted.size() - 1) * 99 + 99) / 100]);
    write_png(directory / "a.png", image, levels);

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
    EXPECT_THROW(write_png(directory / "a.png", image, levels), core::RunError);
    EXPECT_THROW(write_png(directory / "no" / "a.png", image, levels), core::RunError);
}

TEST(Image, MissingPixelsAreRedAndDoNotCount) {
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
    const PixelImage image = received_image(run, *run.find({}, 1), wide(16), {});
    EXPECT_EQ(image.height, 6U);
    EXPECT_EQ(std::count_if(image.pixels.begin(), image.pixels.end(), [](float pixel) { return !std::isnan(pixel); }),
              61);
    EXPECT_EQ(pixel_levels(image).low, 500);
    EXPECT_EQ(pixel_levels(image).high, 900);
    EXPECT_TRUE(std::isnan(image.pixels[1]));
    EXPECT_EQ(image.pixels[40], 900);
    const std::vector<std::uint16_t> colours = paint(image, {500, 900});
    const auto colour = [&](std::size_t pixel) {
        return std::array{colours[3 * pixel], colours[3 * pixel + 1], colours[3 * pixel + 2]};
    };
    EXPECT_EQ(colour(0), (std::array<std::uint16_t, 3>{0, 0, 0})) << "dark, but there";
    EXPECT_EQ(colour(1), (std::array<std::uint16_t, 3>{0xa000, 0x1000, 0x2000}));
    EXPECT_EQ(colour(40), (std::array<std::uint16_t, 3>{65535, 65535, 65535}));
    write_png(directory / "a.png", image, {500, 900});
    EXPECT_EQ(read_file(directory / "a.png").at(25), std::byte{2}) << "not in colour";
    EXPECT_EQ(received_image(run, *run.find({}, 1), wide(16), 1).height, 2U);
}

/// An event of these messages, each with the EIGER header of a tile.
TestEvent tiles_event(const std::vector<std::vector<std::byte>>& messages, const std::vector<wire::ImagePlace>& tiles) {
    TestEvent event = image_event(1, std::vector<std::vector<std::uint16_t>>(messages.size()));
    for (std::size_t i = 0; i < messages.size(); ++i) {
        event.sources[i].received = messages[i];
        event.sources[i].declared = static_cast<std::uint32_t>(messages[i].size());
        event.sources[i].meta.resize(48);
        event.sources[i].meta[34] = static_cast<std::byte>(tiles[i].row);
        event.sources[i].meta[36] = static_cast<std::byte>(tiles[i].column);
    }
    return event;
}

std::vector<std::byte> bytes_of_values(std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

TEST(Image, PixelsOfEveryWidthAreNumbersOfTheirOwn) {
    const TemporaryDirectory directory;
    const auto drawn = [&](std::uint32_t bits, std::initializer_list<int> message, std::uint32_t columns) {
        const std::string name = "run" + std::to_string(bits);
        write_run(directory / name, {tiles_event({bytes_of_values(message)}, {{0, 0}})});
        const RunReader run(directory / name);
        return received_image(run, *run.find({}, 1), {columns, bits, "eiger"}, {}).pixels;
    };
    EXPECT_EQ(drawn(4, {0x21, 0xf3}, 2), (std::vector<float>{1, 2, 3, 15}));
    EXPECT_EQ(drawn(8, {1, 2, 3, 255}, 2), (std::vector<float>{1, 2, 3, 255}));
    EXPECT_EQ(drawn(12, {0x21, 0x43, 0x65}, 2), (std::vector<float>{0x321, 0x654}));
    EXPECT_EQ(drawn(16, {1, 2, 3, 4}, 2), (std::vector<float>{0x201, 0x403}));
    EXPECT_EQ(drawn(32, {0, 0, 1, 0, 7, 0, 0, 0}, 2), (std::vector<float>{65536, 7}));
}

TEST(Image, TilesStandWhereTheirHeadersSay) {
    // A half module on top of another one, whose ports are the other way round and begin at the bottom.
    const TestEvent event = tiles_event({bytes_of_values({1, 2, 3, 4}), bytes_of_values({5, 6, 7, 8}),
                                         bytes_of_values({11, 12, 13, 14}), bytes_of_values({15, 16, 17, 18})},
                                        {{0, 0}, {0, 1}, {1, 1}, {1, 0}});
    const TemporaryDirectory directory;
    write_run(directory / "run", {event});
    const RunReader run(directory / "run");
    const auto image = [&](std::string_view format, std::optional<std::uint32_t> only) {
        return received_image(run, *run.find({}, 1), {2, 8, format}, only);
    };
    const PixelImage placed = image("eiger", {});
    EXPECT_TRUE(placed.placed_by_headers);
    EXPECT_EQ(placed.width, 4U);
    EXPECT_EQ(placed.height, 4U);
    EXPECT_EQ(placed.pixels, (std::vector<float>{1, 2, 5, 6, 3, 4, 7, 8, 17, 18, 13, 14, 15, 16, 11, 12}));
    EXPECT_EQ(image("eiger", 2).pixels, (std::vector<float>{13, 14, 11, 12})) << "upside down also by itself";
    EXPECT_EQ(image("eiger", 1).width, 2U);
    const PixelImage plain = image("jungfrau", {});
    EXPECT_FALSE(plain.placed_by_headers);
    EXPECT_EQ(plain.height, 8U);
    EXPECT_EQ(plain.pixels, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18}));
}

TEST(Image, GapsAreWhatNoStretchHas) {
    ImageStretches came;
    came.add(2, 3);
    came.add(5, 1);
    came.add(10, 2);
    came.add(12, 0);
    ASSERT_EQ(came.all().size(), 2U);
    const auto gaps = [&](std::uint64_t begin, std::uint64_t end) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
        came.for_each_gap(begin, end, [&](std::uint64_t from, std::uint64_t to) { found.emplace_back(from, to); });
        return found;
    };
    using Gaps = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    EXPECT_EQ(gaps(0, 20), (Gaps{{0, 2}, {6, 10}, {12, 20}}));
    EXPECT_EQ(gaps(3, 6), Gaps{});
    EXPECT_EQ(gaps(3, 8), (Gaps{{6, 8}}));
    EXPECT_EQ(gaps(7, 9), (Gaps{{7, 9}}));
    EXPECT_EQ(gaps(12, 12), Gaps{});
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
            received_image(run, *run.find({}, id), wide(width), only);
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
    const PixelImage image{2, 1, {9, 9}, false};
    EXPECT_EQ(shade(image, pixel_levels(image)).front(), 0);
    const float none = std::nanf("");
    EXPECT_EQ(pixel_levels({2, 1, {none, none}, false}).high, 0);
}

}  // namespace
}  // namespace weir::store::test

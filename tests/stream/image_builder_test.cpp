// What an image is in a message: packed pieces as one packed image, or pixels in their places.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "feed.hpp"
#include "reduce/pack/packer.hpp"
#include "stream/image_builder.hpp"
#include "stream/previews.hpp"

namespace weir::stream {
namespace {

using reduce::pack::Codec;
using store::Content;

constexpr std::uint32_t columns = 256;
constexpr std::uint32_t rows = 128;
constexpr std::size_t module_bytes = std::size_t{2} * columns * rows;

store::EventInfo event_of_modules(Content content, std::size_t sources) {
    store::EventInfo event;
    event.content = content;
    event.complete = true;
    for (std::size_t i = 0; i < sources; ++i) {
        store::SourceInfo source;
        source.id = static_cast<std::uint32_t>(i);
        source.declared_bytes = source.received_bytes = module_bytes;
        if (content != Content::received) event.reduced_bytes += source.reduced_bytes = module_bytes;
        event.payload_bytes += module_bytes;
        event.sources.push_back(source);
    }
    return event;
}

store::hdf5::Layout layout_of_pixels(const store::EventInfo& event) {
    return store::hdf5::layout_of(store::hdf5::describe(nlohmann::json::parse(test::pixels_json(columns)), {}), event);
}

struct Piece {
    std::size_t bytes;
    Codec codec;
};

/// Gives the builder `image` in these pieces, and the rest plain.
ImageBuilder::Result build(ImageBuilder& builder, std::span<const std::byte> image, const std::vector<Piece>& pieces) {
    std::size_t at = 0;
    const auto take = [&](std::span<const std::byte> raw, Codec codec) {
        store::BlockHeader header;
        header.version = store::format_version_newest;
        header.raw_bytes = static_cast<std::uint32_t>(raw.size());
        std::vector<std::byte> body(raw.begin(), raw.end());
        if (codec != Codec::raw) {
            reduce::pack::Packer packer({codec, 1, 2, false}, raw.size());
            body.resize(packer.bound(raw.size()));
            body.resize(packer.pack(raw, body));
            header.encoding = static_cast<store::Encoding>(codec);
            header.element_bytes = store::has_elements(header.encoding) ? 2 : 0;
        }
        header.stored_bytes = static_cast<std::uint32_t>(body.size());
        builder.take(header, body);
    };
    for (const Piece& piece : pieces) {
        const std::size_t bytes = std::min(piece.bytes, image.size() - at);
        if (bytes > 0) take(image.subspan(at, bytes), piece.codec);
        at += bytes;
    }
    if (at < image.size()) take(image.subspan(at), Codec::raw);
    return builder.end();
}

class Images : public testing::Test {
protected:
    store::EventInfo event = event_of_modules(Content::pixels, 2);
    store::hdf5::Layout layout = layout_of_pixels(event);
    std::vector<std::byte> image = test::as_bytes(test::noise(std::size_t{2} * columns * rows, 3));
    std::vector<std::byte> room = std::vector<std::byte>(ImageBuilder::bytes_max(layout));
    ImageBuilder builder;

    void expect_same(const ImageBuilder::Result& result) {
        ASSERT_TRUE(std::ranges::equal(builder.pixels(result), image));
    }
};

TEST_F(Images, PackedPiecesAreOnePackedImage) {
    for (const Codec codec : {Codec::bitshuffle_lz4, Codec::bitshuffle_zstd, Codec::lz4}) {
        SCOPED_TRACE(reduce::pack::name(codec));
        builder.begin(layout, event, room);
        const auto result = build(builder, image, {{32768, codec}, {32768, codec}, {65536, codec}});
        if (codec == Codec::lz4) {  // its block is the piece: one of another size does not go with the others
            expect_same(result);
            continue;
        }
        ASSERT_EQ(result.codec, codec);
        EXPECT_LT(result.bytes.size(), image.size());
        expect_same(result);
    }
}

TEST_F(Images, PiecesOfOneSizeAreOneImageAlsoForLz4) {
    std::vector<std::byte> plain(image.size());
    for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<std::byte>(i / 64);
    image = plain;
    builder.begin(layout, event, room);
    const auto result = build(builder, image, {{65536, Codec::lz4}, {65536, Codec::lz4}});
    EXPECT_EQ(result.codec, Codec::lz4);
    expect_same(result);
}

TEST_F(Images, WhateverThePiecesThePixelsAreTheSame) {
    EXPECT_TRUE(rc::check([this](const std::vector<std::pair<std::uint16_t, std::uint8_t>>& drawn) {
        std::vector<Piece> pieces;
        constexpr std::array codecs{
            Codec::raw,  Codec::zstd,           Codec::lz4, Codec::bitshuffle_lz4, Codec::bitshuffle_lz4,
            Codec::bits, Codec::bitshuffle_zstd};
        for (const auto& [blocks, codec] : drawn)
            pieces.push_back({std::size_t{blocks} % 40 * 2048 + 2048, codecs[codec % codecs.size()]});
        // A codec that makes a piece no shorter gives nothing: as a worker does, that piece stays as it is.
        for (Piece& piece : pieces)
            if (piece.codec == Codec::lz4 || piece.codec == Codec::zstd) piece.codec = Codec::bitshuffle_lz4;
        builder.begin(layout, event, room);
        const auto result = build(builder, image, pieces);
        RC_ASSERT(std::ranges::equal(builder.pixels(result), image));
    }));
}

TEST_F(Images, PixelsThatShareBytesGetBytesOfTheirOwn) {
    event = event_of_modules(Content::received, 2);
    event.sources[1].state = store::SourceState::partial;
    event.sources[1].missing = {{1, 1}};  // of both of the first two pixels
    event.sources[1].received_bytes -= 1;
    event.payload_bytes -= 1;
    store::hdf5::Description description;
    description.element = store::hdf5::Element::u16;
    description.columns = columns;
    description.bits = 12;
    for (store::SourceInfo& source : event.sources) {
        source.declared_bytes = std::uint64_t{columns} * 12 / 8;  // a row
        source.received_bytes = source.declared_bytes - (source.missing.empty() ? 0 : 1);
    }
    layout = store::hdf5::layout_of(description, event);
    ASSERT_TRUE(is_image_of(layout, event));
    room.assign(ImageBuilder::bytes_max(layout), std::byte{0x55});
    std::vector<std::byte> came(2 * event.sources[0].declared_bytes - 1);
    came[0] = std::byte{0x21};
    came[1] = std::byte{0x43};
    came[2] = std::byte{0x65};
    came[event.sources[0].declared_bytes + 2] = std::byte{0x07};  // after the gap: the lower bits of the third pixel
    builder.begin(layout, event, room);
    const auto result = build(builder, came, {{100, Codec::bitshuffle_lz4}});
    ASSERT_FALSE(result.codec);
    std::vector<std::uint16_t> pixels(result.bytes.size() / 2);
    std::memcpy(pixels.data(), result.bytes.data(), result.bytes.size());
    std::vector<std::uint16_t> expected(2 * columns);
    expected[0] = 0x321;
    expected[1] = 0x654;
    expected[columns] = expected[columns + 1] = 0xffff;
    expected[columns + 2] = 7;
    EXPECT_EQ(pixels, expected);
}

TEST(Previews, OfAnyNumberTheLargestIsNoValue) {
    const auto means = [](store::hdf5::Element element, std::initializer_list<int> bytes) {
        store::hdf5::Layout layout;
        layout.element = element;
        layout.columns = 2;
        layout.rows = 1;
        layout.sources = {0};
        layout.image = true;
        std::vector<std::byte> pixels;
        for (const int byte : bytes) pixels.push_back(static_cast<std::byte>(byte));
        return binned(layout, pixels, 2);
    };
    EXPECT_EQ(means(store::hdf5::Element::u8, {255, 254}), std::vector<float>{254});
    EXPECT_EQ(means(store::hdf5::Element::u8, {3, 254}), std::vector<float>{128.5});
    EXPECT_EQ(means(store::hdf5::Element::u16, {255, 255, 1, 2}), std::vector<float>{513});
    EXPECT_EQ(means(store::hdf5::Element::u32, {255, 255, 255, 255, 0, 0, 1, 0}), std::vector<float>{65536});
}

TEST_F(Images, WhatDidNotComeIsFilledAndNothingElse) {
    event = event_of_modules(Content::received, 2);
    event.complete = false;
    event.sources[1].state = store::SourceState::partial;
    event.sources[1].missing = {{4097, 1000}, {30000, 2}};
    event.sources[1].received_bytes -= 1002;
    event.payload_bytes -= 1002;
    store::hdf5::Description description;
    description.element = store::hdf5::Element::u16;
    description.columns = columns;
    layout = store::hdf5::layout_of(description, event);
    ASSERT_TRUE(is_image_of(layout, event));
    room.resize(ImageBuilder::bytes_max(layout));
    std::vector<std::byte> came(image.begin(), image.begin() + module_bytes + 4097);
    came.insert(came.end(), image.begin() + module_bytes + 5097, image.begin() + module_bytes + 30000);
    came.insert(came.end(), image.begin() + module_bytes + 30002, image.end());
    std::fill(room.begin(), room.end(), std::byte{0x55});
    builder.begin(layout, event, room);
    const auto result = build(builder, came, {{8192, Codec::bitshuffle_lz4}, {8192, Codec::bitshuffle_lz4}});
    ASSERT_FALSE(result.codec);
    for (std::size_t at = 4097; at < 5097; ++at) image[module_bytes + at] = std::byte{0xff};
    for (std::size_t at = 30000; at < 30002; ++at) image[module_bytes + at] = std::byte{0xff};
    EXPECT_TRUE(std::ranges::equal(result.bytes, image));
}

TEST_F(Images, AnEventOfOtherSourcesOrSizesIsNone) {
    EXPECT_TRUE(is_image_of(layout, event));
    EXPECT_FALSE(is_image_of(layout, event_of_modules(Content::pixels, 1)));
    EXPECT_FALSE(is_image_of(layout, event_of_modules(Content::received, 2)));
    event.sources[1].reduced_bytes -= 2;
    EXPECT_FALSE(is_image_of(layout, event));
    event.sources[1].reduced_bytes += 2;
    event.sources[1].id = 5;
    EXPECT_FALSE(is_image_of(layout, event));
}

}  // namespace
}  // namespace weir::stream

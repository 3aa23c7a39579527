// See received_image.hpp.
#include "store/received_image.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.hpp"
#include "store/hdf5/layout.hpp"
#include "store/png.hpp"

namespace weir::store {

namespace {

constexpr std::uint32_t width_max = 1'000'000;  // libpng's own limit

/// How many bytes of the image each source has; 0 for those that are left out.
std::vector<std::uint64_t> source_bytes(const EventInfo& event, const ReceivedShape& shape,
                                        std::optional<std::uint32_t> only) {
    const std::uint64_t row_bits = std::uint64_t{shape.columns} * shape.bits;
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
        if (bytes[i] * 8 % row_bits != 0)
            throw core::RunError(
                fmt::format("no image: the {} bytes of source {} are not whole rows of {} pixels of {} bits (--width "
                            "and --pixel-bits say others)",
                            bytes[i], source.id, shape.columns, shape.bits));
    }
    if (!found)
        throw core::RunError(only ? fmt::format("the event has no source {}", *only)
                                  : "no image: the event has no sources");
    return bytes;
}

/// The messages one after the other.
struct Parts {
    std::vector<std::uint64_t> begins;
    std::vector<std::byte> bytes;
    ImageStretches came;
};

Parts parts_of(const RunReader& run, const EventInfo& event, const std::vector<std::uint64_t>& sizes) {
    Parts parts;
    std::uint64_t total = 0;
    for (const std::uint64_t size : sizes) {
        parts.begins.push_back(total);
        total += size;
    }
    parts.bytes.resize(total);
    run.read_payload(event, [&](std::size_t source, std::uint64_t offset, std::span<const std::byte> piece) {
        if (sizes[source] < offset || sizes[source] - offset < piece.size()) return;  // left out
        const std::uint64_t at = parts.begins[source] + offset;
        std::ranges::copy(piece, parts.bytes.begin() + static_cast<std::ptrdiff_t>(at));
        parts.came.add(at, piece.size());
    });
    return parts;
}

/// Of a picture in which all parts are as high.
struct Tiles {
    std::vector<wire::ImagePlace> places;
    std::uint32_t rows = 0;  ///< of a part
    std::uint32_t columns = 0;

    [[nodiscard]] PixelImage arrange(const std::vector<float>& values, std::optional<std::size_t> only) const {
        PixelImage image{columns, rows, {}, true};
        std::vector<std::size_t> drawn;
        for (std::size_t i = 0; i < places.size(); ++i)
            if (!only || *only == i) drawn.push_back(i);
        for (const std::size_t i : drawn) {
            image.width = std::max(image.width, (only ? 1 : places[i].column + 1) * columns);
            image.height = std::max(image.height, (only ? 1 : places[i].row + 1) * rows);
        }
        check_image_size(image.width, image.height);
        image.pixels.assign(std::size_t{image.width} * image.height, std::numeric_limits<float>::quiet_NaN());
        auto from = values.begin();
        for (const std::size_t i : drawn)
            for (std::uint32_t row = 0; row < rows; ++row, from += columns) {
                const std::uint32_t y = places[i].upside_down ? rows - 1 - row : row;
                const std::size_t top = only ? 0 : std::size_t{places[i].row} * rows;
                const std::size_t left = only ? 0 : std::size_t{places[i].column} * columns;
                std::copy_n(from, columns,
                            image.pixels.begin() + static_cast<std::ptrdiff_t>((top + y) * image.width + left));
            }
        return image;
    }
};

}  // namespace

std::vector<float> received_values(std::uint32_t bits, std::span<const std::byte> parts, const ImageStretches& came) {
    const std::size_t size = wire::unpacked_bytes(bits);
    std::vector<float> values(parts.size() * 8 / bits);
    std::vector<std::byte> unpacked;
    std::span<const std::byte> pixels = parts;
    if (wire::is_packed(bits)) {
        unpacked.resize(values.size() * size);
        wire::unpack_pixels(bits, parts, unpacked);
        pixels = unpacked;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint32_t value = 0;
        std::memcpy(&value, pixels.data() + i * size, size);  // little-endian
        values[i] = static_cast<float>(value);
    }
    came.for_each_gap(0, parts.size(), [&](std::uint64_t begin, std::uint64_t end) {
        const wire::PixelRange lost = wire::pixels_of_bytes(bits, begin, end);
        std::fill(values.begin() + static_cast<std::ptrdiff_t>(lost.begin),
                  values.begin() + static_cast<std::ptrdiff_t>(lost.end), std::numeric_limits<float>::quiet_NaN());
    });
    return values;
}

PixelImage received_image(const RunReader& run, const EventInfo& event, const ReceivedShape& shape,
                          std::optional<std::uint32_t> only) {
    if (shape.columns == 0 || shape.columns > width_max)
        throw core::UsageError(fmt::format("a width of {} pixels is not possible", shape.columns));
    const std::vector<std::uint64_t> sizes = source_bytes(event, shape, only);
    std::uint64_t total = 0;
    std::optional<std::size_t> chosen;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        total += sizes[i];
        if (only && event.sources[i].id == *only) chosen = i;
    }
    if (total == 0) throw core::RunError("no image: the event has no bytes");
    const std::uint64_t rows = total * 8 / shape.bits / shape.columns;
    check_image_size(shape.columns, rows);
    const Parts parts = parts_of(run, event, sizes);
    std::vector<float> values = received_values(shape.bits, parts.bytes, parts.came);
    Tiles tiles{hdf5::image_places(shape.format, event), 0, shape.columns};
    const std::uint64_t part = chosen ? sizes[*chosen] : sizes.front();
    const bool alike = chosen || std::ranges::all_of(sizes, [&](std::uint64_t size) { return size == part; });
    if (tiles.places.empty() || !alike)
        return {shape.columns, static_cast<std::uint32_t>(rows), std::move(values), false};
    tiles.rows = static_cast<std::uint32_t>(part * 8 / shape.bits / shape.columns);
    return tiles.arrange(values, chosen);
}

}  // namespace weir::store

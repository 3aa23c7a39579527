// What a run's HDF5 files look like: decided from the run's description and its first event, the same for the sink and
// for `weir export`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reduce/pack/codec.hpp"
#include "store/event_scanner.hpp"
#include "store/format.hpp"
#include "store/hdf5/nexus_fields.hpp"
#include "wire/format.hpp"

namespace weir::store::hdf5 {

/// How chunks are stored, by HDF5's registered filters: all but `bits`, for which there is none.
using reduce::pack::Codec;
/// Nothing if HDF5 has no filter for it.
std::optional<Codec> codec_named(std::string_view name) noexcept;

enum class Element : std::uint8_t { u8, u16, i16, f16, f32, u32 };
inline constexpr std::array<std::string_view, 6> element_names{"u8", "u16", "i16", "f16", "f32", "u32"};
constexpr std::uint32_t element_bytes(Element element) {
    constexpr std::array<std::uint32_t, 6> bytes{1, 2, 2, 2, 4, 4};
    return bytes[static_cast<std::size_t>(element)];
}

/// What is known before the first event.
struct Description {
    Codec codec = Codec::raw;
    std::optional<int> level;  ///< for what has to be compressed here; else the codec's usual one
    std::string format;        ///< of all streams, if they have the same; else empty
    Content content = Content::received;
    std::optional<Element> element;  ///< of pixels
    std::string unit;                ///< "photon", "kev", or empty
    std::uint32_t columns = 0;       ///< 0: not an image
    std::uint32_t bits = 0;          ///< of a pixel in the payload, where several may share a byte; 0: as the element
    std::optional<double> photon_kev;
    std::size_t modules = 0;  ///< that are expected in an image
};

/// From the run's start JSON ({"config": …, "payload": …}); `codec` overrides what the chain compresses with;
/// without one, what it compresses with zstd becomes bitshuffle-lz4, because not every HDF5 can read zstd.
Description describe(const nlohmann::json& start, std::optional<Codec> codec);

/// The shape of everything in a run's files.
struct Layout {
    Description description;
    bool image = false;
    Element element = Element::u8;
    std::vector<std::uint32_t> sources;  ///< ids, ascending; of an image the modules
    std::uint32_t rows = 0;              ///< of a module
    std::uint32_t columns = 0;
    std::uint32_t chunk_rows = 0;
    std::uint32_t bits = 8;                ///< of a pixel in the payload
    std::vector<wire::ImagePlace> places;  ///< of the modules, where they do not stand below each other and say so

    [[nodiscard]] std::uint64_t row_bytes() const noexcept { return std::uint64_t{columns} * element_bytes(element); }
    [[nodiscard]] std::uint64_t module_bytes() const noexcept { return rows * row_bytes(); }
    [[nodiscard]] std::uint64_t image_rows() const noexcept { return std::uint64_t{rows} * sources.size(); }
    [[nodiscard]] std::uint64_t image_bytes() const noexcept { return image_rows() * row_bytes(); }
    /// Of a module in the payload, where several pixels may share a byte.
    [[nodiscard]] std::uint64_t part_bytes() const noexcept { return std::uint64_t{rows} * columns * bits / 8; }
    [[nodiscard]] bool is_packed() const noexcept { return wire::is_packed(bits); }
    /// The largest value of a pixel as received that is no marker.
    [[nodiscard]] std::uint32_t largest_received() const noexcept;
    /// Of a chunk, decoded.
    [[nodiscard]] std::uint64_t chunk_bytes() const noexcept {
        return image ? chunk_rows * row_bytes() : stream_chunk_bytes;
    }
    [[nodiscard]] std::uint64_t chunks() const noexcept {
        return chunk_rows == 0 ? 0 : (image_rows() + chunk_rows - 1) / chunk_rows;
    }
    /// What stands where nothing came, as one element.
    [[nodiscard]] std::array<std::byte, 4> fill() const noexcept;

    static constexpr std::uint64_t stream_chunk_bytes = std::uint64_t{256} << 10;
    /// As the pieces that workers make: such a piece becomes a chunk as it is.
    static constexpr std::uint64_t chunk_bytes_max = std::uint64_t{256} << 10;
};

/// What is known of the images of this format; all empty if it has none.
wire::ImageFacts image_of(std::string_view format) noexcept;

/// Where the images of the event's sources stand, if that is not below each other and their headers say it; else empty.
std::vector<wire::ImagePlace> image_places(std::string_view format, const EventInfo& event);

/// The layout that `first`, the first event of the run, has.
Layout layout_of(const Description& description, const EventInfo& first);

/// Puts the layout's filler into these pixels of `pixels`, each of which has bytes of its own there.
void fill_pixels(const Layout& layout, wire::PixelRange range, std::span<std::byte> pixels) noexcept;

/// Of one source in the decoded payload of an event.
std::uint64_t payload_bytes(const EventInfo& event, const SourceInfo& source) noexcept;

/// Throws core::RunError if the event does not fit.
void check_event(const Layout& layout, const EventInfo& event);

}  // namespace weir::store::hdf5

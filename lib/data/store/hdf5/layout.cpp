// What a run's HDF5 files look like. See layout.hpp.
#include "store/hdf5/layout.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "store/json_members.hpp"
#include "wire/reported_stream.hpp"

namespace weir::store::hdf5 {

namespace {

using nlohmann::json;

template <class Enum, std::size_t N>
std::optional<Enum> named(const std::array<std::string_view, N>& names, std::string_view name) noexcept {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return {};
    return static_cast<Enum>(found - names.begin());
}

/// The format of all streams; empty if they differ.
std::string common_format(const json& config) {
    std::optional<std::string> common;
    const json& streams = at_or_null(config, "stream");
    if (!streams.is_array()) return {};
    for (const json& stream : streams) {
        std::string format = text_at(stream, "format");
        if (common && *common != format) return {};
        common = std::move(format);
    }
    return common.value_or("");
}

/// What the chain compresses with, if HDF5 has a filter for it; and how hard.
void take_codec(Description& description, const json& config) {
    const json& reducers = at_or_null(config, "reduce");
    if (!reducers.is_array()) return;
    for (const json& reducer : reducers) {
        const std::string kind = text_at(reducer, "kind");
        // What a sparse reducer left out is zeros here: nobody would want to keep them as they are.
        if (kind == "sparse") description.codec = Codec::bitshuffle_lz4;
        if (kind != "zstd" && kind != "pack") continue;
        const auto codec = kind == "zstd" ? Codec::zstd : codec_named(text_at(reducer, "codec"));
        if (!codec || *codec == Codec::raw) continue;
        description.codec = *codec;
        if (const json& level = at_or_null(reducer, "level"); level.is_number_integer())
            description.level = level.get<int>();
    }
}

/// Of the images as received; pixels that share bytes get some of their own.
void take_shape(Description& description, const std::optional<wire::ImageShape>& shape) {
    if (!shape || shape->columns * shape->bits % 8 != 0) return;
    description.columns = shape->columns;
    description.bits = shape->bits;
    const std::uint32_t bytes = wire::unpacked_bytes(shape->bits);
    description.element = bytes == 1 ? Element::u8 : bytes == 2 ? Element::u16 : Element::u32;
}

std::uint64_t bytes_in(const Layout& layout, const EventInfo& event, const SourceInfo& source) {
    if (event.content != Content::received) return source.reduced_bytes;
    return source.size_known() ? source.declared_bytes : layout.part_bytes();
}

/// As many rows as a worker's piece has where these fill a module, else the most that do, unless that is very few.
std::uint32_t chunk_rows_of(std::uint32_t rows, std::uint64_t row_bytes) {
    const auto most = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(Layout::chunk_bytes_max / row_bytes, 1, std::max<std::uint32_t>(rows, 1)));
    for (std::uint32_t chunk_rows = most; chunk_rows > most / 4; --chunk_rows)
        if (rows % chunk_rows == 0) return chunk_rows;
    return most;
}

}  // namespace

std::optional<Codec> codec_named(std::string_view name) noexcept {
    const auto codec = named<Codec>(reduce::pack::codec_names, name);
    return codec == Codec::bits ? std::nullopt : codec;
}

Description describe(const json& start, std::optional<Codec> codec) {
    Description description;
    const json& config = at_or_null(start, "config");
    const json& payload = at_or_null(start, "payload");
    description.format = common_format(config);
    take_codec(description, config);
    // Unless somebody asks for it, nothing that the plug-ins of Debian cannot read.
    if (!codec && (description.codec == Codec::zstd || description.codec == Codec::bitshuffle_zstd))
        codec = Codec::bitshuffle_lz4;
    if (codec && *codec != description.codec) {
        description.codec = *codec;
        description.level.reset();
    }
    if (const json& sources = at_or_null(at_or_null(start, "config"), "sources"); sources.is_array())
        description.modules = sources.size();
    const std::string content = text_at(payload, "content");
    if (const auto found = named<Content>(content_names, content)) description.content = *found;
    description.unit = text_at(payload, "unit");
    if (const json& energy = at_or_null(payload, "photon_kev"); energy.is_number())
        description.photon_kev = energy.get<double>();
    if (description.content == Content::pixels) {
        description.element = named<Element>(element_names, text_at(payload, "type"));
        description.columns = static_cast<std::uint32_t>(number_at(payload, "columns").value_or(1024));
    } else if (description.content == Content::received) {
        take_shape(description, wire::image_of_streams(at_or_null(config, "stream")));
    }
    return description;
}

wire::ImageFacts image_of(std::string_view format) noexcept {
    const wire::FormatEntry* entry = wire::find_format(format);
    return entry != nullptr ? entry->image : wire::ImageFacts{};
}

std::uint64_t payload_bytes(const EventInfo& event, const SourceInfo& source) noexcept {
    return event.content == Content::received ? source.received_bytes : source.reduced_bytes;
}

std::array<std::byte, 4> Layout::fill() const noexcept {
    const auto bytes = [](auto... values) { return std::array<std::byte, 4>{static_cast<std::byte>(values)...}; };
    switch (element) {
        case Element::u8:
            return image ? bytes(0xff, 0, 0, 0) : bytes(0, 0, 0, 0);
        case Element::u32:
            return bytes(0xff, 0xff, 0xff, 0xff);
        case Element::u16:
            return bytes(0xff, 0xff, 0, 0);
        case Element::i16:
            return bytes(0x00, 0x80, 0, 0);
        case Element::f16:
            return bytes(0x00, 0x7e, 0, 0);  // a quiet NaN, as the next one
        case Element::f32:
            return bytes(0x00, 0x00, 0xc0, 0x7f);
    }
    return {};
}

std::uint32_t Layout::largest_received() const noexcept {
    const auto largest = static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1);
    return is_packed() ? largest : largest - 1;  // what shares bytes with others gets room for the marker beside it
}

std::vector<wire::ImagePlace> image_places(std::string_view format, const EventInfo& event) {
    const wire::FormatEntry* entry = wire::find_format(format);
    if (entry == nullptr || entry->image_places == nullptr || event.content != Content::received) return {};
    std::vector<std::span<const std::byte>> headers;
    for (const SourceInfo& source : event.sources) headers.emplace_back(source.meta);
    return entry->image_places(headers);
}

void fill_pixels(const Layout& layout, wire::PixelRange range, std::span<std::byte> pixels) noexcept {
    const auto filler = layout.fill();
    const std::uint32_t size = element_bytes(layout.element);
    for (std::uint64_t i = range.begin; i < range.end; ++i) std::memcpy(pixels.data() + i * size, filler.data(), size);
}

Layout layout_of(const Description& description, const EventInfo& first) {
    Layout layout;
    layout.description = description;
    if (first.sources.empty())
        throw core::RunError(fmt::format("event {}:{} has no sources: nothing to write", first.epoch, first.id));
    for (const SourceInfo& source : first.sources) layout.sources.push_back(source.id);
    if (!description.element || description.columns == 0 || first.content != description.content) return layout;
    layout.columns = description.columns;
    layout.element = *description.element;
    layout.bits = description.bits != 0 ? description.bits : 8 * element_bytes(layout.element);
    const std::uint64_t row_bytes = std::uint64_t{layout.columns} * layout.bits / 8;  // in the payload
    std::uint64_t module = 0;
    bool alike = true;
    for (const SourceInfo& source : first.sources) {
        if (first.content == Content::received && !source.size_known()) continue;
        const std::uint64_t bytes = bytes_in(layout, first, source);
        alike = alike && (module == 0 || bytes == module);
        module = bytes;
    }
    // Modules of different sizes, or messages that are no whole rows, are no image, whatever the format is called.
    if (!alike || module == 0 || row_bytes == 0 || module % row_bytes != 0 || module / row_bytes > UINT32_MAX) {
        layout.element = Element::u8;
        layout.columns = 0;
        layout.bits = 8;
        return layout;
    }
    layout.rows = static_cast<std::uint32_t>(module / row_bytes);
    layout.places = image_places(description.format, first);
    layout.chunk_rows = chunk_rows_of(layout.rows, layout.row_bytes());
    layout.image = true;
    return layout;
}

void check_event(const Layout& layout, const EventInfo& event) {
    const auto refuse = [&](const std::string& why) {
        throw core::RunError(
            fmt::format("event {}:{} does not fit into the HDF5 files of its run: {}", event.epoch, event.id, why));
    };
    const auto same = [](const SourceInfo& source, std::uint32_t id) { return source.id == id; };
    if (!std::equal(event.sources.begin(), event.sources.end(), layout.sources.begin(), layout.sources.end(), same))
        refuse("it has other sources than the first one");
    if (!layout.image) return;
    if (event.content != layout.description.content) refuse("its payload is of another kind than the first one's");
    for (const SourceInfo& source : event.sources) {
        const std::uint64_t bytes = bytes_in(layout, event, source);
        if (bytes != layout.part_bytes())
            refuse(
                fmt::format("source {} has {} bytes, and {} in the first one", source.id, bytes, layout.part_bytes()));
    }
}

}  // namespace weir::store::hdf5

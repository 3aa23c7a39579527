// What the events in a data file look like. See layout_reader.hpp.
#include "store/hdf5/layout_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "store/hdf5/data_file.hpp"
#include "store/hdf5/tables.hpp"

namespace weir::store::hdf5 {

namespace {

constexpr const char* image_path = "/entry/data/data";
constexpr const char* payload_path = "/entry/data/payload";

[[noreturn]] void fail(const InputFile& file, const std::string& what) {
    throw core::RunError(fmt::format("{}: {}", file.path().string(), what));
}

bool is_type(const InputFile& file, const std::string& dataset, hid_t type) {
    return h5().H5Tequal(file.type(dataset).get(), type) > 0;
}

Element read_element(const InputFile& file, const std::string& dataset) {
    const Library library(file.path(), "cannot read");
    Layout layout;
    for (std::size_t i = 0; i < element_names.size(); ++i) {
        layout.element = static_cast<Element>(i);
        if (is_type(file, dataset, element_type(library, layout).get())) return layout.element;
    }
    fail(file, fmt::format("{} has a type that weir does not write", dataset));
}

void read_image(const InputFile& file, Layout& layout) {
    const std::vector<hsize_t> shape = file.shape(image_path);
    constexpr hsize_t most = std::numeric_limits<std::uint32_t>::max();
    if (shape.size() != 3 || shape[1] % layout.sources.size() != 0 || shape[1] > most || shape[2] > most)
        fail(file, fmt::format("{} is no stack of images of its sources", image_path));
    layout.image = true;
    layout.rows = static_cast<std::uint32_t>(shape[1] / layout.sources.size());
    layout.columns = static_cast<std::uint32_t>(shape[2]);
    layout.element = read_element(file, image_path);
    layout.bits = layout.description.bits != 0 ? layout.description.bits : 8 * element_bytes(layout.element);
}

void read_stream(const InputFile& file, Layout& layout) {
    if (!file.has(payload_path)) fail(file, "neither images nor payload are in it: it is no data file of weir");
    if (file.shape(payload_path).size() != 1) fail(file, fmt::format("{} is no stream of bytes", payload_path));
    layout.element = read_element(file, payload_path);
    if (layout.element != Element::u8) fail(file, fmt::format("{} is no stream of bytes", payload_path));
}

}  // namespace

Layout read_layout(const InputFile& file, const Description& description) {
    Layout layout;
    layout.description = description;
    layout.sources = file.values<std::uint32_t>("/entry/sources/id", h5().H5T_NATIVE_UINT32_g);
    if (layout.sources.empty()) fail(file, "it has no sources");
    if (file.has(image_path))
        read_image(file, layout);
    else
        read_stream(file, layout);
    return layout;
}

std::string layout_text(const Layout& layout) {
    std::string text = layout.image ? fmt::format("images of {} x {} {}", layout.image_rows(), layout.columns,
                                                  element_names[static_cast<std::size_t>(layout.element)])
                                    : "a stream of bytes";
    const Description& description = layout.description;
    if (description.content != Content::received)
        text += fmt::format(" ({})", content_names[static_cast<std::size_t>(description.content)]);
    if (!description.unit.empty()) text += " in " + description.unit;
    return fmt::format("{}, of the source{} {}", text, layout.sources.size() == 1 ? "" : "s",
                       fmt::join(layout.sources, ", "));
}

RowCounts count_rows(const InputFile& file, const Layout& layout, bool interrupted) {
    std::optional<std::uint64_t> events;
    std::optional<std::uint64_t> missing;
    const auto count = [&](std::optional<std::uint64_t>& rows, std::uint64_t found, const std::string& path) {
        if (rows && *rows != found && !interrupted)
            fail(file, fmt::format("damaged: {} has {} rows, and others have {}", path, found, *rows));
        rows = std::min(rows.value_or(found), found);
    };
    for (const ColumnKind& kind : column_kinds(layout)) {
        const std::string path = fmt::format("/entry/{}/{}", kind.group, kind.name);
        std::vector<hsize_t> shape = file.shape(path);
        if (shape.empty()) fail(file, fmt::format("{} is no column", path));
        count(kind.per_event ? events : missing, shape.front(), path);
        shape.erase(shape.begin());
        if (shape != kind.row_shape || !is_type(file, path, kind.type))
            fail(file, fmt::format("{} is not what this version of weir writes", path));
    }
    if (layout.image) count(events, file.shape(image_path).front(), image_path);
    return {events.value_or(0), missing.value_or(0)};
}

}  // namespace weir::store::hdf5

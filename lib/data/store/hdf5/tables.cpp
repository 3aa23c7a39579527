// Everything about events but their payload, as columns. See tables.hpp.
#include "store/hdf5/tables.hpp"

#include <array>

namespace weir::store::hdf5 {

namespace {

using Kinds = std::vector<ColumnKind>;

template <class Get>
void add_event_column(Kinds& kinds, const char* name, hid_t type, const char* about, Get get) {
    kinds.push_back({"events", name, type, {}, about, true, [get](Column& column, const EventRow& row) {
                         column.put(get(row.event));
                     }});
}

template <class Get>
void add_source_column(Kinds& kinds, const Layout& layout, const char* name, hid_t type, const char* about, Get get) {
    kinds.push_back(
        {"sources", name, type, {layout.sources.size()}, about, true, [get](Column& column, const EventRow& row) {
             for (const SourceInfo& source : row.event.sources) column.put(get(source));
         }});
}

void add_events(Kinds& kinds) {
    add_event_column(kinds, "number", h5().H5T_NATIVE_UINT64_g, "event number, unique within its epoch",
                     [](const EventInfo& event) { return event.id; });
    add_event_column(kinds, "epoch", h5().H5T_NATIVE_UINT32_g, "counts restarts of the detector",
                     [](const EventInfo& event) { return event.epoch; });
    add_event_column(kinds, "first_ns", h5().H5T_NATIVE_INT64_g, "arrival of the first packet, ns since 1970-01-01 UTC",
                     [](const EventInfo& event) { return event.first_ns; });
    add_event_column(kinds, "last_ns", h5().H5T_NATIVE_INT64_g, "arrival of the last packet, ns since 1970-01-01 UTC",
                     [](const EventInfo& event) { return event.last_ns; });
    add_event_column(kinds, "complete", h5().H5T_NATIVE_UINT8_g, "1: as many sources as make an event, and all of each",
                     [](const EventInfo& event) { return std::uint8_t{event.complete}; });
    add_event_column(
        kinds, "cause", h5().H5T_NATIVE_UINT8_g,
        "why it is incomplete: 0 it is not, 1 timeout, 2 evicted, 3 end of run, 4 no room, 5 ended with gaps, 6 a node of "
        "the cluster went away",
        [](const EventInfo& event) { return static_cast<std::uint8_t>(event.cause); });
    add_event_column(kinds, "packets", h5().H5T_NATIVE_UINT64_g, "received",
                     [](const EventInfo& event) { return event.packets; });
    add_event_column(kinds, "payload_bytes", h5().H5T_NATIVE_UINT64_g, "received, all sources together",
                     [](const EventInfo& event) { return event.payload_bytes; });
    add_event_column(kinds, "veto", h5().H5T_NATIVE_UINT8_g,
                     "0 none was asked, 1 passed, 2 would have been left out and was kept as a control",
                     [](const EventInfo& event) { return static_cast<std::uint8_t>(event.veto); });
    add_event_column(kinds, "pixels_above", h5().H5T_NATIVE_UINT32_g,
                     "pixels above the threshold of the veto, or kept by the sparse reducer",
                     [](const EventInfo& event) { return event.pixels_above; });
    add_event_column(kinds, "peaks", h5().H5T_NATIVE_UINT32_g, "found by the veto reducer",
                     [](const EventInfo& event) { return event.peaks; });
}

void add_headers(Kinds& kinds, const Layout& layout) {
    kinds.push_back({"sources",
                     "header",
                     h5().H5T_NATIVE_UINT8_g,
                     {layout.sources.size(), SourceBody::meta_bytes_max},
                     "detector header of the packet that came first, as received",
                     true,
                     [](Column& column, const EventRow& row) {
                         for (const SourceInfo& source : row.event.sources) {
                             std::array<std::byte, SourceBody::meta_bytes_max> header{};
                             std::copy(source.meta.begin(), source.meta.end(), header.begin());
                             column.put_bytes(header);
                         }
                     }});
    add_source_column(kinds, layout, "header_bytes", h5().H5T_NATIVE_UINT8_g, "how much of header is used",
                      [](const SourceInfo& source) { return static_cast<std::uint8_t>(source.meta.size()); });
}

void add_sources(Kinds& kinds, const Layout& layout) {
    add_source_column(kinds, layout, "state", h5().H5T_NATIVE_UINT8_g,
                      "0 complete, 1 partial, 2 size unknown, 3 absent, 4 absent and size unknown",
                      [](const SourceInfo& source) { return static_cast<std::uint8_t>(source.state); });
    add_source_column(kinds, layout, "declared_bytes", h5().H5T_NATIVE_UINT64_g, "size of the message; 0 if not known",
                      [](const SourceInfo& source) { return source.declared_bytes; });
    add_source_column(kinds, layout, "received_bytes", h5().H5T_NATIVE_UINT64_g, "of the message",
                      [](const SourceInfo& source) { return source.received_bytes; });
    add_source_column(kinds, layout, "packets", h5().H5T_NATIVE_UINT32_g, "received",
                      [](const SourceInfo& source) { return source.packets; });
    add_source_column(kinds, layout, "first_ns", h5().H5T_NATIVE_INT64_g,
                      "arrival of its first packet, ns since 1970-01-01 UTC; 0 if none",
                      [](const SourceInfo& source) { return source.first_ns; });
    add_source_column(kinds, layout, "last_ns", h5().H5T_NATIVE_INT64_g, "arrival of its last packet",
                      [](const SourceInfo& source) { return source.last_ns; });
    add_headers(kinds, layout);
    const std::vector<hsize_t> shape{layout.sources.size()};
    kinds.push_back({"sources", "missing_first", h5().H5T_NATIVE_UINT64_g, shape,
                     "its first row in /entry/missing, counted over the run", true,
                     [](Column& column, const EventRow& row) {
                         std::uint64_t first = row.first_missing;
                         for (const SourceInfo& source : row.event.sources) {
                             column.put(first);
                             first += source.missing.size();
                         }
                     }});
    add_source_column(kinds, layout, "missing_count", h5().H5T_NATIVE_UINT32_g, "its rows in /entry/missing",
                      [](const SourceInfo& source) { return static_cast<std::uint32_t>(source.missing.size()); });
    if (layout.image) return;
    kinds.push_back({"sources", "payload_offset", h5().H5T_NATIVE_UINT64_g, shape,
                     "where its bytes begin in /entry/data/payload, counted over the run", true,
                     [](Column& column, const EventRow& row) {
                         for (const std::uint64_t offset : row.payload_offsets) column.put(offset);
                     }});
    kinds.push_back({"sources", "payload_bytes", h5().H5T_NATIVE_UINT64_g, shape, "how many bytes are there", true,
                     [](Column& column, const EventRow& row) {
                         for (const SourceInfo& source : row.event.sources)
                             column.put(payload_bytes(row.event, source));
                     }});
}

template <class Get>
void add_missing_column(Kinds& kinds, const char* name, const char* about, Get get) {
    kinds.push_back(
        {"missing", name, h5().H5T_NATIVE_UINT32_g, {}, about, false, [get](Column& column, const EventRow& row) {
             for (const SourceInfo& source : row.event.sources)
                 for (const MissingRange& range : source.missing) column.put(get(range));
         }});
}

}  // namespace

std::vector<ColumnKind> column_kinds(const Layout& layout) {
    Kinds kinds;
    add_events(kinds);
    add_sources(kinds, layout);
    add_missing_column(kinds, "offset", "in the message as received",
                       [](const MissingRange& range) { return range.offset; });
    add_missing_column(kinds, "bytes", "that did not come", [](const MissingRange& range) { return range.bytes; });
    return kinds;
}

std::uint64_t missing_count(const EventInfo& event) noexcept {
    std::uint64_t count = 0;
    for (const SourceInfo& source : event.sources) count += source.missing.size();
    return count;
}

Tables::Tables(const Library& library, hid_t entry, const Layout& layout) : kinds_(column_kinds(layout)) {
    const char* group = "";
    for (const ColumnKind& kind : kinds_) {
        if (std::string_view(group) != kind.group)
            groups_.push_back(library.create_group(entry, group = kind.group, "NXcollection"));
        columns_.emplace_back(library, groups_.back().get(), kind.name, kind.type, kind.row_shape, kind.about);
    }
}

void Tables::put(const EventRow& row) {
    for (std::size_t i = 0; i < kinds_.size(); ++i) kinds_[i].put(columns_[i], row);
}

void Tables::append(const Library& library) {
    for (Column& column : columns_) column.append(library);
}

std::size_t Tables::pending_bytes() const noexcept {
    std::size_t bytes = 0;
    for (const Column& column : columns_) bytes += column.pending_bytes();
    return bytes;
}

void Tables::leave() noexcept {
    for (Handle& group : groups_) group.leave();
    for (Column& column : columns_) column.leave();
}

}  // namespace weir::store::hdf5

#include "stream/series.hpp"

#include <algorithm>

#include "store/hdf5/nexus.hpp"

namespace weir::stream {

using store::Content;
using store::EventInfo;
using store::SourceInfo;
using store::SourceState;
using store::hdf5::Layout;

namespace {

constexpr std::array<std::string_view, 5> state_names{"complete", "partial", "size_unknown", "absent",
                                                      "absent_unknown"};

/// As a numerator and a denominator, in seconds.
void put_seconds(CborWriter& to, std::string_view key, core::TimeNs ns) {
    to.text(key);
    to.array(2);
    to.integer(static_cast<std::uint64_t>(std::max<core::TimeNs>(ns, 0)));
    to.integer(static_cast<std::uint64_t>(core::ns_per_s));
}

void put_date(CborWriter& to, std::string_view key, std::string_view date) {
    to.text(key);
    to.tag(tag_date);
    to.text(date);
}

void begin_message(CborWriter& to, std::uint64_t pairs) {
    to.tag(tag_self_described);
    to.map(pairs);
}

void put_ids(CborWriter& to, std::string_view type, const Series& series) {
    to.text("type");
    to.text(type);
    to.text("series_id");
    to.integer(series.id);
    to.text("series_unique_id");
    to.text(series.unique_id);
}

void put_number(CborWriter& to, std::string_view key, std::uint64_t value) {
    to.text(key);
    to.integer(value);
}

void put_missing(CborWriter& to, const SourceInfo& source) {
    to.text("missing");
    to.array(source.missing.size());
    for (const store::MissingRange& range : source.missing) {
        to.array(2);
        to.integer(range.offset);
        to.integer(range.bytes);
    }
}

void put_source(CborWriter& to, const SourceInfo& source, bool reduced) {
    const bool whole = source.state == SourceState::complete;
    to.map(7 + (source.meta.empty() ? 0 : 1) + (source.missing.empty() ? 0 : 1) + (reduced ? 1 : 0) + (whole ? 0 : 1));
    put_number(to, "id", source.id);
    to.text("complete");
    to.boolean(whole);
    if (!whole) {
        to.text("state");
        to.text(state_names[static_cast<std::size_t>(source.state)]);
    }
    put_number(to, "packets", source.packets);
    put_number(to, "declared_bytes", source.declared_bytes);
    put_number(to, "received_bytes", source.received_bytes);
    to.text("first_ns");
    to.signed_integer(source.first_ns);
    to.text("last_ns");
    to.signed_integer(source.last_ns);
    if (reduced) put_number(to, "reduced_bytes", source.reduced_bytes);
    if (!source.meta.empty()) {
        to.text("meta");
        to.bytes(source.meta);
    }
    if (!source.missing.empty()) put_missing(to, source);
}

void put_event_facts(CborWriter& to, const EventInfo& event, const std::pair<std::uint32_t, std::uint32_t>* preview) {
    to.text("user_data");
    const bool vetoed = event.veto != store::Veto::none;
    to.map(8 + (event.complete ? 0 : 1) + (vetoed ? 3 : 0) + (preview != nullptr ? 1 : 0));
    put_number(to, "event", event.id);
    put_number(to, "epoch", event.epoch);
    to.text("complete");
    to.boolean(event.complete);
    if (!event.complete) {
        to.text("cause");
        to.text(store::cause_names[static_cast<std::size_t>(event.cause)]);
    }
    to.text("content");
    to.text(store::content_names[static_cast<std::size_t>(event.content)]);
    put_number(to, "packets", event.packets);
    to.text("first_ns");
    to.signed_integer(event.first_ns);
    to.text("last_ns");
    to.signed_integer(event.last_ns);
    if (vetoed) {
        to.text("veto");
        to.text(store::veto_names[static_cast<std::size_t>(event.veto)]);
        put_number(to, "pixels_above", event.pixels_above);
        put_number(to, "peaks", event.peaks);
    }
    if (preview != nullptr) {
        to.text("preview");
        to.map(2);
        put_number(to, "every", preview->first);
        put_number(to, "bin", preview->second);
    }
    to.text("sources");
    to.array(event.sources.size());
    for (const SourceInfo& source : event.sources) put_source(to, source, event.reduced());
}

}  // namespace

const ElementType& element_type_of(store::hdf5::Element element) {
    using store::hdf5::Element;
    switch (element) {
        case Element::u8:
            return *element_type_named("uint8");
        case Element::u16:
            return *element_type_named("uint16");
        case Element::u32:
            return *element_type_named("uint32");
        case Element::i16:
            return *element_type_named("int16");
        case Element::f16:
            return *element_type_named("float16");
        case Element::f32:
            break;
    }
    return *element_type_named("float32");
}

void put_start(CborWriter& to, const Series& series, const Layout* layout, std::uint64_t next_image) {
    begin_message(to, layout != nullptr ? 10 : 6);
    put_ids(to, "start", series);
    put_date(to, "arm_date", series.arm_date);
    put_number(to, "number_of_images", 0);  // nobody knows
    if (layout != nullptr) {
        to.text("channels");
        to.array(1);
        to.text(channel_name);
        to.text("image_dtype");
        to.text(element_type_of(layout->element).name);
        put_number(to, "image_size_x", layout->columns);
        put_number(to, "image_size_y", layout->image_rows());
    }
    to.text("user_data");
    to.map(layout != nullptr ? 6 : 4);
    to.text("sender");
    to.text("weir");
    put_number(to, "next_image_id", next_image);
    to.text("series_date");
    to.tag(tag_date);
    to.text(store::hdf5::iso_time(series.date_ns));
    to.text("start_json");
    to.text(series.start_json);
    if (layout == nullptr) return;
    to.text("sources");
    to.array(layout->sources.size());
    for (const std::uint32_t source : layout->sources) to.integer(source);
    put_number(to, "rows_per_source", layout->rows);
}

void put_event_head(CborWriter& to, std::string_view type, const Series& series, std::uint64_t image_id,
                    const EventInfo& event, const std::pair<std::uint32_t, std::uint32_t>* preview) {
    begin_message(to, 10);
    put_ids(to, type, series);
    put_number(to, "image_id", image_id);
    put_date(to, "series_date", store::hdf5::iso_time(series.date_ns));
    put_seconds(to, "real_time", event.last_ns - event.first_ns);
    put_seconds(to, "start_time", event.first_ns - series.date_ns);
    put_seconds(to, "stop_time", event.last_ns - series.date_ns);
    put_event_facts(to, event, preview);
    to.text("data");
}

void put_image_data(CborWriter& to, std::uint64_t rows, std::uint64_t columns, const ElementType& type,
                    std::string_view compression, std::uint64_t bytes) {
    to.map(1);
    to.text(channel_name);
    to.tag(tag_multi_dimensional);
    to.array(2);
    to.array(2);
    to.integer(rows);
    to.integer(columns);
    to.tag(type.tag);
    if (!compression.empty()) {
        to.tag(tag_compressed);
        to.array(3);
        to.text(compression);
        to.integer(type.bytes);
    }
    to.bytes_head(bytes);
}

void put_end(CborWriter& to, const Series& series, const Totals& totals) {
    begin_message(to, 4);
    put_ids(to, "end", series);
    to.text("user_data");
    to.map(3);
    put_number(to, "events", totals.events);
    put_number(to, "sent", totals.sent);
    to.text("dropped");
    to.map(totals.causes.size());
    for (std::size_t i = 0; i < totals.causes.size(); ++i) put_number(to, totals.causes[i], totals.dropped[i]);
}

}  // namespace weir::stream

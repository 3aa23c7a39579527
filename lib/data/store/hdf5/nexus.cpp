// The NeXus side of a run's files. See nexus.hpp. Names and requirements: NeXus definitions,
// applications/NXmx.nxdl.xml.
#include "store/hdf5/nexus.hpp"

#include <fmt/core.h>
#include <time.h>

#include <cmath>

#include "core/clock_ns.hpp"

namespace weir::store::hdf5 {

namespace {

/// Of the detectors whose images weir knows; in µm, as their makers state it.
std::optional<double> pixel_size_um(const Layout& layout, const Nexus& nexus) {
    if (nexus.pixel_size_um) return nexus.pixel_size_um;
    const double known = image_of(layout.description.format).pixel_um;
    return known > 0 ? std::optional(known) : std::nullopt;
}

std::string detector_name(const Layout& layout, const Nexus& nexus) {
    if (!nexus.detector.empty()) return nexus.detector;
    return std::string(image_of(layout.description.format).detector);
}

/// Of an image as received.
std::uint32_t filler_of(const Layout& layout) {
    return static_cast<std::uint32_t>((std::uint64_t{1} << 8 * element_bytes(layout.element)) - 1);
}

/// An axis of a NeXus geometry: so far along `vector`, then as `depends_on` says.
void put_axis(const Library& library, hid_t group, const char* name, double metres, const std::array<double, 3>& vector,
              const std::string& depends_on) {
    const Handle axis = library.put_number(group, name, metres, "m");
    library.put_attribute(axis.get(), "transformation_type", "translation");
    const hsize_t shape[] = {3};
    library.put_attribute(axis.get(), "vector", h5().H5T_NATIVE_DOUBLE_g, shape, vector.data());
    constexpr std::array<double, 3> nowhere{};
    library.put_attribute(axis.get(), "offset", h5().H5T_NATIVE_DOUBLE_g, shape, nowhere.data());
    library.put_attribute(axis.get(), "offset_units", "m");
    library.put_attribute(axis.get(), "depends_on", depends_on);
}

constexpr double metres_per_um = 1e-6;

using Vector = std::array<double, 3>;

/// Pixels between the corner of the first module and that of module `index`, along the slow direction; nothing where
/// the gaps are not known.
std::optional<double> corner_of(std::size_t index, std::size_t modules, std::uint32_t rows, const Nexus& nexus) {
    const std::vector<double>& gaps = nexus.module_gap;
    if (modules > 1 && gaps.size() != 1 && gaps.size() != modules - 1) return {};
    double pixels = static_cast<double>(index) * rows;
    for (std::size_t i = 0; i < index; ++i) pixels += gaps.size() == 1 ? gaps[0] : gaps[i];
    return pixels;
}

/// Where the corner of a module is, from where the beam meets the detector.
std::optional<Vector> place_of(std::size_t index, const Layout& layout, const Nexus& nexus, double pixel_m) {
    const std::optional<double> corner = corner_of(index, layout.sources.size(), layout.rows, nexus);
    if (!corner || !nexus.beam_center || !nexus.fast_direction || !nexus.slow_direction) return {};
    Vector place{};
    for (std::size_t i = 0; i < place.size(); ++i)
        place[i] = pixel_m * (-(*nexus.beam_center)[0] * (*nexus.fast_direction)[i] +
                              (*corner - (*nexus.beam_center)[1]) * (*nexus.slow_direction)[i]);
    return place;
}

/// Returns what the directions of the module's pixels depend on: so far along a vector, which readers follow.
std::string put_module_offset(const Library& library, hid_t module, const std::string& path, const Vector& place,
                              const std::string& depends_on) {
    const double metres = std::hypot(place[0], place[1], place[2]);
    Vector direction{1, 0, 0};
    for (std::size_t i = 0; metres > 0 && i < place.size(); ++i) direction[i] = place[i] / metres;
    put_axis(library, module, "module_offset", metres, direction, depends_on);
    return path + "/module_offset";
}

/// Where the module stands in the detector, as its header says.
void put_place(const Library& library, hid_t module, const wire::ImagePlace& place) {
    const hsize_t shape[] = {2};
    const std::uint64_t at[] = {place.row, place.column};
    const Handle dataset = library.put_dataset(module, "place", h5().H5T_NATIVE_UINT64_g, shape, at);
    library.put_attribute(dataset.get(), "description", "row and column among the modules, counted in modules");
    library.put_attribute(dataset.get(), "upside_down", std::uint64_t{place.upside_down});
}

void put_modules(const Library& library, hid_t detector, const Layout& layout, const Nexus& nexus,
                 const std::string& position) {
    const auto pixel = pixel_size_um(layout, nexus);
    for (std::size_t i = 0; i < layout.sources.size(); ++i) {
        const std::string name = fmt::format("module_{}", layout.sources[i]);
        const Handle module = library.create_group(detector, name, "NXdetector_module");
        std::string depends_on = position;
        const auto place =
            pixel && layout.places.empty() ? place_of(i, layout, nexus, *pixel * metres_per_um) : std::nullopt;
        if (place)
            depends_on =
                put_module_offset(library, module.get(), "/entry/instrument/detector/" + name, *place, position);
        const hsize_t shape[] = {2};
        const std::uint64_t origin[] = {i * layout.rows, 0};
        const std::uint64_t size[] = {layout.rows, layout.columns};
        static_cast<void>(library.put_dataset(module.get(), "data_origin", h5().H5T_NATIVE_UINT64_g, shape, origin));
        static_cast<void>(library.put_dataset(module.get(), "data_size", h5().H5T_NATIVE_UINT64_g, shape, size));
        if (!layout.places.empty()) put_place(library, module.get(), layout.places[i]);
        if (pixel && nexus.fast_direction)
            put_axis(library, module.get(), "fast_pixel_direction", *pixel * metres_per_um, *nexus.fast_direction,
                     depends_on);
        if (pixel && nexus.slow_direction)
            put_axis(library, module.get(), "slow_pixel_direction", *pixel * metres_per_um, *nexus.slow_direction,
                     depends_on);
    }
}

/// Returns what the modules depend on.
std::string put_position(const Library& library, hid_t detector, const Nexus& nexus) {
    if (!nexus.distance_mm) return ".";
    const double metres = *nexus.distance_mm * 1e-3;
    library.put_number(detector, "distance", metres, "m");
    const Handle group = library.create_group(detector, "transformations", "NXtransformations");
    put_axis(library, group.get(), "translation", metres, {0, 0, 1}, ".");
    std::string path = "/entry/instrument/detector/transformations/translation";
    library.put_text(detector, "depends_on", path);
    return path;
}

void put_detector(const Library& library, hid_t instrument, const Layout& layout, const Nexus& nexus) {
    const Handle detector = library.create_group(instrument, "detector", "NXdetector");
    const hid_t id = detector.get();
    library.check(h5().H5Lcreate_soft("/entry/data/data", id, "data", H5P_DEFAULT, H5P_DEFAULT));
    if (const std::string name = detector_name(layout, nexus); !name.empty()) library.put_text(id, "description", name);
    if (!nexus.sensor_material.empty()) library.put_text(id, "sensor_material", nexus.sensor_material);
    if (nexus.sensor_thickness_um)
        library.put_number(id, "sensor_thickness", *nexus.sensor_thickness_um * metres_per_um, "m");
    if (const auto pixel = pixel_size_um(layout, nexus)) {
        library.put_number(id, "x_pixel_size", *pixel * metres_per_um, "m");
        library.put_number(id, "y_pixel_size", *pixel * metres_per_um, "m");
    }
    if (nexus.beam_center) {
        library.put_number(id, "beam_center_x", (*nexus.beam_center)[0], "pixel");
        library.put_number(id, "beam_center_y", (*nexus.beam_center)[1], "pixel");
    }
    const bool received = layout.description.content == Content::received;
    if (!image_of(layout.description.format).detector.empty()) {
        const std::int32_t bits = received ? static_cast<std::int32_t>(layout.bits) : 16;  // what is reduced had 16
        static_cast<void>(library.put_dataset(id, "bit_depth_readout", h5().H5T_NATIVE_INT32_g, {}, &bits));
    }
    // What lies above is a marker.
    if (received) {
        const std::uint32_t most = layout.largest_received();
        const std::int32_t least = 0;
        static_cast<void>(library.put_dataset(id, "saturation_value", h5().H5T_NATIVE_UINT32_g, {}, &most));
        static_cast<void>(library.put_dataset(id, "underload_value", h5().H5T_NATIVE_INT32_g, {}, &least));
    }
    if (layout.description.content == Content::pixels &&
        (layout.element == Element::u16 || layout.element == Element::i16)) {
        const std::int32_t most = layout.element == Element::u16 ? 65533 : 32766;
        const std::int32_t least = layout.element == Element::u16 ? 0 : -32767;
        static_cast<void>(library.put_dataset(id, "saturation_value", h5().H5T_NATIVE_INT32_g, {}, &most));
        static_cast<void>(library.put_dataset(id, "underload_value", h5().H5T_NATIVE_INT32_g, {}, &least));
    }
    put_modules(library, id, layout, nexus, put_position(library, id, nexus));
}

}  // namespace

std::string iso_time(core::TimeNs unix_ns) {
    const std::int64_t seconds = unix_ns / core::ns_per_s - (unix_ns % core::ns_per_s < 0 ? 1 : 0);
    const time_t whole = static_cast<time_t>(seconds);
    tm utc{};
    ::gmtime_r(&whole, &utc);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                       utc.tm_hour, utc.tm_min, utc.tm_sec, (unix_ns - seconds * core::ns_per_s) / 1000);
}

std::optional<double> wavelength(const Description& description, const Nexus& nexus) {
    if (nexus.wavelength_angstrom) return nexus.wavelength_angstrom;
    constexpr double kev_angstrom = 12.398419843320026;  // h c / e, exact since 2019
    if (description.photon_kev && *description.photon_kev > 0) return kev_angstrom / *description.photon_kev;
    return {};
}

/// What NXmx requires, and what its readers need to know where each module is: without that they place all of them in
/// one place, and say nothing.
std::vector<std::string> missing_for_nxmx(const Description& description, const Nexus& nexus, std::size_t modules) {
    std::vector<std::string> missing;
    const auto need = [&](bool known, const char* key) {
        if (!known) missing.emplace_back(key);
    };
    Layout any;
    any.description = description;
    need(!nexus.instrument.empty(), "instrument");
    need(!nexus.source.empty(), "source");
    need(!nexus.sample.empty(), "sample");
    need(!nexus.sensor_material.empty(), "sensor_material");
    need(nexus.sensor_thickness_um.has_value(), "sensor_thickness_um");
    need(pixel_size_um(any, nexus).has_value(), "pixel_size_um");
    need(wavelength(description, nexus).has_value(), "wavelength_angstrom");
    need(nexus.total_flux.has_value(), "total_flux");
    need(nexus.fast_direction.has_value(), "fast_direction");
    need(nexus.slow_direction.has_value(), "slow_direction");
    need(nexus.distance_mm.has_value(), "distance_mm");
    need(nexus.beam_center.has_value(), "beam_center");
    const bool gaps_known = modules < 2 || nexus.module_gap.size() == 1 || nexus.module_gap.size() == modules - 1;
    need(gaps_known, "module_gap");
    const wire::FormatEntry* format = wire::find_format(description.format);
    need(modules < 2 || format == nullptr || format->image_places == nullptr, "modules that stand below each other");
    return missing;
}

Handle put_entry(const Library& library, hid_t file, const RunText& text) {
    library.put_attribute(file, "NX_class", "NXroot");
    library.put_attribute(file, "default", "entry");
    library.put_attribute(file, "file_name", library.path().filename().string());
    library.put_attribute(file, "file_time", iso_time(core::clock_ns(CLOCK_REALTIME)));
    library.put_attribute(file, "creator", "weir");
    Handle entry = library.create_group(file, "entry", "NXentry");
    library.put_attribute(entry.get(), "default", "data");
    library.put_text(entry.get(), "title", text.nexus.title.empty() ? text.name : text.nexus.title);
    library.put_text(entry.get(), "start_time", text.start_time);
    const Handle weir = library.create_group(entry.get(), "weir", "NXcollection");
    library.put_text(weir.get(), "start", text.start_json);
    return entry;
}

Handle put_data_group(const Library& library, hid_t entry, const Layout& layout) {
    Handle data = library.create_group(entry, "data", "NXdata");
    library.put_attribute(data.get(), "signal", layout.image ? "data" : "payload");
    if (layout.image) library.put_texts(data.get(), "axes", {"event", ".", "."});
    // The event numbers, as the axis of a plot.
    if (layout.image)
        library.check(h5().H5Lcreate_soft("/entry/events/number", data.get(), "event", H5P_DEFAULT, H5P_DEFAULT));
    return data;
}

void put_data_attributes(const Library& library, hid_t dataset, const Layout& layout) {
    const Description& description = layout.description;
    if (!layout.image) {
        library.put_attribute(dataset, "description",
                              "payload of all events, source after source; "
                              "/entry/sources/payload_offset and payload_bytes say what is whose");
        return;
    }
    if (!description.unit.empty()) library.put_attribute(dataset, "units", description.unit);
    if (description.content == Content::received)
        library.put_attribute(
            dataset, "description",
            fmt::format("pixels as received; {} where nothing came, see /entry/missing", filler_of(layout)));
    else if (layout.element == Element::f16 || layout.element == Element::f32)
        library.put_attribute(dataset, "description", "NaN: missing, bad or in error; infinite: saturated");
    else
        library.put_attribute(dataset, "description",
                              layout.element == Element::i16 ? "-32768: missing, bad or in error; 32767: saturated"
                                                             : "65535: missing, bad or in error; 65534: saturated");
}

void put_source_ids(const Library& library, hid_t entry, const Layout& layout) {
    const Handle group = library.own(h5().H5Gopen2(entry, "sources", H5P_DEFAULT), h5().H5Gclose);
    const hsize_t shape[] = {layout.sources.size()};
    const Handle ids = library.put_dataset(group.get(), "id", h5().H5T_NATIVE_UINT32_g, shape, layout.sources.data());
    library.put_attribute(ids.get(), "description", "of the sources, in the order of the columns beside this");
}

void put_instrument(const Library& library, hid_t entry, const Layout& layout, const Nexus& nexus) {
    const Handle instrument = library.create_group(entry, "instrument", "NXinstrument");
    if (!nexus.instrument.empty()) {
        const Handle name = library.put_text(instrument.get(), "name", nexus.instrument);
        library.put_attribute(name.get(), "short_name", nexus.instrument);
    }
    const Handle beam = library.create_group(instrument.get(), "beam", "NXbeam");
    if (const auto value = wavelength(layout.description, nexus))
        library.put_number(beam.get(), "incident_wavelength", *value, "angstrom");
    if (nexus.total_flux) library.put_number(beam.get(), "total_flux", *nexus.total_flux, "Hz");
    put_detector(library, instrument.get(), layout, nexus);
    if (!nexus.source.empty()) {
        const Handle source = library.create_group(entry, "source", "NXsource");
        library.put_text(source.get(), "name", nexus.source);
    }
    if (!nexus.sample.empty()) {
        const Handle sample = library.create_group(entry, "sample", "NXsample");
        library.put_text(sample.get(), "name", nexus.sample);
        library.put_text(sample.get(), "depends_on", ".");  // weir knows of no goniometer
        // Where older versions of the definition have it.
        library.check(h5().H5Lcreate_soft("/entry/instrument/beam", sample.get(), "beam", H5P_DEFAULT, H5P_DEFAULT));
    }
}

}  // namespace weir::store::hdf5

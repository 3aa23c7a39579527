// One file for the HDF5 runs of a cluster's builders. See virtual_master.hpp.
#include "store/hdf5/virtual_master.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "store/file.hpp"
#include "store/hdf5/input_file.hpp"
#include "store/hdf5/master_file.hpp"
#include "store/hdf5/nexus.hpp"
#include "store/hdf5/tables.hpp"

namespace weir::store::hdf5 {

namespace {

/// A data file, seen from the master.
struct Source {
    const BuilderDataFile* content = nullptr;
    std::string name;                      ///< relative to the master's folder
    std::uint64_t first_missing = 0;       ///< where its rows begin in the master's missing ranges …
    std::uint64_t first_payload_byte = 0;  ///< … and its bytes in the master's stream
};

/// The library expands "%b" in the names of a mapping.
std::string escaped(const std::string& name) {
    std::string out;
    for (const char c : name) out += c == '%' ? "%%" : std::string(1, c);
    return out;
}

/// From the folder of the master to that of the runs. Without symbolic links, so that ".." leads where it seems to.
std::filesystem::path way_to(const std::filesystem::path& runs, const std::filesystem::path& master) {
    std::error_code error;
    const std::filesystem::path from =
        std::filesystem::canonical(master.has_parent_path() ? master.parent_path() : ".", error);
    const std::filesystem::path to = error ? std::filesystem::path() : std::filesystem::canonical(runs, error);
    if (error)
        throw core::RunError(fmt::format("no way from {} to {}: {}", master.string(), runs.string(), error.message()));
    return to.lexically_relative(from);
}

/// First row and rows of the stretches: on one side several may be one.
std::vector<std::pair<std::uint64_t, std::uint64_t>> joined(const RowMapping& mapping,
                                                            std::uint64_t RowStretch::*side) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> joined;
    for (const RowStretch& stretch : mapping.stretches)
        if (!joined.empty() && joined.back().first + joined.back().second == stretch.*side)
            joined.back().second += stretch.rows;
        else
            joined.emplace_back(stretch.*side, stretch.rows);
    return joined;
}

/// What the library writes down for mappings of datasets of so many dimensions: two corners of each stretch.
std::uint64_t mapping_bytes(const std::vector<RowMapping>& mappings, std::size_t dimensions) {
    std::uint64_t stretches = 0;
    for (const RowMapping& mapping : mappings)
        stretches += joined(mapping, &RowStretch::here).size() + joined(mapping, &RowStretch::there).size();
    return stretches * dimensions * 2 * sizeof(std::uint32_t);
}

/// A dataset of which the rows are those of others, at `path` in each file.
class MappedDataset {
public:
    MappedDataset(const Library& library, const std::vector<Source>& sources, hid_t type,
                  std::vector<hsize_t> row_shape)
        : library_(library), sources_(sources), type_(type), row_shape_(std::move(row_shape)) {}

    /// `file_rows`: how many the dataset has in a file.
    template <class FileRows>
    [[nodiscard]] Handle create(hid_t parent, const char* name, const std::string& path, std::uint64_t rows,
                                const std::vector<RowMapping>& mappings, FileRows file_rows, const void* fill) const {
        const Handle space = space_of(rows);
        const Handle creation = library_.own(h5().H5Pcreate(h5().H5P_CLS_DATASET_CREATE_ID_g), h5().H5Pclose);
        if (fill != nullptr) library_.check(h5().H5Pset_fill_value(creation.get(), type_, fill));
        for (const RowMapping& mapping : mappings) {
            const Source& source = sources_[mapping.file];
            const Handle here = library_.own(h5().H5Scopy(space.get()), h5().H5Sclose);
            const Handle there = space_of(file_rows(*source.content));
            select(here.get(), mapping, &RowStretch::here);
            select(there.get(), mapping, &RowStretch::there);
            library_.check(h5().H5Pset_virtual(creation.get(), here.get(), escaped(source.name).c_str(), path.c_str(),
                                               there.get()));
        }
        return library_.own(h5().H5Dcreate2(parent, name, type_, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                            h5().H5Dclose);
    }

private:
    [[nodiscard]] Handle space_of(std::uint64_t rows) const {
        std::vector<hsize_t> sides{rows};
        sides.insert(sides.end(), row_shape_.begin(), row_shape_.end());
        return library_.own(h5().H5Screate_simple(static_cast<int>(sides.size()), sides.data(), nullptr),
                            h5().H5Sclose);
    }

    void select(hid_t space, const RowMapping& mapping, std::uint64_t RowStretch::*side) const {
        library_.check(h5().H5Sselect_none(space));
        std::vector<hsize_t> start(1 + row_shape_.size(), 0);
        std::vector<hsize_t> count{0};
        count.insert(count.end(), row_shape_.begin(), row_shape_.end());
        for (const auto& [first, rows] : joined(mapping, side)) {
            start[0] = first;
            count[0] = rows;
            library_.check(
                h5().H5Sselect_hyperslab(space, H5S_SELECT_OR, start.data(), nullptr, count.data(), nullptr));
        }
    }

    const Library& library_;
    const std::vector<Source>& sources_;
    hid_t type_;
    std::vector<hsize_t> row_shape_;
};

class VirtualMaster {
public:
    VirtualMaster(const std::filesystem::path& path, const std::filesystem::path& final_path, const BuilderFiles& found,
                  const MergedEvents& events)
        : library_(path), found_(found), events_(events), layout_(*found.layout) {
        const std::filesystem::path way = way_to(found.folder, final_path);
        for (const BuilderRun& run : found.runs)
            for (const BuilderDataFile& file : run.files) {
                const std::filesystem::path name = (way / run.name / file.path.filename()).lexically_normal();
                sources_.push_back({&file, name.string(), missing_rows_, payload_bytes_});
                missing_rows_ += file.missing;
                payload_bytes_ += file.payload_bytes;
            }
    }

    void write() {
        const Handle access = library_.own(h5().H5Pcreate(h5().H5P_CLS_FILE_ACCESS_ID_g), h5().H5Pclose);
        library_.check(h5().H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110));
        library_.check(h5().H5Pset_file_locking(access.get(), true, true));
        Handle file = library_.own(h5().H5Fcreate(library_.path().c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.get()),
                                   h5().H5Fclose);
        write_entry(file.get());
        library_.check(h5().H5Fflush(file.get(), H5F_SCOPE_LOCAL));
        if (!file.close()) throw_library_error("cannot close", library_.path());
    }

private:
    void write_entry(hid_t file) {
        const InputFile first(found_.runs.front().path / master_name);
        RunText text{first.text("/entry/title"), found_.runs.front().start_json, {}, {}};
        std::string end_time;
        bool is_nxmx = true;
        for (const BuilderRun& run : found_.runs) {
            if (run.files.empty()) continue;
            const InputFile master(run.path / master_name);
            // ISO 8601 in UTC sorts as time does.
            const std::string start = master.text("/entry/start_time");
            if (text.start_time.empty() || start < text.start_time) text.start_time = start;
            end_time = std::max(end_time, master.text("/entry/end_time"));
            is_nxmx &= master.text("/entry/definition") == "NXmx";
        }
        const Handle entry = put_entry(library_, file, text);
        put_data(entry.get());
        put_tables(entry.get());
        put_runs(entry.get());
        put_instrument(entry.get());
        if (!end_time.empty()) library_.put_text(entry.get(), "end_time", end_time);
        if (!end_time.empty()) library_.put_text(entry.get(), "end_time_estimated", end_time);
        if (is_nxmx) library_.put_text(entry.get(), "definition", "NXmx");
    }

    void put_data(hid_t entry) {
        event_mappings_ = map_rows(events_.places);
        const Handle group = put_data_group(library_, entry, layout_);
        const Handle type = element_type(library_, layout_);
        const char* const name = layout_.image ? "data" : "payload";
        const std::string path = fmt::format("/entry/data/{}", name);
        const auto fill = layout_.fill();
        const std::vector<hsize_t> row_shape =
            layout_.image ? std::vector<hsize_t>{layout_.image_rows(), layout_.columns} : std::vector<hsize_t>{};
        const MappedDataset mapped(library_, sources_, type.get(), row_shape);
        const Handle dataset =
            layout_.image ? mapped.create(group.get(), name, path, events_.places.size(), event_mappings_,
                                          std::mem_fn(&BuilderDataFile::events), fill.data())
                          : mapped.create(group.get(), name, path, payload_bytes_,
                                          whole_files(&BuilderDataFile::payload_bytes, &Source::first_payload_byte),
                                          std::mem_fn(&BuilderDataFile::payload_bytes), fill.data());
        put_data_attributes(library_, dataset.get(), layout_);
        for (std::size_t i = 0; i < sources_.size(); ++i)
            library_.check(h5().H5Lcreate_external(sources_[i].name.c_str(), path.c_str(), group.get(),
                                                   fmt::format("{}_{:06}", name, i).c_str(), H5P_DEFAULT, H5P_DEFAULT));
    }

    /// One file after the other, as they are.
    [[nodiscard]] std::vector<RowMapping> whole_files(std::uint64_t BuilderDataFile::*rows,
                                                      std::uint64_t Source::*first) const {
        std::vector<RowMapping> mappings;
        for (std::uint32_t i = 0; i < sources_.size(); ++i)
            if (sources_[i].content->*rows > 0)
                mappings.push_back({i, {{sources_[i].*first, 0, sources_[i].content->*rows}}});
        return mappings;
    }

    void put_tables(hid_t entry) {
        const std::vector<RowMapping> missing = whole_files(&BuilderDataFile::missing, &Source::first_missing);
        Handle group;
        std::string open;
        for (const ColumnKind& kind : column_kinds(layout_)) {
            if (open != kind.group) group = library_.create_group(entry, open = kind.group, "NXcollection");
            const std::string path = fmt::format("/entry/{}/{}", kind.group, kind.name);
            const Handle dataset = put_column(group.get(), kind, path, missing);
            library_.put_attribute(dataset.get(), "description", kind.about);
        }
        put_source_ids(library_, entry, layout_);
    }

    /// Where rows are much out of order, mapping a column of small values takes more room and time than the values.
    [[nodiscard]] Handle put_column(hid_t group, const ColumnKind& kind, const std::string& path,
                                    const std::vector<RowMapping>& missing) const {
        const std::string_view name = kind.name;
        // These count over a whole run, so here they have other values than in the files.
        if (name == "missing_first")
            return put_places(group, kind, path, &RunPosition::missing, &Source::first_missing);
        if (name == "payload_offset")
            return put_places(group, kind, path, &RunPosition::payload_bytes, &Source::first_payload_byte);
        if (kind.per_event &&
            row_bytes(kind) * events_.places.size() <= mapping_bytes(event_mappings_, 1 + kind.row_shape.size()))
            return put_values(group, kind, gathered(kind, path));
        const MappedDataset column(library_, sources_, kind.type, kind.row_shape);
        return kind.per_event ? column.create(group, kind.name, path, events_.places.size(), event_mappings_,
                                              std::mem_fn(&BuilderDataFile::events), nullptr)
                              : column.create(group, kind.name, path, missing_rows_, missing,
                                              std::mem_fn(&BuilderDataFile::missing), nullptr);
    }

    [[nodiscard]] Handle put_places(hid_t group, const ColumnKind& kind, const std::string& path,
                                    std::uint64_t RunPosition::*there, std::uint64_t Source::*here) const {
        std::vector<std::byte> rows = gathered(kind, path);
        for (std::size_t at = 0; at < rows.size(); at += sizeof(std::uint64_t)) {
            const Source& source = sources_[events_.places[at / row_bytes(kind)].file];
            std::uint64_t place = 0;
            std::memcpy(&place, &rows[at], sizeof place);
            place += source.*here - source.content->begin.*there;
            std::memcpy(&rows[at], &place, sizeof place);
        }
        return put_values(group, kind, rows);
    }

    [[nodiscard]] static std::size_t row_bytes(const ColumnKind& kind) {
        std::size_t bytes = h5().H5Tget_size(kind.type);
        for (const hsize_t side : kind.row_shape) bytes *= side;
        return bytes;
    }

    /// The rows of a column from all files, in the order of the events.
    [[nodiscard]] std::vector<std::byte> gathered(const ColumnKind& kind, const std::string& path) const {
        const std::size_t bytes = row_bytes(kind);
        std::vector<std::byte> rows(events_.places.size() * bytes);
        std::vector<std::vector<std::size_t>> rows_of(sources_.size());
        for (std::size_t i = 0; i < events_.places.size(); ++i) rows_of[events_.places[i].file].push_back(i);
        for (std::size_t file = 0; file < sources_.size(); ++file) {
            const std::vector<std::byte> values = InputFile(sources_[file].content->path).bytes(path, kind.type);
            for (const std::size_t row : rows_of[file])
                std::memcpy(&rows[row * bytes], &values[events_.places[row].row * bytes], bytes);
        }
        return rows;
    }

    [[nodiscard]] Handle put_values(hid_t group, const ColumnKind& kind, const std::vector<std::byte>& rows) const {
        std::vector<hsize_t> shape{events_.places.size()};
        shape.insert(shape.end(), kind.row_shape.begin(), kind.row_shape.end());
        return library_.put_dataset(group, kind.name, kind.type, shape, rows.data());
    }

    /// What each run says of itself: /entry/weir of its master.
    void put_runs(hid_t entry) const {
        const Handle weir = library_.own(h5().H5Gopen2(entry, "weir", H5P_DEFAULT), h5().H5Gclose);
        const Handle runs = library_.create_group(weir.get(), "runs", "NXcollection");
        for (std::size_t i = 0; i < found_.runs.size(); ++i) {
            const InputFile master(found_.runs[i].path / master_name);
            const std::string name = fmt::format("{:06}", i);
            copy(master, "/entry/weir", runs.get(), name);
            const Handle run = library_.own(h5().H5Gopen2(runs.get(), name.c_str(), H5P_DEFAULT), h5().H5Gclose);
            library_.put_attribute(run.get(), "path", found_.runs[i].name);
            if (!found_.runs[i].node.empty()) library_.put_attribute(run.get(), "node", found_.runs[i].node);
        }
    }

    /// The same in all runs.
    void put_instrument(hid_t entry) const {
        const auto filled = [](const BuilderRun& run) { return !run.files.empty(); };
        const InputFile master(std::ranges::find_if(found_.runs, filled)->path / master_name);
        for (const char* name : {"instrument", "source", "sample"})
            if (const std::string path = fmt::format("/entry/{}", name); master.has(path))
                copy(master, path, entry, name);
    }

    void copy(const InputFile& from, const std::string& path, hid_t parent, const std::string& name) const {
        library_.check(h5().H5Ocopy(from.id(), path.c_str(), parent, name.c_str(), H5P_DEFAULT, H5P_DEFAULT));
    }

    Library library_;
    const BuilderFiles& found_;
    const MergedEvents& events_;
    const Layout& layout_;
    std::vector<Source> sources_;
    std::uint64_t missing_rows_ = 0;
    std::uint64_t payload_bytes_ = 0;
    std::vector<RowMapping> event_mappings_;
};

}  // namespace

void write_virtual_master(const std::filesystem::path& path, const std::filesystem::path& final_path,
                          const BuilderFiles& found, const MergedEvents& events) {
    if (!found.layout || events.places.empty())
        throw core::RunError(fmt::format("the runs in {} have no event", found.folder.string()));
    const Session session;
    VirtualMaster(path, final_path, found, events).write();
    File::open_to_read(path).sync();
}

}  // namespace weir::store::hdf5

// The master file of a run. See master_file.hpp.
#include "store/hdf5/master_file.hpp"

#include <fmt/core.h>

#include "store/hdf5/nexus.hpp"

namespace weir::store::hdf5 {

namespace {

/// So many rows of a file, from so far on.
struct Part {
    const std::string* file;
    std::uint64_t first;
    std::uint64_t rows;
    bool growing;
};

/// A dataset that is put together of the parts, each of which has the path `path` in its file.
class VirtualDataset {
public:
    VirtualDataset(const Library& library, hid_t type, std::vector<hsize_t> row_shape)
        : library_(library), type_(type), row_shape_(std::move(row_shape)) {}

    [[nodiscard]] Handle create(hid_t parent, const char* name, const std::string& path, const std::vector<Part>& parts,
                                const void* fill) const {
        std::uint64_t total = 0;
        bool growing = false;
        for (const Part& part : parts) {
            total = part.first + part.rows;
            growing = growing || part.growing;
        }
        const Handle space = simple_space(total, growing);
        const Handle creation = library_.own(h5().H5Pcreate(h5().H5P_CLS_DATASET_CREATE_ID_g), h5().H5Pclose);
        if (fill != nullptr) library_.check(h5().H5Pset_fill_value(creation.get(), type_, fill));
        for (const Part& part : parts)
            if (part.rows > 0 || part.growing) map(creation.get(), space.get(), path, part);
        return library_.own(h5().H5Dcreate2(parent, name, type_, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                            h5().H5Dclose);
    }

private:
    [[nodiscard]] Handle simple_space(std::uint64_t rows, bool growing) const {
        std::vector<hsize_t> now{rows};
        now.insert(now.end(), row_shape_.begin(), row_shape_.end());
        std::vector<hsize_t> most = now;
        if (growing) most[0] = H5S_UNLIMITED;
        return library_.own(h5().H5Screate_simple(static_cast<int>(now.size()), now.data(), most.data()),
                            h5().H5Sclose);
    }

    void select(hid_t space, std::uint64_t first, const Part& part) const {
        std::vector<hsize_t> start{first};
        std::vector<hsize_t> count{part.growing ? H5S_UNLIMITED : part.rows};
        std::vector<hsize_t> block{1};
        for (const hsize_t side : row_shape_) {
            start.push_back(0);
            count.push_back(1);
            block.push_back(side);
        }
        const std::vector<hsize_t> stride = block;
        library_.check(
            h5().H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), stride.data(), count.data(), block.data()));
    }

    void map(hid_t creation, hid_t space, const std::string& path, const Part& part) const {
        const Handle source = simple_space(part.rows, part.growing);
        select(source.get(), 0, part);
        const Handle here = library_.own(h5().H5Scopy(space), h5().H5Sclose);
        select(here.get(), part.first, part);
        library_.check(h5().H5Pset_virtual(creation, here.get(), part.file->c_str(), path.c_str(), source.get()));
    }

    const Library& library_;
    hid_t type_;
    std::vector<hsize_t> row_shape_;
};

enum class Counted : std::uint8_t { events, missing, payload };

std::vector<Part> parts_of(const MasterContent& content, Counted counted) {
    std::vector<Part> parts;
    for (const DataSpan& file : content.files) {
        const bool growing = content.growing && &file == &content.files.back();
        switch (counted) {
            case Counted::events:
                parts.push_back({&file.name, file.begin.events, file.end.events - file.begin.events, growing});
                break;
            case Counted::missing:
                parts.push_back({&file.name, file.begin.missing, file.end.missing - file.begin.missing, growing});
                break;
            case Counted::payload:
                parts.push_back({&file.name, file.begin.payload_bytes, file.stream_bytes, growing});
                break;
        }
    }
    return parts;
}

void put_tables(const Library& library, hid_t entry, const MasterContent& content) {
    Handle group;
    std::string open;
    for (const ColumnKind& kind : column_kinds(*content.layout)) {
        if (open != kind.group) group = library.create_group(entry, open = kind.group, "NXcollection");
        const VirtualDataset column(library, kind.type, kind.row_shape);
        const Handle dataset =
            column.create(group.get(), kind.name, fmt::format("/entry/{}/{}", kind.group, kind.name),
                          parts_of(content, kind.per_event ? Counted::events : Counted::missing), nullptr);
        library.put_attribute(dataset.get(), "description", kind.about);
    }
    put_source_ids(library, entry, *content.layout);
}

void put_data(const Library& library, hid_t entry, const MasterContent& content) {
    const Layout& layout = *content.layout;
    const Handle group = put_data_group(library, entry, layout);
    const Handle type = element_type(library, layout);
    const char* const name = layout.image ? "data" : "payload";
    const std::string path = fmt::format("/entry/data/{}", name);
    const auto fill = layout.fill();
    const std::vector<hsize_t> row_shape =
        layout.image ? std::vector<hsize_t>{layout.image_rows(), layout.columns} : std::vector<hsize_t>{};
    const VirtualDataset stack(library, type.get(), row_shape);
    const Handle dataset = stack.create(
        group.get(), name, path, parts_of(content, layout.image ? Counted::events : Counted::payload), fill.data());
    put_data_attributes(library, dataset.get(), layout);
    for (std::size_t i = 0; i < content.files.size(); ++i)
        library.check(h5().H5Lcreate_external(content.files[i].name.c_str(), path.c_str(), group.get(),
                                              fmt::format("{}_{:06}", name, i).c_str(), H5P_DEFAULT, H5P_DEFAULT));
}

/// What is known only at the end. The files are an NXmx if all that it requires is there, and not before.
void put_closing(const Library& library, hid_t entry, const MasterContent& content) {
    if (content.end_time.empty()) return;
    library.put_text(entry, "end_time", content.end_time);
    library.put_text(entry, "end_time_estimated", content.end_time);
    if (content.layout && content.layout->image &&
        missing_for_nxmx(content.layout->description, content.text.nexus, content.layout->sources.size()).empty())
        library.put_text(entry, "definition", "NXmx");
    const Handle weir = library.own(h5().H5Gopen2(entry, "weir", H5P_DEFAULT), h5().H5Gclose);
    for (const auto& [name, value] : content.closing.items())
        if (name != "start" && name.find('/') == std::string::npos)
            library.put_text(weir.get(), name, value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

std::string data_name(std::uint64_t number) {
    return fmt::format("data-{:06}.h5", number);
}

void write_master(const std::filesystem::path& path, const MasterContent& content) {
    const Library library(path);
    const Handle access = library.own(h5().H5Pcreate(h5().H5P_CLS_FILE_ACCESS_ID_g), h5().H5Pclose);
    library.check(h5().H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110));
    library.check(h5().H5Pset_file_locking(access.get(), true, true));
    Handle file = library.own(h5().H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.get()), h5().H5Fclose);
    {
        const Handle entry = put_entry(library, file.get(), content.text);
        if (content.layout) {
            put_data(library, entry.get(), content);
            put_tables(library, entry.get(), content);
            if (content.layout->image) put_instrument(library, entry.get(), *content.layout, content.text.nexus);
        }
        put_closing(library, entry.get(), content);
    }
    library.check(h5().H5Fflush(file.get(), H5F_SCOPE_LOCAL));
    if (!file.close()) throw_library_error("cannot close", path);
}

}  // namespace weir::store::hdf5

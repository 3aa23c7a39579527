// A file of the HDF5 library that is read. See input_file.hpp.
#include "store/hdf5/input_file.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/error.hpp"
#include "store/file.hpp"

namespace weir::store::hdf5 {

InputFile::InputFile(const std::filesystem::path& path)
    : library_(path, "cannot read"), bytes_(File::open_to_read(path).size()) {
    const Handle access = library_.own(h5().H5Pcreate(h5().H5P_CLS_FILE_ACCESS_ID_g), h5().H5Pclose);
    library_.check(h5().H5Pset_file_locking(access.get(), true, true));
    file_ = library_.own(h5().H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), h5().H5Fclose);
}

void InputFile::fail(const std::string& object, const std::string& what) const {
    throw core::RunError(fmt::format("{}: {} {}", path().string(), object, what));
}

bool InputFile::has(const std::string& object) const {
    // The library wants every group on the way to be there.
    for (std::size_t slash = object.find('/', 1);; slash = object.find('/', slash + 1)) {
        const htri_t there = h5().H5Lexists(file_.get(), object.substr(0, slash).c_str(), H5P_DEFAULT);
        library_.check(there);
        if (there == 0) return false;
        if (slash == std::string::npos) return true;
    }
}

bool InputFile::has_attribute(const std::string& object, const std::string& name) const {
    const Handle group = library_.own(h5().H5Gopen2(file_.get(), object.c_str(), H5P_DEFAULT), h5().H5Gclose);
    const htri_t there = h5().H5Aexists(group.get(), name.c_str());
    library_.check(there);
    return there > 0;
}

std::uint64_t InputFile::number(const std::string& object, const std::string& name) const {
    if (!has(object)) fail(object, "is missing");
    if (!has_attribute(object, name)) fail(object, fmt::format("has no attribute {}", name));
    const Handle group = library_.own(h5().H5Gopen2(file_.get(), object.c_str(), H5P_DEFAULT), h5().H5Gclose);
    const Handle attribute = library_.own(h5().H5Aopen(group.get(), name.c_str(), H5P_DEFAULT), h5().H5Aclose);
    const Handle space = library_.own(h5().H5Aget_space(attribute.get()), h5().H5Sclose);
    if (h5().H5Sget_simple_extent_ndims(space.get()) != 0) fail(object, fmt::format("has an odd attribute {}", name));
    std::uint64_t value = 0;
    library_.check(h5().H5Aread(attribute.get(), h5().H5T_NATIVE_UINT64_g, &value));
    return value;
}

Handle InputFile::open(const std::string& dataset) const {
    if (!has(dataset)) fail(dataset, "is missing");
    return library_.own(h5().H5Dopen2(file_.get(), dataset.c_str(), H5P_DEFAULT), h5().H5Dclose);
}

std::vector<hsize_t> InputFile::shape(const std::string& dataset) const {
    const Handle opened = open(dataset);
    const Handle space = library_.own(h5().H5Dget_space(opened.get()), h5().H5Sclose);
    const int rank = h5().H5Sget_simple_extent_ndims(space.get());
    library_.check(rank);
    std::vector<hsize_t> sides(static_cast<std::size_t>(rank));
    library_.check(h5().H5Sget_simple_extent_dims(space.get(), sides.data(), nullptr));
    return sides;
}

Handle InputFile::type(const std::string& dataset) const {
    const Handle opened = open(dataset);
    return library_.own(h5().H5Dget_type(opened.get()), h5().H5Tclose);
}

std::string InputFile::text(const std::string& dataset) const {
    if (!has(dataset)) return {};
    const Handle kind = type(dataset);
    constexpr std::size_t text_bytes_max = std::size_t{64} << 20;
    const std::size_t bytes = h5().H5Tget_size(kind.get());
    if (h5().H5Tget_class(kind.get()) != H5T_STRING || h5().H5Tis_variable_str(kind.get()) != 0 ||
        !shape(dataset).empty() || bytes > text_bytes_max)
        fail(dataset, "is no text of weir");
    std::string text(bytes, '\0');
    read(dataset, kind.get(), text.data());
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
}

/// A damaged size must not take more memory than the file has bytes: what is read here is not compressed.
std::size_t InputFile::count(const std::string& dataset, std::size_t value_bytes) const {
    std::uint64_t count = 1;
    for (const hsize_t side : shape(dataset)) {
        if (side > 0 && count > bytes_ / value_bytes / side) fail(dataset, "is larger than its file");
        count *= side;
    }
    return count;
}

std::vector<std::byte> InputFile::bytes(const std::string& dataset, hid_t type) const {
    const std::size_t value_bytes = h5().H5Tget_size(type);
    std::vector<std::byte> values(value_bytes * count(dataset, value_bytes));
    read(dataset, type, values.data());
    return values;
}

void InputFile::read(const std::string& dataset, hid_t type, void* to) const {
    const Handle opened = open(dataset);
    library_.check(h5().H5Dread(opened.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, to));
}

}  // namespace weir::store::hdf5

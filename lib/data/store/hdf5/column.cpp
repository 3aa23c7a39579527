// A table's column. See column.hpp.
#include "store/hdf5/column.hpp"

#include <algorithm>

namespace weir::store::hdf5 {

namespace {

/// Of a chunk: small enough that a short run's file is small, large enough that a long one's is quick to read.
constexpr hsize_t chunk_bytes = hsize_t{32} << 10;

}  // namespace

Column::Column(const Library& library, hid_t parent, const std::string& name, hid_t type,
               std::vector<hsize_t> row_shape, const std::string& about)
    : type_(type), row_shape_(std::move(row_shape)), row_bytes_(h5().H5Tget_size(type)) {
    for (const hsize_t side : row_shape_) row_bytes_ *= side;
    std::vector<hsize_t> shape{0};
    shape.insert(shape.end(), row_shape_.begin(), row_shape_.end());
    std::vector<hsize_t> most = shape;
    most[0] = H5S_UNLIMITED;
    std::vector<hsize_t> chunk = shape;
    chunk[0] = std::max<hsize_t>(1, chunk_bytes / std::max<std::size_t>(1, row_bytes_));
    const auto rank = static_cast<int>(shape.size());
    const Handle space = library.own(h5().H5Screate_simple(rank, shape.data(), most.data()), h5().H5Sclose);
    const Handle creation = library.own(h5().H5Pcreate(h5().H5P_CLS_DATASET_CREATE_ID_g), h5().H5Pclose);
    library.check(h5().H5Pset_chunk(creation.get(), rank, chunk.data()));
    dataset_ =
        library.own(h5().H5Dcreate2(parent, name.c_str(), type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                    h5().H5Dclose);
    if (!about.empty()) library.put_attribute(dataset_.get(), "description", about);
}

void Column::append(const Library& library) {
    const hsize_t count = row_bytes_ == 0 ? 0 : pending_.size() / row_bytes_;
    if (count == 0) return;
    std::vector<hsize_t> size{rows_ + count};
    size.insert(size.end(), row_shape_.begin(), row_shape_.end());
    library.check(h5().H5Dset_extent(dataset_.get(), size.data()));
    const Handle in_file = library.own(h5().H5Dget_space(dataset_.get()), h5().H5Sclose);
    std::vector<hsize_t> start(size.size(), 0);
    start[0] = rows_;
    size[0] = count;
    library.check(h5().H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr));
    const Handle in_memory =
        library.own(h5().H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), h5().H5Sclose);
    library.check(h5().H5Dwrite(dataset_.get(), type_, in_memory.get(), in_file.get(), H5P_DEFAULT, pending_.data()));
    rows_ += count;
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count * row_bytes_));
}

}  // namespace weir::store::hdf5

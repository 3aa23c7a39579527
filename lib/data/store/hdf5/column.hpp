// A table's column: a dataset that grows by one row per event, collected in memory and appended in batches.
#pragma once

#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "store/hdf5/handle.hpp"

namespace weir::store::hdf5 {

class Column {
public:
    /// A new dataset (0 … , `row_shape`) below `parent`. `type` is a type of memory; `about` becomes an attribute.
    Column(const Library& library, hid_t parent, const std::string& name, hid_t type, std::vector<hsize_t> row_shape,
           const std::string& about = {});

    /// Elements of the rows to come, one after the other.
    template <class T>
    void put(T value) {
        static_assert(std::is_trivially_copyable_v<T>);
        const auto* bytes = reinterpret_cast<const std::byte*>(&value);
        pending_.insert(pending_.end(), bytes, bytes + sizeof value);
    }
    void put_bytes(std::span<const std::byte> bytes) { pending_.insert(pending_.end(), bytes.begin(), bytes.end()); }
    /// Appends what is whole rows; throws core::RunError.
    void append(const Library& library);
    [[nodiscard]] std::size_t pending_bytes() const noexcept { return pending_.size(); }
    [[nodiscard]] hsize_t rows() const noexcept { return rows_; }
    void leave() noexcept { dataset_.leave(); }

private:
    Handle dataset_;
    hid_t type_;
    std::vector<hsize_t> row_shape_;
    std::size_t row_bytes_ = 0;
    hsize_t rows_ = 0;
    std::vector<std::byte> pending_;
};

}  // namespace weir::store::hdf5

// Everything about events but their payload, as columns: one row per event, and the missing ranges one after the
// other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "store/hdf5/column.hpp"
#include "store/hdf5/layout.hpp"

namespace weir::store::hdf5 {

/// What a row is made of. Positions count over the whole run, not over one file.
struct EventRow {
    const EventInfo& event;
    std::uint64_t first_missing = 0;                  ///< row of its first range in missing/
    std::vector<std::uint64_t> payload_offsets = {};  ///< per source, in data/payload; empty for an image
};

/// One column: where it is, what it is, and how a row of it is made.
struct ColumnKind {
    const char* group;  ///< below /entry
    const char* name;
    hid_t type;
    std::vector<hsize_t> row_shape;
    std::string about;
    bool per_event;  ///< else one row per missing range
    std::function<void(Column&, const EventRow&)> put;
};

/// The columns of a run, in the order in which they are created. The library must have been started.
std::vector<ColumnKind> column_kinds(const Layout& layout);

/// Missing ranges of all its sources.
std::uint64_t missing_count(const EventInfo& event) noexcept;

/// The columns of one file.
class Tables {
public:
    /// Creates the groups and columns below `entry`.
    Tables(const Library& library, hid_t entry, const Layout& layout);
    void put(const EventRow& row);
    void append(const Library& library);
    [[nodiscard]] std::size_t pending_bytes() const noexcept;
    /// Handle::leave() of all.
    void leave() noexcept;

private:
    std::vector<ColumnKind> kinds_;
    std::vector<Handle> groups_;
    std::vector<Column> columns_;
};

}  // namespace weir::store::hdf5

// What the events in a data file look like, from the file itself.
#pragma once

#include <string>

#include "store/hdf5/input_file.hpp"
#include "store/hdf5/layout.hpp"

namespace weir::store::hdf5 {

/// `description`: what the run says of itself. All that the tables and the data of a master need; not how chunks are
/// stored. Throws core::RunError if the file is none of weir's.
[[nodiscard]] Layout read_layout(const InputFile& file, const Description& description);

/// "images of 1024 x 1024 u16 in photon, of the sources 0, 1". What has the same text fits into the same datasets.
[[nodiscard]] std::string layout_text(const Layout& layout);

struct RowCounts {
    std::uint64_t events = 0;
    std::uint64_t missing = 0;  ///< ranges
};

/// Of the columns and the images. `interrupted`: they may differ, and what all have counts; else that is damage. Throws
/// core::RunError for that, and if a column is not what the layout says.
[[nodiscard]] RowCounts count_rows(const InputFile& file, const Layout& layout, bool interrupted);

}  // namespace weir::store::hdf5

#include "wire/formats/dune/dune.hpp"
#include "wire/formats/entry.hpp"

namespace weir::wire {

FormatEntry dune_format() {
    FormatEntry entry = entry_of_format<Dune>();
    entry.source_id = "detector, crate, slot and stream";
    entry.page = "reference/formats/dune.md";
    return entry;
}

}  // namespace weir::wire

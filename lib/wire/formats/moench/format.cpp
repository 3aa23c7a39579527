#include "wire/formats/moench/moench.hpp"
#include "wire/formats/sls/sls_entry.hpp"

namespace weir::wire {

FormatEntry moench_format() {
    FormatEntry entry = module_entry<Moench>();
    entry.image = {.columns = Moench::row_bytes / 2,
                   .pixel_um = 25,
                   .detector = "MOENCH",
                   .remark = "pixels in the order in which the module sends them"};
    entry.page = "reference/formats/moench.md";
    entry.python = Moench::name;
    return entry;
}

}  // namespace weir::wire

#include "wire/formats/moench/moench.hpp"
#include "wire/formats/sls/sls_entry.hpp"

namespace weir::wire {

FormatEntry moench_format() {
    FormatEntry entry = module_entry<Moench>();
    entry.image = {
        .pixel_um = 25, .detector = "MOENCH", .remark = "pixels in the order in which the module sends them"};
    entry.page = "reference/formats/moench.md";
    return entry;
}

}  // namespace weir::wire

#include "wire/formats/jungfrau/jungfrau.hpp"
#include "wire/formats/sls/sls_entry.hpp"

namespace weir::wire {

FormatEntry jungfrau_format() {
    FormatEntry entry = module_entry<Jungfrau>();
    entry.image = {.gain_bits = true, .pixel_um = 75, .detector = "JUNGFRAU"};
    entry.page = "reference/formats/jungfrau.md";
    return entry;
}

}  // namespace weir::wire

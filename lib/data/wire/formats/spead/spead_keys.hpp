#pragma once

#include "wire/format.hpp"

namespace weir::wire {

/// address_bits, event_item, source_item, heap_bytes.
options::OptionTable<FormatOptions> spead_keys();

}  // namespace weir::wire

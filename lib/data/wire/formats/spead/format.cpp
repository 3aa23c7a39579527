#include "options/option.hpp"
#include "wire/formats/entry.hpp"
#include "wire/formats/spead/spead.hpp"
#include "wire/formats/spead/spead_keys.hpp"

namespace weir::wire {

FormatEntry spead_format() {
    static constexpr std::array<std::string_view, 4> keys{"address_bits", "event_item", "source_item", "heap_bytes"};
    FormatEntry entry = entry_of_format<Spead>();
    entry.source_id = "with `source_item`";
    entry.keys = keys;
    entry.describe = spead_keys;
    entry.source_key = "source_item";
    entry.source_key_meaning = "the id of the item that says the source";
    entry.message_bytes = [](const FormatOptions& options) { return options.spead.heap_bytes; };
    entry.page = "reference/formats/spead.md";
    return entry;
}

}  // namespace weir::wire

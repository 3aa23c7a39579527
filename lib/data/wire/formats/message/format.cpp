#include "wire/formats/entry.hpp"
#include "wire/formats/message/message.hpp"

namespace weir::wire {

FormatContext WholeMessage::make_context(const FormatOptions& options) {
    return {.message_bytes_max = options.message_bytes_max != 0 ? options.message_bytes_max : message_bytes_max_default,
            .carries_number = false};
}

FormatEntry message_format() {
    FormatEntry entry = entry_of_format<WholeMessage>();
    entry.numbers_events = false;
    entry.put_place = [](const FormatContext&, const FormatOptions&, std::uint32_t, std::uint64_t offset,
                         std::span<std::byte>) { return offset == 0; };
    entry.page = "reference/formats/message.md";
    return entry;
}

}  // namespace weir::wire

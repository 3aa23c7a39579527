#include "wire/formats/ejfat/ejfat.hpp"
#include "wire/formats/entry.hpp"

namespace weir::wire {

FormatEntry ejfat_format() {
    FormatEntry entry = entry_of_format<Ejfat>();
    entry.source_id = "";
    entry.put_place = [](const FormatContext&, const FormatOptions&, std::uint32_t, std::uint64_t offset,
                         std::span<std::byte> header) {
        store_be(header.data() + 4, static_cast<std::uint32_t>(offset));
        return true;
    };
    entry.page = "reference/formats/ejfat.md";
    return entry;
}

}  // namespace weir::wire

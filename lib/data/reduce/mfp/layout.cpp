#include "reduce/mfp/layout.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <utility>

namespace weir::reduce {

std::optional<MfpLayout> mfp_layout(std::string_view name) {
    if (name != "lhcb-2019") return {};
    return MfpLayout{};  // the defaults are this layout
}

namespace {

bool is_width(std::uint32_t bytes) {
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

}  // namespace

std::string mfp_layout_problem(const MfpLayout& layout) {
    if (layout.header_bytes == 0 || layout.header_bytes > mfp_header_bytes_max)
        return fmt::format("header_bytes is {}; accepted: 1 to {}", layout.header_bytes, mfp_header_bytes_max);
    const std::array<std::pair<const char*, MfpField>, 4> fields{{{"first_event", layout.first_event},
                                                                  {"fragments", layout.fragments},
                                                                  {"length", layout.length},
                                                                  {"magic", layout.magic}}};
    for (const auto& [name, field] : fields) {
        if (field.bytes == 0) continue;
        if (!is_width(field.bytes)) return fmt::format("{} has {} bytes; accepted: 1, 2, 4 or 8", name, field.bytes);
        if (std::uint64_t{field.offset} + field.bytes > layout.header_bytes)
            return fmt::format("{} lies beyond the header's {} bytes", name, layout.header_bytes);
    }
    if (layout.first_event.bytes == 0) return "first_event is missing";
    if (layout.fragments.bytes == 0) return "fragments, the field with their number, is missing";
    if (layout.type_bytes > 1) return fmt::format("type_bytes is {}; accepted: 0 or 1", layout.type_bytes);
    if (layout.size_in_fragment.bytes > 0) {
        if (layout.size_bytes > 0) return "size_bytes and size_in_fragment: accepted is one of them";
        if (layout.type_bytes > 0) return "type_bytes must be 0 where fragments say their own size";
        if (!is_width(layout.size_in_fragment.bytes) || layout.size_in_fragment.bytes == 8 ||
            layout.size_in_fragment.offset + layout.size_in_fragment.bytes > mfp_header_bytes_max)
            return fmt::format("size_in_fragment: accepted: 1, 2 or 4 bytes, within the first {}",
                               mfp_header_bytes_max);
    } else if (!is_width(layout.size_bytes) || layout.size_bytes == 8) {
        return fmt::format("size_bytes is {}; accepted: 1, 2 or 4", layout.size_bytes);
    }
    for (const auto& [name, align] :
         {std::pair{"table_align", layout.table_align}, std::pair{"fragment_align", layout.fragment_align}})
        if (!std::has_single_bit(align) || align > 4096)
            return fmt::format("{} is {}; accepted: a power of 2 up to 4096", name, align);
    return {};
}

}  // namespace weir::reduce

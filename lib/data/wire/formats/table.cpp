// The table of formats. Their names are in meson.build beside this and nowhere else: WEIR_FORMATS is FORMAT(name) for
// each, and the function name_format() in its folder is what makes its entry.
#include <algorithm>

#include "wire/format.hpp"

namespace weir::wire {

#define FORMAT(name) FormatEntry name##_format();
WEIR_FORMATS
#undef FORMAT

std::span<const FormatEntry> formats() noexcept {
#define FORMAT(name) name##_format(),
    static const std::array all{WEIR_FORMATS};
#undef FORMAT
    return all;
}

const FormatEntry* find_format(std::string_view name) noexcept {
    const auto found = std::ranges::find(formats(), name, &FormatEntry::name);
    return found != formats().end() ? &*found : nullptr;
}

const FormatEntry& described_format() noexcept {
    return *std::ranges::find(formats(), true, &FormatEntry::described);
}

std::vector<std::string_view> built_in_formats() {
    std::vector<std::string_view> names;
    for (const FormatEntry& entry : formats())
        if (!entry.described) names.push_back(entry.name);
    return names;
}

bool is_built_in(std::string_view name) noexcept {
    const FormatEntry* entry = find_format(name);
    return entry != nullptr && !entry->described;
}

}  // namespace weir::wire

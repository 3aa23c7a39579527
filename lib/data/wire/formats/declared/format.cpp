#include <fmt/format.h>

#include "wire/encode.hpp"
#include "wire/formats/declared/declared.hpp"
#include "wire/formats/entry.hpp"

namespace weir::wire {
namespace {

bool put_declared_place(const FormatContext& /*context*/, const FormatOptions& options, std::uint32_t /*lane*/,
                        std::uint64_t offset, std::span<std::byte> header) {
    const DeclaredSpec& spec = options.declared;
    if (spec.index) set_declared_field(spec, spec.index, offset / *spec.payload_bytes, header);
    set_declared_field(spec, spec.offset, offset, header);
    return spec.index || spec.offset || offset == 0;
}

std::string declared_setting(const FormatOptions& options, const FormatContext& now, ByteSpan there) {
    if (there.begin != 0) return "";
    if (options.declared.total_bytes) return fmt::format("`total = {}`", there.end);
    if (now.payload_bytes == 0 || there.end % now.payload_bytes != 0) return "";
    return fmt::format("`packets = {}`", there.end / now.payload_bytes);
}

}  // namespace

FormatEntry declared_format() {
    FormatEntry entry = entry_of_format<Declared>();
    entry.described = true;
    // formats/hexitec.toml: a description does not say what is in the payload, and this one is weir's own.
    entry.element_bytes = [](const FormatOptions& options) -> std::uint32_t {
        return options.declared.name == "hexitec" ? 2 : 0;
    };
    entry.put_place = put_declared_place;
    entry.setting_for = declared_setting;
    entry.page = "reference/formats/declared.md";
    return entry;
}

}  // namespace weir::wire

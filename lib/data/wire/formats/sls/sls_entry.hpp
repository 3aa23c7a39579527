// What the entries of PSI's detectors have in common. For the folders of jungfrau, moench and eiger.
#pragma once

#include "options/option.hpp"
#include "wire/formats/entry.hpp"
#include "wire/formats/sls/sls.hpp"

namespace weir::wire {

/// interfaces, bit_depth, tengiga, rows.
options::OptionTable<FormatOptions> sls_keys();

/// FormatEntry::put_place.
bool put_sls_place(const FormatContext& context, const FormatOptions& options, std::uint32_t lane, std::uint64_t offset,
                   std::span<std::byte> header);

/// FormatEntry::setting_for of a module with one or two interfaces.
std::string module_setting(FormatContext (*make_context)(const FormatOptions&), const FormatOptions& options,
                           const FormatContext& now, ByteSpan there, std::uint32_t rows_max, std::uint32_t rows_step);

/// The context, or nothing if the detector has no such readout.
std::optional<FormatContext> readout_with(FormatContext (*make_context)(const FormatOptions&),
                                          const FormatOptions& options);

/// JUNGFRAU and MOENCH: modules of 16-bit pixels.
template <class Module>
FormatEntry module_entry() {
    static constexpr std::array<std::string_view, 2> keys{"interfaces", "rows"};
    FormatEntry entry = entry_of_format<Module>();
    entry.decode_whole = &Sls::decode_whole<Module>;
    entry.source_id = "";
    entry.keys = keys;
    entry.describe = sls_keys;
    entry.element_bytes = [](const FormatOptions&) -> std::uint32_t { return 2; };
    entry.image_shape = [](const FormatOptions& options) -> ImageShape {
        return {Module::make_context(options).message_bytes / Module::row_bytes, Module::row_bytes / 2, 16};
    };
    entry.put_place = put_sls_place;
    entry.setting_for = [](const FormatOptions& options, const FormatContext& now, ByteSpan there) {
        return module_setting(Module::make_context, options, now, there, Module::rows, Module::rows_step);
    };
    return entry;
}

}  // namespace weir::wire

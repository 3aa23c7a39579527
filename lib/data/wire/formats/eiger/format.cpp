#include <fmt/format.h>

#include <algorithm>

#include "wire/formats/eiger/eiger.hpp"
#include "wire/formats/sls/sls_entry.hpp"

namespace weir::wire {
namespace {

std::string eiger_setting(const FormatOptions& options, const FormatContext& now, ByteSpan there) {
    if (there.begin != 0) return "";
    std::string text;
    for (const std::uint32_t bits : {4U, 8U, 12U, 16U, 32U}) {
        FormatOptions other = options;
        other.sls.bit_depth = bits;
        const auto wanted = readout_with(Eiger::make_context, other);
        if (wanted && wanted->message_bytes == there.end) text = fmt::format("`bit_depth = {}`", bits);
    }
    const std::uint64_t rows =
        std::uint64_t{options.sls.rows.value_or(Eiger::rows)} * there.end / std::max(1U, now.message_bytes);
    FormatOptions other = options;
    other.sls.rows = static_cast<std::uint32_t>(rows);
    const auto wanted = readout_with(Eiger::make_context, other);
    if (wanted && wanted->message_bytes == there.end)
        text += fmt::format("{}`rows = {}`", text.empty() ? "" : " or ", rows);
    return text;
}

/// Of 4 and 12 bits some share a byte.
std::uint32_t eiger_element_bytes(const FormatOptions& options) {
    const std::uint32_t bits = options.sls.bit_depth.value_or(16);
    return bits == 8 || bits == 16 || bits == 32 ? bits / 8 : 1;
}

ImageShape eiger_image(const FormatOptions& options) {
    const std::uint32_t bits = options.sls.bit_depth.value_or(16);
    return {Eiger::make_context(options).message_bytes * 8 / bits / Eiger::columns, Eiger::columns, bits};
}

}  // namespace

FormatEntry eiger_format() {
    static constexpr std::array<std::string_view, 3> keys{"bit_depth", "tengiga", "rows"};
    FormatEntry entry = entry_of_format<Eiger>();
    entry.decode_whole = &Sls::decode_whole<Eiger>;
    entry.source_id = "";
    entry.keys = keys;
    entry.describe = sls_keys;
    entry.element_bytes = eiger_element_bytes;
    entry.put_place = put_sls_place;
    entry.setting_for = eiger_setting;
    entry.page = "reference/formats/eiger.md";
    entry.image = {.pixel_um = 75, .detector = "EIGER"};
    entry.image_shape = eiger_image;
    entry.image_places = eiger_places;
    return entry;
}

}  // namespace weir::wire

// The encoder of declared formats: works from the description itself, byte by byte, not from the compiled readers that
// the decoder uses, so that a mistake in compiling shows in the tests.
#include <algorithm>

#include "wire/encode.hpp"
#include "wire/formats/declared/declared.hpp"

namespace weir::wire {
void set_declared_field(const DeclaredSpec& spec, const std::optional<DeclaredField>& field, std::uint64_t value,
                        std::span<std::byte> header) noexcept {
    if (!field || field->bytes < 1 || field->bytes > 8 || field->shift > 63) return;
    if (field->offset > header.size() || field->bytes > header.size() - field->offset) return;
    const std::uint64_t mask = field->mask.value_or(~std::uint64_t{0});
    const std::uint64_t raw = (value << field->shift) & mask;
    for (std::uint32_t i = 0; i < field->bytes; ++i) {
        const std::uint32_t bit = 8 * (spec.byte_order == ByteOrder::little ? i : field->bytes - 1 - i);
        std::byte& to = header[field->offset + i];
        to &= ~static_cast<std::byte>(mask >> bit);
        to |= static_cast<std::byte>(raw >> bit);
    }
}

std::size_t write_declared(const DeclaredSpec& spec, const DeclaredValues& values, std::span<const std::byte> payload,
                           std::span<std::byte> out) noexcept {
    const std::size_t bytes = spec.header_bytes + payload.size();
    if (out.size() < bytes) return 0;
    const std::span<std::byte> header = out.first(spec.header_bytes);
    if (!header.empty()) std::memset(header.data(), 0, header.size());
    const std::uint64_t count = std::max<std::uint64_t>(spec.event_count, 1);
    set_declared_field(spec, spec.event, values.event / count, header);
    set_declared_field(spec, spec.event_part, values.event % count, header);
    set_declared_field(spec, spec.index, values.index, header);
    set_declared_field(spec, spec.offset, values.offset, header);
    set_declared_field(spec, spec.total, values.total, header);
    set_declared_field(spec, spec.source, values.source, header);
    set_declared_field(spec, spec.sequence, values.sequence, header);
    set_declared_field(spec, spec.magic, spec.magic_value, header);
    if (!payload.empty()) std::memcpy(out.data() + spec.header_bytes, payload.data(), payload.size());
    return bytes;
}

}  // namespace weir::wire

#include "config/field.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "options/option.hpp"

namespace weir::config::detail {

using namespace options;

namespace {

std::uint64_t width_mask(std::uint32_t bytes) {
    return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
}

std::uint64_t value_mask(const wire::DeclaredField& field) {
    return (field.mask.value_or(width_mask(field.bytes)) & width_mask(field.bytes)) >> field.shift;
}

void check_place(TableReader& table, const wire::DeclaredField& field, std::uint32_t header_bytes) {
    if (field.offset + field.bytes > header_bytes)
        table.wrong("offset", fmt::format("bytes {}..{}", field.offset, field.offset + field.bytes - 1),
                    fmt::format("a field inside the {} bytes of header_bytes", header_bytes));
}

// TOML integers are signed: a mask with the top bit set is written as a negative number, or left out.
void read_mask(TableReader& table, WrittenField& out) {
    const auto value = static_cast<std::uint64_t>(*table.signed_integer("mask"));
    if (value == 0 || (value & ~width_mask(out.field.bytes)) != 0)
        table.wrong("mask", fmt::format("{:#x}", value),
                    fmt::format("1..{:#x}, the bits of {} bytes", width_mask(out.field.bytes), out.field.bytes));
    out.field.mask = value;
}

void check_shift(TableReader& table, const WrittenField& out) {
    if (value_mask(out.field) == 0)
        table.wrong("shift", fmt::format("{}, which leaves no bit of the field", out.field.shift),
                    "less than the width of the field or its mask");
}

void add_value(OptionTable<WrittenField>& out, FieldExtra extra) {
    const Option<WrittenField> value = out.add("value", "integer", "the number that the field has");
    value.reads([](TableReader& table, WrittenField& into) {
        into.value = static_cast<std::uint64_t>(*table.signed_integer("value"));
    });
    value.shows([](const WrittenField& from) { return value_of(from.value); });
    if (extra != FieldExtra::own_value) return;
    value.required("the number that the field always has").check([](TableReader& table, const WrittenField& into) {
        if ((*into.value & ~value_mask(into.field)) != 0)
            table.wrong("value", fmt::format("{:#x}", *into.value),
                        fmt::format("0..{:#x}, what the field can hold", value_mask(into.field)));
    });
}

OptionTable<WrittenField> field_options(std::uint32_t header_bytes, FieldExtra extra) {
    const auto of = [](auto member) {
        return [member](auto& from) -> auto& {
            return from.field.*member;
        };
    };
    using wire::DeclaredField;
    OptionTable<WrittenField> out;
    out.integer("offset", {0, header_bytes_max - 1}, of(&DeclaredField::offset),
                "the first byte, from the start of the header")
        .required("the field's first byte, counted from the start of the header");
    out.integer("bytes", {1, 8}, of(&DeclaredField::bytes), "the width")
        .required("the field's width, 1..8 bytes")
        .check([header_bytes](TableReader& table, const WrittenField& into) {
            check_place(table, into.field, header_bytes);
        });
    out.add("mask", "integer", "bits that are taken, before the shift")
        .reads(read_mask)
        .shows([](const WrittenField& from) { return value_of(from.field.mask); })
        .usually("all");
    out.add("shift", "0..63", "bits that the number is shifted right by")
        .reads([](TableReader& table, WrittenField& into) {
            into.field.shift = static_cast<std::uint32_t>(*table.integer("shift", {0, 8ULL * into.field.bytes - 1}));
        })
        .shows([](const WrittenField& from) { return value_of(from.field.shift); })
        .unset(0, "")
        .usually("0")
        .check(check_shift);
    const bool with_value = extra == FieldExtra::value || extra == FieldExtra::own_value || extra == FieldExtra::all;
    if (with_value) add_value(out, extra);
    if (extra == FieldExtra::wrap_bits || extra == FieldExtra::all)
        out.add("wrap_bits", "integer", "the width of the counter, if it is narrower than the field")
            .reads([](TableReader& table, WrittenField& into) {
                const auto width = static_cast<std::uint64_t>(std::bit_width(value_mask(into.field)));
                into.wrap_bits = static_cast<std::uint32_t>(*table.integer("wrap_bits", {1, width}));
            })
            .shows([](const WrittenField& from) { return value_of(from.wrap_bits); });
    if (extra == FieldExtra::count || extra == FieldExtra::all) {
        const auto count = out.add("count", "integer", "numbers of a second field, before the first goes on by one")
                               .reads([](TableReader& table, WrittenField& into) {
                                   into.count = *table.integer("count", {2, ~std::uint64_t{0} >> 1U});
                               })
                               .shows([](const WrittenField& from) { return value_of(from.count); });
        if (extra == FieldExtra::count) count.required("how many numbers the second field has: packets per second");
    }
    return out;
}

}  // namespace

WrittenField read_field(TableReader table, std::uint32_t header_bytes, FieldExtra extra) {
    return field_options(header_bytes, extra).read(std::move(table));
}

nlohmann::json field_json(const WrittenField& field) {
    return field_options(0, FieldExtra::all).report(field);
}

std::string field_text(const nlohmann::json& value) {
    return field_options(0, FieldExtra::all).inline_text(value);
}

}  // namespace weir::config::detail

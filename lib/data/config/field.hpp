// A field of a detector header: { offset, bytes, mask, shift }, for [[format]] and for reducers that look at headers.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "options/reader.hpp"
#include "wire/format.hpp"

namespace weir::config::detail {

/// Of a declared format.
inline constexpr std::uint32_t header_bytes_max = 1024;

/// A field and what may stand beside it.
struct WrittenField {
    wire::DeclaredField field;
    std::optional<std::uint64_t> value;      ///< that it always has, after mask and shift
    std::optional<std::uint32_t> wrap_bits;  ///< width of the counter in it
    std::optional<std::uint64_t> count{};    ///< numbers that it has before the field in front of it goes on by one
};

/// Which of those may.
enum class FieldExtra : std::uint8_t {
    none,
    value,      ///< any
    own_value,  ///< required, and one that the field can hold
    wrap_bits,
    count,  ///< required
    all,
};

/// Throws core::UsageError for a field that does not lie within `header_bytes`.
[[nodiscard]] WrittenField read_field(options::TableReader table, std::uint32_t header_bytes,
                                      FieldExtra extra = FieldExtra::none);
/// For reports; what is left out is not there.
[[nodiscard]] nlohmann::json field_json(const WrittenField& field);
/// As it is written: "{ offset = 40, bytes = 4 }". `value` is what field_json gives.
[[nodiscard]] std::string field_text(const nlohmann::json& value);

}  // namespace weir::config::detail

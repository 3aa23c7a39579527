// A decoded CBOR item (RFC 8949). Texts and byte strings are views into the message that was decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::stream {

struct CborValue {
    enum class Kind : std::uint8_t { null, boolean, integer, negative, real, text, bytes, array, map, tag };

    Kind kind = Kind::null;    ///< `undefined` and simple values that are not known are null
    std::uint64_t number = 0;  ///< of an integer, a boolean (1: true), a tag; of a negative n it is -1 - n
    double real = 0;
    std::string_view text;
    std::span<const std::byte> bytes;
    std::vector<CborValue> items;  ///< of an array; of a map key, value, key, value …; of a tag the one item

    /// The value of a text key, or null: there is none, or this is no map.
    [[nodiscard]] const CborValue* find(std::string_view key) const noexcept;
    /// The tagged item, or null if this has another tag or none.
    [[nodiscard]] const CborValue* tagged(std::uint64_t tag) const noexcept;
    [[nodiscard]] std::optional<std::uint64_t> as_unsigned() const noexcept;
    [[nodiscard]] std::optional<std::int64_t> as_signed() const noexcept;
    /// Empty: it is no text.
    [[nodiscard]] std::string_view as_text() const noexcept { return kind == Kind::text ? text : std::string_view{}; }
};

/// Decodes `message`, which has to be one item and nothing after it. Nothing if it is not, or if it is nested deeper
/// than 16 items, or has more than 2^18 of them; `problem` then says what is wrong in a few words. Memory is taken for
/// what is there, never for what a message says is there. Strings of indefinite length are refused: no sender of this
/// protocol uses them.
[[nodiscard]] std::optional<CborValue> parse_cbor(std::span<const std::byte> message, std::string& problem);

inline constexpr std::size_t cbor_depth_max = 16;
inline constexpr std::size_t cbor_items_max = std::size_t{1} << 18;

}  // namespace weir::stream

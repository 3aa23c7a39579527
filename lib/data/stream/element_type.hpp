// The types of pixels that a stream has: their names in `image_dtype`, and their tags as typed arrays (RFC 8746).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace weir::stream {

struct ElementType {
    std::string_view name;  ///< in `image_dtype`; the standard knows uint8, uint16 and uint32
    std::uint64_t tag = 0;  ///< of an array of these, little-endian
    std::uint32_t bytes = 0;
};

inline constexpr std::array<ElementType, 11> element_types{{{"uint8", 64, 1},
                                                            {"uint16", 69, 2},
                                                            {"uint32", 70, 4},
                                                            {"uint64", 71, 8},
                                                            {"int8", 72, 1},
                                                            {"int16", 77, 2},
                                                            {"int32", 78, 4},
                                                            {"int64", 79, 8},
                                                            {"float16", 84, 2},
                                                            {"float32", 85, 4},
                                                            {"float64", 86, 8}}};

/// Null: there is none with this tag.
constexpr const ElementType* element_type_of_tag(std::uint64_t tag) noexcept {
    const auto* const found = std::find_if(element_types.begin(), element_types.end(),
                                           [tag](const ElementType& type) { return type.tag == tag; });
    return found == element_types.end() ? nullptr : found;
}

/// Null: there is none of this name.
constexpr const ElementType* element_type_named(std::string_view name) noexcept {
    const auto* const found = std::find_if(element_types.begin(), element_types.end(),
                                           [name](const ElementType& type) { return type.name == name; });
    return found == element_types.end() ? nullptr : found;
}

/// DECTRIS' tags of CBOR: an array of several dimensions, and bytes that are compressed.
inline constexpr std::uint64_t tag_multi_dimensional = 40;
inline constexpr std::uint64_t tag_compressed = 56500;
inline constexpr std::uint64_t tag_date = 0;
/// Of a whole message: "this is CBOR" (RFC 8949, section 3.4.6). DECTRIS' servers send it, and their clients ask for
/// it.
inline constexpr std::uint64_t tag_self_described = 55799;

}  // namespace weir::stream

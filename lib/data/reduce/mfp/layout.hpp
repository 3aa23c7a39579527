// How a multi-fragment packet (MFP) is laid out: one source's fragments of a block of consecutive events in one
// message. A layout is data, so that a front end of one's own can be described in the configuration; LHCb's of late
// 2019 is built in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::reduce {

/// Bytes with what fills them up to a multiple of `align`.
[[nodiscard]] constexpr std::uint64_t aligned(std::uint64_t bytes, std::uint64_t align) noexcept {
    return (bytes + align - 1) / align * align;
}

/// An unsigned number in a header; 0 bytes: there is none.
struct MfpField {
    std::uint32_t offset = 0;
    std::uint8_t bytes = 0;  ///< 0, 1, 2, 4 or 8

    bool operator==(const MfpField&) const = default;
};

/// A message is: header, then the table of types, then the table of sizes, then the fragments one after the other. Or,
/// with `size_in_fragment`: header, then fragments that each say their own size.
struct MfpLayout {
    bool big_endian = false;
    std::uint32_t header_bytes = 16;
    MfpField first_event{0, 8};         ///< number of the first event; of fewer bytes it wraps
    MfpField fragments{8, 2};           ///< how many fragments follow: the packing factor
    MfpField length{12, 4};             ///< bytes, checked against the message where there is such a field …
    bool length_is_of_message = false;  ///< … of the whole message, rather than of the fragments with their padding
    MfpField magic;
    std::uint64_t magic_value = 0;
    std::uint8_t type_bytes = 1;       ///< of an entry in the table of types: 1, or 0 for no such table
    std::uint8_t size_bytes = 2;       ///< of an entry in the table of sizes: 1, 2 or 4; 0 with `size_in_fragment`
    std::uint32_t table_align = 4;     ///< each table is filled up to a multiple of this
    std::uint32_t fragment_align = 1;  ///< each fragment is filled up to a multiple of this
    MfpField size_in_fragment;         ///< in the first bytes of each fragment
    std::uint32_t size_adds = 0;       ///< what a size leaves out, as the fragment's own header

    bool operator==(const MfpLayout&) const = default;
};

/// Largest header and largest place of a size inside a fragment.
inline constexpr std::uint32_t mfp_header_bytes_max = 256;

/// The layout with this name: "lhcb-2019", the block of the event builder's format as it was public in late 2019
/// (Allen, mdf/include/eb_header.hpp: "best knowledge end of 2019"): 64-bit number of the first event, 16-bit packing
/// factor, 16 reserved bits, 32-bit size of all fragments, then types (8 bits) and sizes (16 bits), each table padded
/// to 4 bytes.
std::optional<MfpLayout> mfp_layout(std::string_view name);

/// Empty, or what is wrong with a layout: fields beyond the header, sizes that do not exist, alignments of no power
/// of 2.
std::string mfp_layout_problem(const MfpLayout& layout);

}  // namespace weir::reduce

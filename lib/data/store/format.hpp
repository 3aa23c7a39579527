// The event file's bytes, as structs: what docs/reference/EVENT_FILE.md specifies, and nothing else. Little-endian,
// every block a multiple of 64 bytes long and starting at a multiple of 64.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "assemble/event_cause.hpp"

namespace weir::store {

static_assert(std::endian::native == std::endian::little, "the structs below are copied to and from the file");

inline constexpr std::uint32_t block_magic = 0x52494557;  ///< the bytes "WEIR"
/// What a run is written as unless it needs more: readers of version 1 can read it.
inline constexpr std::uint16_t format_version = 1;
/// Reduced content, other codecs than zstd, padding, segments written side by side. All blocks of a run have one
/// version.
inline constexpr std::uint16_t format_version_reduced = 2;
inline constexpr std::uint16_t format_version_newest = format_version_reduced;
inline constexpr std::uint32_t block_align = 64;
/// Upper bound of a block's body, stored and raw: a reader never allocates more for one block.
inline constexpr std::uint32_t body_bytes_max = 64U << 20;

enum class BlockType : std::uint16_t {
    segment = 1,
    event = 2,
    source = 3,
    payload = 4,
    index = 5,
    padding = 6,  ///< version 2: zeros that belong to no event, so that what follows is aligned for the disk
};

/// How a payload block's body is stored: a codec in the low nibble, and whether what it decodes to is a CSR piece.
/// Version 1 knows `raw` and `zstd` only.
enum class Encoding : std::uint8_t {
    raw = 0,
    zstd = 1,             ///< one frame, RFC 8878; as a chunk of HDF5's filter 32015
    lz4 = 2,              ///< as a chunk of HDF5's filter 32004
    bitshuffle_lz4 = 3,   ///< as a chunk of HDF5's filter 32008
    bitshuffle_zstd = 4,  ///< as a chunk of HDF5's filter 32008
    bits = 5,             ///< integers in as few bits as they need
    sparse = 0x10,        ///< beside a codec: the decoded body is a CSR piece, which expands to `raw_bytes`
};
inline constexpr std::uint8_t codec_mask = 0x0f;
inline constexpr std::uint8_t codecs = 6;

constexpr Encoding codec_of(Encoding encoding) {
    return static_cast<Encoding>(static_cast<std::uint8_t>(encoding) & codec_mask);
}
constexpr bool is_sparse(Encoding encoding) {
    return (static_cast<std::uint8_t>(encoding) & static_cast<std::uint8_t>(Encoding::sparse)) != 0;
}
/// A codec that is known, sparse or not, and no other bit.
constexpr bool is_known(Encoding encoding) {
    const auto bits = static_cast<std::uint8_t>(encoding);
    return (bits & codec_mask) < codecs && (bits & ~(codec_mask | static_cast<std::uint8_t>(Encoding::sparse))) == 0;
}
/// The codec works on elements of a size that its reader must know: `BlockHeader::element_bytes`.
constexpr bool has_elements(Encoding encoding) {
    return codec_of(encoding) >= Encoding::bitshuffle_lz4 && codec_of(encoding) <= Encoding::bits;
}

/// What an event's payload is.
enum class Content : std::uint8_t {
    received = 0,  ///< the sources' messages as they came, without their missing ranges
    pixels = 1,    ///< all pixels of all sources, row by row; `payload` in the run's description says type and shape
    mep = 2,       ///< multi-event packets
};
inline constexpr std::array<std::string_view, 3> content_names{"received", "pixels", "mep"};

/// What a veto said of an event that was kept.
enum class Veto : std::uint8_t {
    none = 0,     ///< none was asked
    passed = 1,   ///< keep it
    control = 2,  ///< leave it out; it was kept as a control
};
inline constexpr std::array<std::string_view, 3> veto_names{"none", "passed", "control"};

/// Why an event is incomplete.
using Cause = assemble::EventCause;
using assemble::cause_names;

/// What is known of one source's message in an event.
enum class SourceState : std::uint8_t {
    complete = 0,  ///< all declared bytes are there
    partial = 1,   ///< declared size known, `missing` says exactly what is not there
    size_unknown =
        2,       ///< something came, the declared size was never learnt; `missing` may list the gaps that are known
    absent = 3,  ///< nothing came, the size is known all the same (fixed-size formats): one range, the whole message
    absent_unknown = 4,  ///< nothing came and the size is not known
};

struct BlockHeader {
    static constexpr std::uint8_t end_of_event = 1;  ///< in `flags`: the last block of its event

    std::uint32_t magic = block_magic;
    std::uint16_t version = format_version;
    BlockType type = BlockType::segment;
    std::uint32_t header_bytes = 64;
    std::uint32_t stored_bytes = 0;  ///< of the body, without the zeros that fill it up to a multiple of 64
    std::uint64_t sequence = 0;      ///< counts the blocks of a run from 0, over all segments; version 2: of a segment
    std::uint32_t body_crc = 0;      ///< CRC-32C of the body with its zeros
    std::uint32_t raw_bytes = 0;     ///< of the body after decoding; equals stored_bytes unless encoded
    Encoding encoding = Encoding::raw;
    std::uint8_t flags = 0;
    /// Version 2, payload blocks whose codec has_elements(): 1, 2, 4 or 8. Else 0.
    std::uint8_t element_bytes = 0;
    std::uint8_t reserved = 0;
    std::uint32_t epoch = 0;  ///< event, source and payload blocks: whose they are
    std::uint64_t event = 0;
    std::uint64_t run_tag = 0;  ///< random, the same in all blocks of a run
    std::uint32_t reserved_too = 0;
    std::uint32_t header_crc = 0;  ///< CRC-32C of the 60 bytes before it
};
static_assert(sizeof(BlockHeader) == block_align && offsetof(BlockHeader, element_bytes) == 34 &&
              offsetof(BlockHeader, epoch) == 36 && std::is_trivially_copyable_v<BlockHeader>);
inline constexpr std::size_t header_crc_bytes = 60;

/// Followed by `json_bytes` of JSON text: what was known when the run started.
struct SegmentBody {
    static constexpr std::uint32_t no_run = 0xffffffff;
    std::uint32_t segment = 0;
    std::uint32_t run = no_run;
    std::int64_t created_ns = 0;  ///< UNIX time
    std::uint32_t json_bytes = 0;
    std::uint32_t reserved = 0;
    std::array<std::uint64_t, 5> reserved_too{};
};
static_assert(sizeof(SegmentBody) == 64);

struct EventBody {
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
    std::uint64_t payload_bytes = 0;  ///< received, over all sources, before encoding
    std::uint64_t packets = 0;
    std::uint32_t sources = 0;  ///< source records that follow
    std::uint8_t complete = 0;
    Cause cause = Cause::complete;
    // Version 2; zero in version 1.
    Content content = Content::received;
    Veto veto = Veto::none;
    std::uint32_t pixels_above = 0;   ///< that a veto or a sparse reducer counted, over all sources
    std::uint32_t peaks = 0;          ///< that a peak finder found
    std::uint64_t reduced_bytes = 0;  ///< of the decoded payload where it is not what was received, else 0
    std::uint64_t reserved = 0;
};
static_assert(sizeof(EventBody) == 64 && offsetof(EventBody, content) == 38 && offsetof(EventBody, veto) == 39 &&
              offsetof(EventBody, pixels_above) == 40 && offsetof(EventBody, reduced_bytes) == 48);

/// A source block holds one or more of these, each followed by its missing ranges and zeros up to a multiple of 64.
struct SourceBody {
    static constexpr std::size_t meta_bytes_max = 64;
    std::uint32_t source = 0;
    SourceState state = SourceState::complete;
    std::uint8_t meta_bytes = 0;
    std::uint16_t reserved = 0;
    std::uint64_t declared_bytes = 0;  ///< 0 where not known
    std::uint64_t received_bytes = 0;
    std::uint32_t packets = 0;
    std::uint32_t missing_count = 0;
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
    std::uint64_t reduced_bytes = 0;  ///< version 2: this source's part of EventBody::reduced_bytes
    std::uint64_t reserved_too = 0;
    std::array<std::byte, meta_bytes_max> meta{};
};
static_assert(sizeof(SourceBody) == 128 && offsetof(SourceBody, reduced_bytes) == 48);

struct MissingRange {
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
};
static_assert(sizeof(MissingRange) == 8);

struct IndexEntry {
    std::uint64_t event = 0;
    std::uint32_t epoch = 0;
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;  ///< of the event block in its segment
    std::uint64_t bytes = 0;   ///< from there to the end of the event's last block
};
static_assert(sizeof(IndexEntry) == 32);

/// What pads must be.
[[nodiscard]] inline bool all_zero(std::span<const std::byte> bytes) {
    return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

constexpr std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + block_align - 1) / block_align * block_align;
}

}  // namespace weir::store

// The event file's bytes, as structs: what docs/EVENT_FILE.md specifies, and nothing else. Little-endian, every block a
// multiple of 64 bytes long and starting at a multiple of 64.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace weir::store {

static_assert(std::endian::native == std::endian::little, "the structs below are copied to and from the file");

inline constexpr std::uint32_t block_magic = 0x52494557;  ///< the bytes "WEIR"
inline constexpr std::uint16_t format_version = 1;
inline constexpr std::uint32_t block_align = 64;
/// Upper bound of a block's body, stored and raw: a reader never allocates more for one block.
inline constexpr std::uint32_t body_bytes_max = 64U << 20;

enum class BlockType : std::uint16_t { segment = 1, event = 2, source = 3, payload = 4, index = 5 };
enum class Encoding : std::uint8_t { raw = 0, zstd = 1 };

/// Why an event is incomplete.
enum class Cause : std::uint8_t { none = 0, timeout = 1, evicted = 2, end_of_run = 3, no_room = 4 };
inline constexpr std::array<std::string_view, 5> cause_names{"none", "timeout", "evicted", "end_of_run", "no_room"};

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
    std::uint64_t sequence = 0;      ///< counts the blocks of a run from 0, over all segments
    std::uint32_t body_crc = 0;      ///< CRC-32C of the body with its zeros
    std::uint32_t raw_bytes = 0;     ///< of the body after decoding; equals stored_bytes unless encoded
    Encoding encoding = Encoding::raw;
    std::uint8_t flags = 0;
    std::uint16_t reserved = 0;
    std::uint32_t epoch = 0;  ///< event, source and payload blocks: whose they are
    std::uint64_t event = 0;
    std::uint64_t run_tag = 0;  ///< random, the same in all blocks of a run
    std::uint32_t reserved_too = 0;
    std::uint32_t header_crc = 0;  ///< CRC-32C of the 60 bytes before it
};
static_assert(sizeof(BlockHeader) == block_align && std::is_trivially_copyable_v<BlockHeader>);
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
    Cause cause = Cause::none;
    std::uint16_t reserved = 0;
    std::array<std::uint64_t, 3> reserved_too{};
};
static_assert(sizeof(EventBody) == 64);

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
    std::array<std::uint64_t, 2> reserved_too{};
    std::array<std::byte, meta_bytes_max> meta{};
};
static_assert(sizeof(SourceBody) == 128);

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

constexpr std::uint64_t padded(std::uint64_t bytes) {
    return (bytes + block_align - 1) / block_align * block_align;
}

}  // namespace weir::store

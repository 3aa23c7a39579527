// Takes out of a segment what a crash left in it besides whole events, so that what stays is a segment as any other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/file.hpp"
#include "store/format.hpp"
#include "store/read_pace.hpp"

namespace weir::store {

/// Where a whole event lies in its segment.
struct EventPlace {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

class SegmentRepair {
public:
    /// `file` is open for reading and writing.
    SegmentRepair(File& file, std::uint64_t run_tag, std::uint16_t version, const ReadPace& pace)
        : file_(file), run_tag_(run_tag), version_(version), pace_(pace) {}

    /// Keeps the first block, the whole events and padding between them. What comes after the last of them is cut off.
    /// A hole before it (a disk without power does not keep to the order of writes) becomes padding, as many blocks as
    /// are missing, where the version has that. Bytes that were given up. Throws core::RunError, and has changed
    /// nothing whole, if the segment cannot be mended: its first block is gone, or there is a hole in version 1.
    std::uint64_t mend(std::span<const EventPlace> events);

    /// Makes the file a segment without events: `head` is the first block of another segment of the run. `sequence`: of
    /// its block.
    void make_empty(std::span<const std::byte> head, std::uint32_t segment, std::uint64_t sequence);

private:
    struct Kept {
        std::uint64_t end = 0;
        std::uint64_t sequence = 0;
    };
    /// A hole that is to be filled with so many blocks.
    struct Hole {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::uint64_t sequence = 0;
        std::uint64_t blocks = 0;
    };
    [[nodiscard]] std::uint64_t find_holes(std::span<const EventPlace> events);
    [[nodiscard]] std::uint64_t written_after(std::uint64_t from) const;
    void fill(const Hole& hole);
    void write_block(std::uint64_t offset, BlockHeader header, std::vector<std::byte> block);
    [[noreturn]] void give_up(const std::string& why) const;

    File& file_;
    std::uint64_t run_tag_;
    std::uint16_t version_;
    const ReadPace& pace_;
    std::vector<Hole> holes_;
};

}  // namespace weir::store

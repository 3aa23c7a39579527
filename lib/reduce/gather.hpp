// From references to bytes: walks the payload of a message in order of offset and copies it, piece by piece, to where a
// reducer or the event file wants it. This is the one pass over the data that a run cannot avoid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "assemble/message.hpp"

namespace weir::reduce {

/// The references of one message, sorted by offset; trimmed (empty) ones are left out.
class SortedRefs {
public:
    /// Takes memory for messages of up to `refs_max` references.
    explicit SortedRefs(std::uint32_t refs_max) { refs_.reserve(refs_max); }

    /// Does not allocate. References in order of arrival are only listed; others are sorted.
    void assign(const assemble::Message& message) noexcept;
    [[nodiscard]] std::span<const assemble::FragmentRef* const> refs() const noexcept { return refs_; }
    /// The received ranges, merged, written to `out`; returns how many (no more than `out.size()` are written).
    [[nodiscard]] std::size_t ranges(std::span<assemble::ByteRange> out) const noexcept;
    /// Bytes of the largest packet.
    [[nodiscard]] std::uint32_t largest_bytes() const noexcept;

private:
    std::vector<const assemble::FragmentRef*> refs_;
};

/// Where a copy stands inside a message; start a new one for each message.
struct GatherCursor {
    std::size_t ref = 0;
    std::uint32_t done_bytes = 0;  ///< of that reference
};

/// Copies the next payload bytes to `out`: as many as fit, or as are left. Returns the number; 0 at the end. Gaps are
/// left out. `out` should start at a cache line: whole lines go past the caches when `streaming`.
std::size_t gather(const SortedRefs& message, GatherCursor& cursor, std::span<std::byte> out, bool streaming) noexcept;

}  // namespace weir::reduce

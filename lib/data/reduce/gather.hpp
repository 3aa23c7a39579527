// From references to bytes: walks the payload of a message in order of offset and copies it, piece by piece, to where a
// reducer or the event file wants it. This is the one pass over the data that a run cannot avoid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "assemble/message.hpp"

namespace weir::reduce {

/// Room for lists of references: of one message, or of all messages of an event, which cannot have more than one
/// message could have alone.
class RefRoom {
public:
    explicit RefRoom(std::uint32_t refs_max) { refs_.reserve(refs_max); }
    /// Lists that were made before are void.
    void clear() noexcept { refs_.clear(); }

private:
    friend class SortedRefs;
    std::vector<const assemble::FragmentRef*> refs_;
};

/// The references of one message, sorted by offset; trimmed (empty) ones are left out.
class SortedRefs {
public:
    /// Takes memory for messages of up to `refs_max` references.
    explicit SortedRefs(std::uint32_t refs_max) : own_(refs_max) {}
    /// Lists them in `room`, after what is there, and takes no memory. Whoever has the room clears it.
    explicit SortedRefs(RefRoom& room) : own_(0), shared_(&room) {}
    SortedRefs(SortedRefs&&) = default;
    SortedRefs& operator=(SortedRefs&&) = default;

    /// Does not allocate. References in order of arrival are only listed; others are sorted.
    void assign(const assemble::Message& message) noexcept;
    [[nodiscard]] std::span<const assemble::FragmentRef* const> refs() const noexcept { return refs_; }
    /// The received ranges, merged, written to `out`; returns how many (no more than `out.size()` are written).
    [[nodiscard]] std::size_t ranges(std::span<assemble::ByteRange> out) const noexcept;
    /// Bytes of the largest packet.
    [[nodiscard]] std::uint32_t largest_bytes() const noexcept;

private:
    RefRoom own_;
    RefRoom* shared_ = nullptr;
    std::span<const assemble::FragmentRef* const> refs_;
};

/// Where a copy stands inside a message; start a new one for each message.
struct GatherCursor {
    std::size_t ref = 0;
    std::uint32_t done_bytes = 0;  ///< of that reference
    std::size_t fetched = 0;       ///< references that need not be asked for any more
    std::size_t coming_bytes = 0;  ///< of those after `ref` that were asked for
};

/// Copies the next payload bytes to `out`: as many as fit, or as are left. Returns the number; 0 at the end. Gaps are
/// left out.
std::size_t gather(const SortedRefs& message, GatherCursor& cursor, std::span<std::byte> out) noexcept;

}  // namespace weir::reduce

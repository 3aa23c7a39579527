#include "reduce/gather.hpp"

#include <algorithm>
#include <cstring>

namespace weir::reduce {

using assemble::ByteRange;
using assemble::FragmentBlock;
using assemble::FragmentRef;

namespace {

/// Calls `each` with every reference that is not trimmed, in order of arrival.
template <class Each>
void each_ref(const assemble::Message& message, Each each) noexcept {
    for (const FragmentBlock* block = message.first_block; block != nullptr; block = block->next)
        for (std::uint32_t i = 0; i < block->count; ++i)
            if (block->refs[i].bytes > 0) each(block->refs[i]);
}

/// Places the references by division, where all of a grid are there, as those of equal packets are: sorting is a
/// misprediction for every other comparison. False: some would have the same place or none, and `out` holds anything.
bool place_on_grid(const assemble::Message& message, std::uint32_t step, std::span<const FragmentRef*> out) noexcept {
    // What is rounded makes no difference: larger offsets never have lower places.
    const std::uint64_t inverse = ((std::uint64_t{1} << 32U) + step - 1) / step;
    std::ranges::fill(out, nullptr);
    bool on_grid = true;
    each_ref(message, [&](const FragmentRef& ref) {
        const std::uint64_t place = ref.offset * inverse >> 32U;
        on_grid = on_grid && place < out.size() && out[place] == nullptr;
        if (on_grid) out[place] = &ref;
    });
    return on_grid;
}

}  // namespace

void SortedRefs::assign(const assemble::Message& message) noexcept {
    if (shared_ == nullptr) own_.clear();
    std::vector<const FragmentRef*>& room = (shared_ == nullptr ? own_ : *shared_).refs_;
    const std::size_t first = room.size();
    std::uint32_t before = 0;
    std::uint32_t largest = 0;
    // Looking costs little beside the copy that follows, and a wrong order would be a wrong event.
    bool sorted = true;
    each_ref(message, [&](const FragmentRef& ref) {
        room.push_back(&ref);
        sorted = sorted && ref.offset >= before;
        before = ref.offset;
        largest = std::max(largest, ref.bytes);
    });
    const std::span<const FragmentRef*> listed = std::span(room).subspan(first);
    if (!sorted && !place_on_grid(message, largest, listed)) {
        std::size_t next = 0;
        each_ref(message, [&](const FragmentRef& ref) { listed[next++] = &ref; });
        std::ranges::sort(listed, [](const FragmentRef* a, const FragmentRef* b) { return a->offset < b->offset; });
    }
    refs_ = listed;
}

std::size_t SortedRefs::ranges(std::span<ByteRange> out) const noexcept {
    std::size_t count = 0;
    for (const FragmentRef* ref : refs_) {
        const std::uint32_t end = ref->offset + ref->bytes;
        if (count > 0 && count <= out.size() && out[count - 1].end == ref->offset) {
            out[count - 1].end = end;
        } else {
            if (count < out.size()) out[count] = {ref->offset, end};
            ++count;
        }
    }
    return count;
}

std::uint32_t SortedRefs::largest_bytes() const noexcept {
    std::uint32_t largest = 0;
    for (const FragmentRef* ref : refs_) largest = std::max(largest, ref->bytes);
    return largest;
}

namespace {

/// What is asked for ahead of the copy, and of one packet at most.
constexpr std::uint32_t fetch_bytes = 8192;

/// Into the second-level cache: it waits for more lines at a time than the first, and has room for whole packets.
void fetch_packet(const FragmentRef& ref) noexcept {
    constexpr int second_level = 2;
    for (std::uint32_t at = 0; at < std::min(ref.bytes, fetch_bytes); at += 64)
        __builtin_prefetch(ref.data + at, 0, second_level);
}

/// The reference at the cursor is begun: it is no longer one that is coming.
void begin_ref(std::span<const FragmentRef* const> refs, GatherCursor& cursor) noexcept {
    if (cursor.ref < cursor.fetched)
        cursor.coming_bytes -= refs[cursor.ref]->bytes;
    else
        cursor.fetched = cursor.ref + 1;
}

/// Asks for the packets that come next, as long as fewer bytes than `fetch_bytes` are on their way: with one small
/// packet at a time, none would come faster than one wait for memory after the other.
void fetch_ahead(std::span<const FragmentRef* const> refs, GatherCursor& cursor) noexcept {
    while (cursor.fetched < refs.size() && cursor.coming_bytes < fetch_bytes) {
        const FragmentRef& ref = *refs[cursor.fetched++];
        fetch_packet(ref);
        cursor.coming_bytes += ref.bytes;
    }
}

/// What to copy next, `bytes_max` at most, and moves the cursor past it: of one packet, or of several small ones whose
/// payload lies in a row, as when it was copied out of its buffers.
std::span<const std::byte> next_row(std::span<const FragmentRef* const> refs, GatherCursor& cursor,
                                    std::size_t bytes_max) noexcept {
    constexpr std::size_t long_enough_bytes = 2048;
    const std::byte* const from = refs[cursor.ref]->data + cursor.done_bytes;
    std::size_t bytes = refs[cursor.ref]->bytes - cursor.done_bytes;
    while (bytes <= bytes_max) {
        ++cursor.ref;
        cursor.done_bytes = 0;
        if (bytes == bytes_max || bytes >= long_enough_bytes || cursor.ref == refs.size() ||
            refs[cursor.ref]->data != from + bytes)
            return {from, bytes};
        begin_ref(refs, cursor);
        bytes += refs[cursor.ref]->bytes;
    }
    cursor.done_bytes = static_cast<std::uint32_t>(refs[cursor.ref]->bytes - (bytes - bytes_max));
    return {from, bytes_max};
}

}  // namespace

std::size_t gather(const SortedRefs& message, GatherCursor& cursor, std::span<std::byte> out) noexcept {
    const auto refs = message.refs();
    std::size_t done = 0;
    while (cursor.ref < refs.size() && done < out.size()) {
        if (cursor.done_bytes == 0) {
            begin_ref(refs, cursor);
            fetch_ahead(refs, cursor);
        }
        const std::span<const std::byte> row = next_row(refs, cursor, out.size() - done);
        std::memcpy(out.data() + done, row.data(), row.size());
        done += row.size();
    }
    return done;
}

}  // namespace weir::reduce

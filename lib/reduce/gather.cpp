#include "reduce/gather.hpp"

#include <algorithm>
#include <cstring>

namespace weir::reduce {

using assemble::ByteRange;
using assemble::FragmentBlock;
using assemble::FragmentRef;

void SortedRefs::assign(const assemble::Message& message) noexcept {
    if (shared_ == nullptr) own_.clear();
    std::vector<const FragmentRef*>& room = (shared_ == nullptr ? own_ : *shared_).refs_;
    const std::size_t first = room.size();
    for (const FragmentBlock* block = message.first_block; block != nullptr; block = block->next)
        for (std::uint32_t i = 0; i < block->count; ++i)
            if (block->refs[i].bytes > 0) room.push_back(&block->refs[i]);
    const std::span<const FragmentRef*> listed = std::span(room).subspan(first);
    const auto before = [](const FragmentRef* a, const FragmentRef* b) { return a->offset < b->offset; };
    // Looking costs little beside the copy that follows, and a wrong order would be a wrong event.
    if (!std::ranges::is_sorted(listed, before)) std::ranges::sort(listed, before);
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

/// The beginning of a packet, while the one before it is copied: from there on the hardware's prefetchers follow.
void prefetch(const FragmentRef& ref) noexcept {
    constexpr std::uint32_t ahead_bytes = 1024;
    for (std::uint32_t at = 0; at < std::min(ref.bytes, ahead_bytes); at += 64) __builtin_prefetch(ref.data + at);
}

}  // namespace

std::size_t gather(const SortedRefs& message, GatherCursor& cursor, std::span<std::byte> out) noexcept {
    const auto refs = message.refs();
    std::size_t done = 0;
    while (cursor.ref < refs.size() && done < out.size()) {
        const FragmentRef& ref = *refs[cursor.ref];
        if (cursor.ref + 1 < refs.size() && cursor.done_bytes == 0) prefetch(*refs[cursor.ref + 1]);
        const std::size_t bytes = std::min<std::size_t>(ref.bytes - cursor.done_bytes, out.size() - done);
        std::memcpy(out.data() + done, ref.data + cursor.done_bytes, bytes);
        done += bytes;
        cursor.done_bytes += static_cast<std::uint32_t>(bytes);
        if (cursor.done_bytes == ref.bytes) {
            ++cursor.ref;
            cursor.done_bytes = 0;
        }
    }
    return done;
}

}  // namespace weir::reduce

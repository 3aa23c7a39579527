#include "reduce/ref_reader.hpp"

#include <algorithm>
#include <cstring>

namespace weir::reduce {

using assemble::FragmentRef;

void RefReader::seek(std::uint32_t offset) noexcept {
    const auto refs = message_->refs();
    const auto reaches = [&](std::size_t i) { return refs[i]->offset + refs[i]->bytes > offset; };
    // Mostly it is the same reference, or the next.
    for (int steps = 0; steps < 4 && at_ < refs.size() && !reaches(at_); ++steps) ++at_;
    const bool before_it = at_ == 0 || !reaches(at_ - 1);
    if (before_it && (at_ == refs.size() || reaches(at_))) return;
    const auto first =
        std::ranges::partition_point(refs, [&](const FragmentRef* ref) { return ref->offset + ref->bytes <= offset; });
    at_ = static_cast<std::size_t>(first - refs.begin());
}

bool RefReader::copy(std::uint32_t offset, std::span<std::byte> out) noexcept {
    if (out.empty()) return true;
    const auto refs = message_->refs();
    seek(offset);
    while (!out.empty()) {
        if (at_ == refs.size() || refs[at_]->offset > offset) return false;
        const FragmentRef& ref = *refs[at_];
        const std::uint32_t skipped = offset - ref.offset;
        const std::size_t bytes = std::min<std::size_t>(ref.bytes - skipped, out.size());
        std::memcpy(out.data(), ref.data + skipped, bytes);
        out = out.subspan(bytes);
        offset += static_cast<std::uint32_t>(bytes);
        if (skipped + bytes == ref.bytes) ++at_;
    }
    return true;
}

bool RefReader::has(std::uint32_t begin, std::uint32_t end) noexcept {
    if (begin == end) return true;
    const auto refs = message_->refs();
    seek(begin);
    for (std::size_t i = at_; i < refs.size() && refs[i]->offset <= begin; ++i) {
        begin = refs[i]->offset + refs[i]->bytes;
        if (begin >= end) return true;
    }
    return false;
}

}  // namespace weir::reduce

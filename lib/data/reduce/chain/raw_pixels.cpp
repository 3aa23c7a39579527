#include "reduce/chain/raw_pixels.hpp"

#include <algorithm>
#include <cstring>

namespace weir::reduce {

using assemble::FragmentRef;

void RawPixels::begin(const assemble::Message& message) noexcept {
    refs_.assign(message);
    ref_ = 0;
    at_ = 0;
    missing_ = 0;
    piece_ = {};
}

/// The piece that has `begin`, or comes after it.
void RawPixels::find_piece(std::uint32_t begin) noexcept {
    const auto refs = refs_.refs();
    ref_ = piece_.next;
    while (ref_ < refs.size() && refs[ref_]->offset + refs[ref_]->bytes <= begin) ++ref_;
    piece_ = {.next = ref_};
    if (ref_ == refs.size()) return;
    piece_ = {refs[ref_]->data, refs[ref_]->offset, refs[ref_]->offset + refs[ref_]->bytes, ref_ + 1};
    for (; piece_.next < refs.size(); ++piece_.next) {
        const FragmentRef& ref = *refs[piece_.next];
        if (ref.offset != piece_.end || ref.data != piece_.data + (piece_.end - piece_.begin)) break;
        piece_.end += ref.bytes;
    }
}

std::span<const std::uint16_t> RawPixels::next(std::size_t pixels) noexcept {
    const std::uint32_t begin = at_;
    const std::uint32_t end = begin + static_cast<std::uint32_t>(2 * pixels);
    at_ = end;
    if (begin >= piece_.end) find_piece(begin);
    if (piece_.begin > begin || piece_.end < end) return gather(begin, end);
    const auto refs = refs_.refs();
    if (piece_.end == end && piece_.next < refs.size()) {
        // The beginning of the next packet, while this one is converted: from there the hardware's prefetchers follow.
        constexpr std::uint32_t ahead_bytes = 1024;
        const FragmentRef& next = *refs[piece_.next];
        for (std::uint32_t at = 0; at < std::min(next.bytes, ahead_bytes); at += 64) __builtin_prefetch(next.data + at);
    }
    const std::byte* const data = piece_.data + (begin - piece_.begin);
    // Packets of a capture lie where the file has them, which may be an odd address.
    if (reinterpret_cast<std::uintptr_t>(data) % alignof(std::uint16_t) != 0) {
        std::memcpy(scratch_.data(), data, 2 * pixels);
        return std::span(scratch_).first(pixels);
    }
    return {reinterpret_cast<const std::uint16_t*>(data), pixels};
}

void RawPixels::fetch(std::size_t pixels) const noexcept {
    std::span<const std::byte> next;
    if (at_ < piece_.end)
        next = {piece_.data + (std::max(at_, piece_.begin) - piece_.begin), piece_.end - std::max(at_, piece_.begin)};
    else if (piece_.next < refs_.refs().size())
        next = {refs_.refs()[piece_.next]->data, refs_.refs()[piece_.next]->bytes};
    constexpr int second_level = 2;
    for (std::size_t at = 0; at < std::min(next.size(), 2 * pixels); at += 64)
        __builtin_prefetch(next.data() + at, 0, second_level);
}

std::span<const std::uint16_t> RawPixels::gather(std::uint32_t begin, std::uint32_t end) noexcept {
    const auto low = static_cast<std::byte>(missing_word_);
    const auto high = static_cast<std::byte>(missing_word_ >> 8U);
    const std::size_t pixels = (end - begin) / 2;
    auto* const bytes = reinterpret_cast<std::byte*>(scratch_.data());
    std::fill_n(scratch_.data(), pixels, missing_word_);
    const auto refs = refs_.refs();
    std::size_t whole = 0;
    // A run of references without a gap at a time; where it begins or ends in the middle of a pixel, that is not whole.
    std::uint32_t at = begin;
    for (std::size_t i = ref_; at < end && i < refs.size() && refs[i]->offset < end;) {
        const std::uint32_t run_begin = std::max(refs[i]->offset, begin);
        std::uint32_t run_end = run_begin;
        for (; i < refs.size() && refs[i]->offset <= run_end && run_end < end; ++i) {
            const FragmentRef& ref = *refs[i];
            const std::uint32_t to = std::min(ref.offset + ref.bytes, end);
            if (to <= run_end) continue;
            std::memcpy(bytes + (run_end - begin), ref.data + (run_end - ref.offset), to - run_end);
            run_end = to;
        }
        if ((run_begin - begin) % 2 != 0) bytes[run_begin - begin] = high;
        if ((run_end - begin) % 2 != 0) bytes[run_end - begin - 1] = low;
        const std::uint32_t first = (run_begin - begin + 1) / 2;
        const std::uint32_t last = (run_end - begin) / 2;
        if (last > first) whole += last - first;
        at = run_end;
    }
    missing_ += pixels - whole;
    return std::span(scratch_).first(pixels);
}

}  // namespace weir::reduce

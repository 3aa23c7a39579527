#include "reduce/mfp/block.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weir::reduce {

namespace {

std::uint64_t load(const std::byte* at, std::uint8_t bytes, bool big_endian) noexcept {
    std::uint64_t value = 0;
    for (std::uint8_t i = 0; i < bytes; ++i)
        value |= std::to_integer<std::uint64_t>(at[i]) << 8U * (big_endian ? bytes - 1U - i : i);
    return value;
}

constexpr std::uint64_t size_max = 0xffff;

/// Where a message of `total` bytes ends; one whose size is not known may go as far as an offset can say.
constexpr std::uint64_t end_of(std::uint32_t total) noexcept {
    return total > 0 ? total : 0xffffffff;
}

}  // namespace

MfpBlock::MfpBlock(std::uint32_t fragments_max)
    : fragments_max_(fragments_max),
      offsets_(fragments_max),
      sizes_(fragments_max),
      types_(fragments_max),
      said_(fragments_max),
      table_(std::size_t{4} * fragments_max) {}

MfpProblem MfpBlock::read_whole(const MfpLayout& layout, const SortedRefs& message, std::uint32_t total) noexcept {
    whole_ = true;
    const MfpProblem problem = read(layout, message, total);
    whole_ = false;
    return problem;
}

MfpProblem MfpBlock::read(const MfpLayout& layout, const SortedRefs& message, std::uint32_t total) noexcept {
    reader_ = RefReader(message);
    fragments_ = missing_ = 0;
    bytes_ = 0;
    MfpProblem problem = read_header(layout, total);
    if (problem == MfpProblem::none)
        problem = layout.size_in_fragment.bytes > 0 ? walk(layout, total) : read_tables(layout, total);
    if (problem != MfpProblem::none) fragments_ = missing_ = 0;
    return problem;
}

void MfpBlock::make_missing(std::uint64_t first_event, std::uint32_t fragments) noexcept {
    first_event_ = first_event;
    fragments_ = missing_ = std::min(fragments, fragments_max_);
    bytes_ = 0;
    std::fill_n(types_.begin(), fragments_, mfp_missing_type);
    std::fill_n(sizes_.begin(), fragments_, std::uint16_t{0});
    std::fill_n(offsets_.begin(), fragments_, 0U);
}

MfpProblem MfpBlock::read_header(const MfpLayout& layout, std::uint32_t total) noexcept {
    std::array<std::byte, mfp_header_bytes_max> header;
    if (total > 0 && total < layout.header_bytes) return MfpProblem::truncated;
    if (!reader_.copy(0, std::span(header).first(layout.header_bytes))) return MfpProblem::head_missing;
    const auto field = [&](MfpField f) { return load(header.data() + f.offset, f.bytes, layout.big_endian); };
    if (layout.magic.bytes > 0 && field(layout.magic) != layout.magic_value) return MfpProblem::magic;
    const std::uint64_t fragments = field(layout.fragments);
    if (fragments == 0 || fragments > fragments_max_) return MfpProblem::too_many;
    first_event_ = field(layout.first_event);
    fragments_ = static_cast<std::uint32_t>(fragments);
    length_ = field(layout.length);
    return MfpProblem::none;
}

/// One more fragment, which is there, or counts as missing.
MfpProblem MfpBlock::add(std::uint32_t i, std::uint64_t at, std::uint64_t size) noexcept {
    if (size > size_max) return MfpProblem::too_long;
    offsets_[i] = static_cast<std::uint32_t>(at);
    if (whole_ || reader_.has(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + size))) {
        sizes_[i] = static_cast<std::uint16_t>(size);
        bytes_ += size;
    } else {
        sizes_[i] = 0;
        types_[i] = mfp_missing_type;
        ++missing_;
    }
    return MfpProblem::none;
}

void MfpBlock::decode_sizes(const MfpLayout& layout) noexcept {
    if (layout.size_bytes == 2 && !layout.big_endian) {  // the common one
        for (std::uint32_t i = 0; i < fragments_; ++i) {
            std::uint16_t size = 0;
            std::memcpy(&size, table_.data() + std::size_t{2} * i, sizeof size);
            said_[i] = size;
        }
        return;
    }
    for (std::uint32_t i = 0; i < fragments_; ++i)
        said_[i] = static_cast<std::uint32_t>(
            load(table_.data() + std::size_t{i} * layout.size_bytes, layout.size_bytes, layout.big_endian));
}

MfpProblem MfpBlock::read_tables(const MfpLayout& layout, std::uint32_t total) noexcept {
    const std::uint64_t sizes_at =
        layout.header_bytes + aligned(std::uint64_t{fragments_} * layout.type_bytes, layout.table_align);
    const std::uint64_t table_bytes = std::uint64_t{fragments_} * layout.size_bytes;
    const std::uint64_t data_at = sizes_at + aligned(table_bytes, layout.table_align);
    if (data_at > end_of(total)) return MfpProblem::truncated;
    const std::span types = std::as_writable_bytes(std::span(types_)).first(fragments_);
    if (layout.type_bytes == 0)
        std::ranges::fill(types, std::byte{0});
    else if (!reader_.copy(layout.header_bytes, types))
        return MfpProblem::head_missing;
    if (!reader_.copy(static_cast<std::uint32_t>(sizes_at), std::span(table_).first(table_bytes)))
        return MfpProblem::head_missing;
    // Before a byte is believed: the sizes must add up to the message.
    decode_sizes(layout);
    std::uint64_t at = data_at;
    for (std::uint32_t i = 0; i < fragments_; ++i)
        at += aligned(std::uint64_t{said_[i]} + layout.size_adds, layout.fragment_align);
    if (at > end_of(total)) return MfpProblem::truncated;
    if (total > 0 && at < total) return MfpProblem::length;
    if (layout.length.bytes > 0 && length_ != (layout.length_is_of_message ? at : at - data_at))
        return MfpProblem::length;
    at = data_at;
    for (std::uint32_t i = 0; i < fragments_; ++i) {
        const std::uint64_t size = std::uint64_t{said_[i]} + layout.size_adds;
        if (const MfpProblem problem = add(i, at, size); problem != MfpProblem::none) return problem;
        at += aligned(size, layout.fragment_align);
    }
    return MfpProblem::none;
}

/// Where each fragment says its own size, a gap in such a place hides where the ones after it begin.
MfpProblem MfpBlock::walk(const MfpLayout& layout, std::uint32_t total) noexcept {
    const MfpField& field = layout.size_in_fragment;
    std::array<std::byte, 8> number{};
    std::uint64_t at = layout.header_bytes;
    std::fill_n(types_.begin(), fragments_, std::uint8_t{0});
    for (std::uint32_t i = 0; i < fragments_; ++i) {
        if (at + field.offset + field.bytes > end_of(total)) return MfpProblem::truncated;
        if (!reader_.copy(static_cast<std::uint32_t>(at + field.offset), std::span(number).first(field.bytes))) {
            for (; i < fragments_; ++i) {
                sizes_[i] = 0;
                offsets_[i] = 0;
                types_[i] = mfp_missing_type;
                ++missing_;
            }
            return MfpProblem::none;
        }
        const std::uint64_t size = load(number.data(), field.bytes, layout.big_endian) + layout.size_adds;
        if (size < field.offset + field.bytes) return MfpProblem::length;  // would be read again for ever
        if (at + size > end_of(total)) return MfpProblem::truncated;
        if (const MfpProblem problem = add(i, at, size); problem != MfpProblem::none) return problem;
        at += aligned(size, layout.fragment_align);
    }
    if (total > 0 && at < total) return MfpProblem::length;
    // What fills up the last one need not have been sent; the length may count it or not.
    const std::uint64_t said = length_ + (layout.length_is_of_message ? 0 : layout.header_bytes);
    return layout.length.bytes > 0 && aligned(said, layout.fragment_align) != aligned(at, layout.fragment_align)
               ? MfpProblem::length
               : MfpProblem::none;
}

}  // namespace weir::reduce

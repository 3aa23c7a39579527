// See bits.hpp for the layout. The work is the transposition of bits: a block's rows above its width are nearly all
// zero, and what is not zero in them are the exceptions.
#include "reduce/pack/bits.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "reduce/pack/bit_transpose.hpp"

namespace weir::reduce::pack {

namespace {

constexpr std::size_t header_bytes = 16;
constexpr std::size_t block_header_bytes = 4;  // and the reference
constexpr std::size_t group = 64;              // elements that are looked at together
constexpr std::size_t elements_max = 65536;

/// How a block is stored: what is subtracted, how many rows are kept, how many elements they do not hold.
struct Choice {
    std::uint64_t reference = 0;
    unsigned width = 0;
    std::size_t exceptions = 0;
    std::size_t cost = std::numeric_limits<std::size_t>::max();  ///< bytes of rows and exceptions
};

template <class T>
constexpr std::size_t exception_bytes = 2 + sizeof(T);

template <class T>
class Block {
public:
    /// `in` holds up to block_bytes, whole elements.
    Block(std::span<const std::byte> in, bool is_signed, BitsScratch& scratch) noexcept
        : in_(in),
          count_(in.size() / sizeof(T)),
          groups_((count_ + group - 1) / group),
          // Signed numbers are moved so that the markers of i16 (-32768, 32767) are at the top, as those of u16 are.
          bias_(is_signed ? static_cast<T>(std::numeric_limits<std::make_signed_t<T>>::max()) : T{0}),
          scratch_(scratch) {}

    std::size_t pack(std::byte* out) noexcept {
        const Choice best = choose();
        if (shown_ != best.reference) show(static_cast<T>(best.reference));
        const auto reference = static_cast<T>(best.reference - bias_);
        out[0] = static_cast<std::byte>(best.width);
        out[1] = std::byte{0};
        const auto exceptions = static_cast<std::uint16_t>(best.exceptions);
        std::memcpy(out + 2, &exceptions, 2);
        std::memcpy(out + block_header_bytes, &reference, sizeof reference);
        std::byte* at = out + block_header_bytes + sizeof reference;
        const std::size_t row_bytes = (count_ + 7) / 8;
        for (unsigned row = 0; row < best.width; ++row, at += row_bytes)
            std::memcpy(at, scratch_.rows.data() + row * groups_ * 8, row_bytes);
        if (best.exceptions > 0) at = put_exceptions(best, at);
        return static_cast<std::size_t>(at - out);
    }

private:
    /// Where most of the block begins: the least element; or, where a few are far below the others, what all but an
    /// eighth of the groups are above; or just below zero in the circle of numbers, where the markers at its top are
    /// near.
    Choice choose() noexcept {
        std::array<T, block_bytes / sizeof(T) / group> minima{};
        find_minima(minima.data());
        const auto end = minima.begin() + static_cast<std::ptrdiff_t>(groups_);
        const T least = *std::min_element(minima.begin(), end);
        Choice best = judge(least);
        if (best.cost == 0) return best;
        const auto middle = minima.begin() + static_cast<std::ptrdiff_t>(groups_ / 8);
        std::nth_element(minima.begin(), middle, end);
        const std::uint64_t above = static_cast<T>(*middle - least);
        if (above != 0 && (best.width < 3 || above >= std::uint64_t{1} << (best.width - 3))) {
            const Choice other = judge(*middle);
            if (other.cost < best.cost) best = other;
        }
        constexpr std::size_t each = exception_bytes<T>;
        const bool has_far = best.exceptions * each > groups_ * 8 || best.width >= 8 * sizeof(T) - 1;
        if (has_far) {
            const Choice other = judge(static_cast<T>(std::numeric_limits<T>::max() - 1));
            if (other.cost < best.cost) best = other;
        }
        return best;
    }

    void find_minima(T* minima) const noexcept {
        for (std::size_t g = 0; g < groups_; ++g) {
            const std::size_t count = std::min(group, count_ - g * group);
            std::array<T, group> values{};
            std::memcpy(values.data(), in_.data() + g * group * sizeof(T), count * sizeof(T));
            T least = std::numeric_limits<T>::max();
            if (count == group) {
                for (std::size_t i = 0; i < group; ++i) least = std::min(least, static_cast<T>(values[i] + bias_));
            } else {
                for (std::size_t i = 0; i < count; ++i) least = std::min(least, static_cast<T>(values[i] + bias_));
            }
            minima[g] = least;
        }
    }

    /// Leaves in scratch_.rows what a reference gives: rows of groups_ * 8 bytes, zeros after the last element.
    void show(T reference) noexcept {
        T* const values = reinterpret_cast<T*>(scratch_.values.data());
        std::memcpy(values, in_.data(), in_.size());
        const auto less = static_cast<T>(reference - bias_);
        for (std::size_t i = 0; i < count_; ++i) values[i] = static_cast<T>(values[i] - less);
        std::fill(values + count_, values + groups_ * group, T{0});
        transpose_bits({scratch_.values.data(), groups_ * group * sizeof(T)}, sizeof(T), scratch_.rows);
        shown_ = reference;
    }

    /// One word of row `row`: elements 64 * g and on.
    [[nodiscard]] std::uint64_t word(unsigned row, std::size_t g) const noexcept {
        std::uint64_t bits = 0;
        std::memcpy(&bits, scratch_.rows.data() + (row * groups_ + g) * 8, sizeof bits);
        return bits;
    }

    /// The cheapest width for a reference. Going down from the top, elements with a bit in a row above are exceptions.
    Choice judge(T reference) noexcept {
        show(reference);
        std::array<std::uint64_t, block_bytes / sizeof(T) / group> wide{};
        const std::size_t row_bytes = (count_ + 7) / 8;
        Choice best{reference, 8 * sizeof(T), 0, 8 * sizeof(T) * row_bytes};
        for (unsigned width = 8 * sizeof(T); width-- > 0;) {
            std::size_t exceptions = 0;
            for (std::size_t g = 0; g < groups_; ++g) {
                wide[g] |= word(width, g);
                exceptions += static_cast<std::size_t>(std::popcount(wide[g]));
            }
            const std::size_t apart = exceptions * exception_bytes<T>;
            if (apart >= best.cost) break;
            const std::size_t cost = width * row_bytes + apart;
            if (cost < best.cost) best = {reference, width, exceptions, cost};
        }
        return best;
    }

    std::byte* put_exceptions(const Choice& choice, std::byte* places) noexcept {
        std::byte* values = places + 2 * choice.exceptions;
        for (std::size_t g = 0; g < groups_; ++g) {
            std::uint64_t wide = 0;
            for (unsigned row = choice.width; row < 8 * sizeof(T); ++row) wide |= word(row, g);
            for (; wide != 0; wide &= wide - 1) {
                const std::size_t i = g * group + static_cast<std::size_t>(std::countr_zero(wide));
                const auto place = static_cast<std::uint16_t>(i);
                std::memcpy(places, &place, sizeof place);
                std::memcpy(values, in_.data() + i * sizeof(T), sizeof(T));
                places += sizeof place;
                values += sizeof(T);
            }
        }
        return values;
    }

    std::span<const std::byte> in_;
    std::size_t count_;
    std::size_t groups_;
    T bias_;
    BitsScratch& scratch_;
    std::uint64_t shown_ = 0;  ///< the reference that scratch_.rows belong to
};

template <class T>
std::size_t pack_all(std::span<const std::byte> raw, bool is_signed, BitsScratch& scratch, std::byte* out) noexcept {
    std::byte* at = out;
    const std::size_t whole = raw.size() / sizeof(T) * sizeof(T);
    for (std::size_t done = 0; done < whole; done += block_bytes)
        at += Block<T>(raw.subspan(done, std::min(block_bytes, whole - done)), is_signed, scratch).pack(at);
    std::copy(raw.begin() + static_cast<std::ptrdiff_t>(whole), raw.end(), at);
    return static_cast<std::size_t>(at - out) + raw.size() - whole;
}

/// The next `bytes` of `in`, which lose them; empty if there are not so many.
std::span<const std::byte> take(std::span<const std::byte>& in, std::size_t bytes) {
    if (in.size() < bytes) return {};
    const std::span<const std::byte> taken = in.first(bytes);
    in = in.subspan(bytes);
    return taken;
}

template <class T>
std::string_view unpack_block(std::span<const std::byte>& in, std::size_t count, std::vector<T>& values,
                              std::vector<std::byte>& rows) {
    const std::span<const std::byte> header = take(in, block_header_bytes + sizeof(T));
    if (header.empty()) return "it ends inside a block's header";
    const auto width = std::to_integer<std::size_t>(header[0]);
    std::uint16_t exceptions = 0;
    T reference = 0;
    std::memcpy(&exceptions, header.data() + 2, sizeof exceptions);
    std::memcpy(&reference, header.data() + block_header_bytes, sizeof reference);
    if (width > 8 * sizeof(T) || header[1] != std::byte{0} || exceptions > count)
        return "a block's header is not valid";

    const std::size_t row_bytes = (count + 7) / 8;
    if (in.size() < width * row_bytes + exceptions * exception_bytes<T>) return "it ends inside a block";
    rows.assign(8 * sizeof(T) * row_bytes, std::byte{0});
    values.resize(row_bytes * 8);
    if (width > 0) std::memcpy(rows.data(), take(in, width * row_bytes).data(), width * row_bytes);
    untranspose_bits(rows, sizeof(T), std::as_writable_bytes(std::span(values)));
    for (T& value : values) value = static_cast<T>(value + reference);

    const std::span<const std::byte> places = take(in, exceptions * std::size_t{2});
    const std::span<const std::byte> apart = take(in, exceptions * sizeof(T));
    std::size_t next = 0;
    for (std::size_t i = 0; i < exceptions; ++i) {
        std::uint16_t place = 0;
        std::memcpy(&place, places.data() + 2 * i, sizeof place);
        if (place < next || place >= count) return "an exception's place is not valid";
        next = place + std::size_t{1};
        std::memcpy(&values[place], apart.data() + i * sizeof(T), sizeof(T));
    }
    return {};
}

template <class T>
std::string_view unpack_all(std::span<const std::byte> in, std::size_t per_block, std::span<std::byte> out) {
    std::vector<T> values;
    std::vector<std::byte> rows;
    while (out.size() >= sizeof(T)) {
        const std::size_t count = std::min(per_block, out.size() / sizeof(T));
        if (const std::string_view wrong = unpack_block(in, count, values, rows); !wrong.empty()) return wrong;
        std::memcpy(out.data(), values.data(), count * sizeof(T));
        out = out.subspan(count * sizeof(T));
    }
    if (in.size() != out.size()) return "its length does not fit";
    std::copy(in.begin(), in.end(), out.begin());
    return {};
}

}  // namespace

std::size_t bits_bound(std::size_t raw_bytes, std::size_t element_bytes) noexcept {
    const std::size_t blocks = raw_bytes / block_bytes + 1;
    // No choice costs more than all rows, and a row is rounded up to whole bytes.
    return header_bytes + raw_bytes + blocks * (block_header_bytes + element_bytes) + 8 * element_bytes;
}

std::size_t pack_bits(std::span<const std::byte> raw, std::size_t element_bytes, bool is_signed, BitsScratch& scratch,
                      std::span<std::byte> out) noexcept {
    std::fill_n(out.begin(), header_bytes, std::byte{0});
    out[0] = static_cast<std::byte>(element_bytes);
    const auto per_block = static_cast<std::uint32_t>(block_elements(element_bytes));
    std::memcpy(out.data() + 4, &per_block, sizeof per_block);
    const std::uint64_t raw_bytes = raw.size();
    std::memcpy(out.data() + 8, &raw_bytes, sizeof raw_bytes);
    std::byte* const blocks = out.data() + header_bytes;
    switch (element_bytes) {
        case 1:
            return header_bytes + pack_all<std::uint8_t>(raw, is_signed, scratch, blocks);
        case 2:
            return header_bytes + pack_all<std::uint16_t>(raw, is_signed, scratch, blocks);
        case 4:
            return header_bytes + pack_all<std::uint32_t>(raw, is_signed, scratch, blocks);
        default:
            return header_bytes + pack_all<std::uint64_t>(raw, is_signed, scratch, blocks);
    }
}

std::string_view unpack_bits(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out) {
    if (in.size() < header_bytes) return "it ends inside its header";
    std::uint32_t per_block = 0;
    std::memcpy(&per_block, in.data() + 4, sizeof per_block);
    std::uint64_t raw_bytes = 0;
    std::memcpy(&raw_bytes, in.data() + 8, sizeof raw_bytes);
    const bool zeros = in[1] == std::byte{0} && in[2] == std::byte{0} && in[3] == std::byte{0};
    if (std::to_integer<std::size_t>(in[0]) != element_bytes || !zeros) return "its header is not valid";
    if (raw_bytes != out.size()) return "its header has another decoded size";
    if (per_block == 0 || per_block % 8 != 0 || per_block > elements_max) return "its block size is not valid";
    in = in.subspan(header_bytes);
    switch (element_bytes) {
        case 1:
            return unpack_all<std::uint8_t>(in, per_block, out);
        case 2:
            return unpack_all<std::uint16_t>(in, per_block, out);
        case 4:
            return unpack_all<std::uint32_t>(in, per_block, out);
        default:
            return unpack_all<std::uint64_t>(in, per_block, out);
    }
}

}  // namespace weir::reduce::pack

// Compiled once for each instruction set that Highway knows, by including itself (foreach_target.h).
#include "reduce/pack/bit_transpose.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/pack/bit_transpose.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace weir::reduce::pack::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<std::uint8_t>;
using Signed = hn::RebindToSigned<Bytes>;
using Pairs = hn::Repartition<std::uint16_t, Bytes>;
constexpr std::size_t lanes_max = hn::MaxLanes(Bytes());
/// Highway reads and writes up to eight bytes of a mask, however short it is.
constexpr std::size_t mask_bytes = lanes_max / 8 > 8 ? lanes_max / 8 : 8;

/// Bit k of each byte to where row k stands, the rows `stride` bytes apart.
HWY_INLINE void store_bits(hn::Vec<Bytes> bytes, std::uint8_t* row, std::size_t stride) {
    const Bytes d;
    const Signed s;
    for (std::size_t k = 8; k-- > 0;) {
        alignas(8) std::uint8_t mask[mask_bytes];
        hn::StoreMaskBits(s, hn::Lt(hn::BitCast(s, bytes), hn::Zero(s)), mask);
        std::memcpy(row + k * stride, mask, hn::Lanes(d) / 8);
        bytes = hn::Add(bytes, bytes);
    }
}

HWY_INLINE hn::Vec<Bytes> load_bits(const std::uint8_t* row, std::size_t stride) {
    const Bytes d;
    auto bytes = hn::Zero(d);
    for (std::size_t k = 0; k < 8; ++k) {
        alignas(8) std::uint8_t mask[mask_bytes] = {};
        std::memcpy(mask, row + k * stride, hn::Lanes(d) / 8);
        const auto bit = hn::Set(d, static_cast<std::uint8_t>(1U << k));
        bytes = hn::Or(bytes, hn::IfThenElseZero(hn::LoadMaskBits(d, mask), bit));
    }
    return bytes;
}

/// One vector for each byte of an element: as many elements as a vector has bytes. `stride` is that of rows.
template <std::size_t ElementBytes>
HWY_INLINE void store_elements(const std::uint8_t* in, std::uint8_t* row, std::size_t stride) {
    const Bytes d;
    if constexpr (ElementBytes == 1) {
        store_bits(hn::LoadU(d, in), row, stride);
    } else if constexpr (ElementBytes == 2) {
        auto low = hn::Zero(d);
        auto high = hn::Zero(d);
        hn::LoadInterleaved2(d, in, low, high);
        store_bits(low, row, stride);
        store_bits(high, row + 8 * stride, stride);
    } else if constexpr (ElementBytes == 4) {
        auto first = hn::Zero(d);
        auto second = hn::Zero(d);
        auto third = hn::Zero(d);
        auto fourth = hn::Zero(d);
        hn::LoadInterleaved4(d, in, first, second, third, fourth);
        store_bits(first, row, stride);
        store_bits(second, row + 8 * stride, stride);
        store_bits(third, row + 16 * stride, stride);
        store_bits(fourth, row + 24 * stride, stride);
    } else {
        // Pairs of bytes first, then the bytes of the pairs.
        const Pairs p;
        const std::size_t lanes = hn::Lanes(d);
        alignas(64) std::uint16_t pairs[4][lanes_max];
        for (std::size_t half = 0; half < 2; ++half) {
            auto first = hn::Zero(p);
            auto second = hn::Zero(p);
            auto third = hn::Zero(p);
            auto fourth = hn::Zero(p);
            alignas(64) std::uint16_t words[2 * lanes_max];
            std::memcpy(words, in + half * lanes * 4, lanes * 4);
            hn::LoadInterleaved4(p, words, first, second, third, fourth);
            hn::StoreU(first, p, pairs[0] + half * lanes / 2);
            hn::StoreU(second, p, pairs[1] + half * lanes / 2);
            hn::StoreU(third, p, pairs[2] + half * lanes / 2);
            hn::StoreU(fourth, p, pairs[3] + half * lanes / 2);
        }
        for (std::size_t pair = 0; pair < 4; ++pair)
            store_elements<2>(reinterpret_cast<const std::uint8_t*>(pairs[pair]), row + pair * 16 * stride, stride);
    }
}

template <std::size_t ElementBytes>
HWY_INLINE void load_elements(const std::uint8_t* row, std::size_t stride, std::uint8_t* out) {
    const Bytes d;
    if constexpr (ElementBytes == 1) {
        hn::StoreU(load_bits(row, stride), d, out);
    } else if constexpr (ElementBytes == 2) {
        hn::StoreInterleaved2(load_bits(row, stride), load_bits(row + 8 * stride, stride), d, out);
    } else if constexpr (ElementBytes == 4) {
        hn::StoreInterleaved4(load_bits(row, stride), load_bits(row + 8 * stride, stride),
                              load_bits(row + 16 * stride, stride), load_bits(row + 24 * stride, stride), d, out);
    } else {
        const Pairs p;
        const std::size_t lanes = hn::Lanes(d);
        alignas(64) std::uint16_t pairs[4][lanes_max];
        for (std::size_t pair = 0; pair < 4; ++pair)
            load_elements<2>(row + pair * 16 * stride, stride, reinterpret_cast<std::uint8_t*>(pairs[pair]));
        for (std::size_t half = 0; half < 2; ++half) {
            const std::size_t at = half * lanes / 2;
            alignas(64) std::uint16_t words[2 * lanes_max];
            hn::StoreInterleaved4(hn::LoadU(p, pairs[0] + at), hn::LoadU(p, pairs[1] + at), hn::LoadU(p, pairs[2] + at),
                                  hn::LoadU(p, pairs[3] + at), p, words);
            std::memcpy(out + half * lanes * 4, words, lanes * 4);
        }
    }
}

/// How many of `count` elements fill whole vectors; none where vectors are shorter than a byte of a row.
HWY_INLINE std::size_t whole_vectors(std::size_t count) {
    const std::size_t lanes = hn::Lanes(Bytes());
    return lanes < 8 ? 0 : count / lanes * lanes;
}

template <std::size_t ElementBytes>
void transpose(std::span<const std::byte> in, std::span<std::byte> out) {
    const std::size_t count = in.size() / ElementBytes;
    const std::size_t whole = whole_vectors(count);
    const std::size_t lanes = hn::Lanes(Bytes());
    const auto* from = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* to = reinterpret_cast<std::uint8_t*>(out.data());
    for (std::size_t i = 0; i < whole; i += lanes)
        store_elements<ElementBytes>(from + i * ElementBytes, to + i / 8, count / 8);
    reference::transpose_bits(in, ElementBytes, out, whole);
}

template <std::size_t ElementBytes>
void untranspose(std::span<const std::byte> in, std::span<std::byte> out) {
    const std::size_t count = in.size() / ElementBytes;
    const std::size_t whole = whole_vectors(count);
    const std::size_t lanes = hn::Lanes(Bytes());
    const auto* from = reinterpret_cast<const std::uint8_t*>(in.data());
    auto* to = reinterpret_cast<std::uint8_t*>(out.data());
    for (std::size_t i = 0; i < whole; i += lanes)
        load_elements<ElementBytes>(from + i / 8, count / 8, to + i * ElementBytes);
    reference::untranspose_bits(in, ElementBytes, out, whole);
}

void Transpose(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out) {
    switch (element_bytes) {
        case 1:
            return transpose<1>(in, out);
        case 2:
            return transpose<2>(in, out);
        case 4:
            return transpose<4>(in, out);
        default:
            return transpose<8>(in, out);
    }
}

void Untranspose(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out) {
    switch (element_bytes) {
        case 1:
            return untranspose<1>(in, out);
        case 2:
            return untranspose<2>(in, out);
        case 4:
            return untranspose<4>(in, out);
        default:
            return untranspose<8>(in, out);
    }
}

}  // namespace weir::reduce::pack::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::reduce::pack {

HWY_EXPORT(Transpose);
HWY_EXPORT(Untranspose);

void transpose_bits(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out) noexcept {
    HWY_DYNAMIC_DISPATCH(Transpose)(in, element_bytes, out);
}

void untranspose_bits(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out) noexcept {
    HWY_DYNAMIC_DISPATCH(Untranspose)(in, element_bytes, out);
}

namespace reference {

void transpose_bits(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out,
                    std::size_t first) noexcept {
    const std::size_t count = in.size() / element_bytes;
    for (std::size_t group = first / 8; group < count / 8; ++group) {
        for (std::size_t row = 0; row < 8 * element_bytes; ++row) {
            unsigned bits = 0;
            for (std::size_t i = 0; i < 8; ++i) {
                const auto byte = std::to_integer<unsigned>(in[(group * 8 + i) * element_bytes + row / 8]);
                bits |= (byte >> row % 8 & 1U) << i;
            }
            out[row * (count / 8) + group] = static_cast<std::byte>(bits);
        }
    }
}

void untranspose_bits(std::span<const std::byte> in, std::size_t element_bytes, std::span<std::byte> out,
                      std::size_t first) noexcept {
    const std::size_t count = in.size() / element_bytes;
    for (std::size_t i = first; i < count; ++i) {
        for (std::size_t byte = 0; byte < element_bytes; ++byte) {
            unsigned value = 0;
            for (std::size_t k = 0; k < 8; ++k) {
                const auto bits = std::to_integer<unsigned>(in[(byte * 8 + k) * (count / 8) + i / 8]);
                value |= (bits >> i % 8 & 1U) << k;
            }
            out[i * element_bytes + byte] = static_cast<std::byte>(value);
        }
    }
}

}  // namespace reference
}  // namespace weir::reduce::pack
#endif

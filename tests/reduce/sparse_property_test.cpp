// Sparse pieces of any energies, thresholds and shapes, and bytes that are nearly a piece.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <limits>

#include "sparse_cases.hpp"

namespace weir::reduce {
namespace {

struct Case {
    PixelType type = PixelType::f32;
    std::uint16_t columns = 1;
    std::vector<float> energy;
    std::vector<float> thresholds;
};

/// Any bits now and then, mostly what pixels have; NaN always the one of convert().
float energy_from(std::uint32_t bits) {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    switch (bits % 8) {
        case 0:
            return nan;
        case 1:
            return std::numeric_limits<float>::infinity();
        case 2: {
            const auto any = std::bit_cast<float>(bits);
            return std::isnan(any) ? nan : any;
        }
        default:
            return static_cast<float>(static_cast<std::int32_t>(bits >> 3U) % 1000) / 16;
    }
}

Case make_case(std::uint32_t shape, const std::vector<std::uint32_t>& seeds) {
    Case made;
    made.type = static_cast<PixelType>(shape % 4);
    made.columns = static_cast<std::uint16_t>(1 + shape / 4 % 150);
    std::size_t used = 0;
    const auto next = [&] { return seeds.empty() ? shape : seeds[used++ % seeds.size()] * 2654435761U + shape; };
    const std::size_t pixels = std::size_t{1 + shape / 1024 % 9} * made.columns;
    for (std::size_t i = 0; i < pixels; ++i) {
        made.energy.push_back(energy_from(next() + static_cast<std::uint32_t>(i)));
        made.thresholds.push_back(static_cast<float>(next() % 60));
    }
    return made;
}

TEST(SparseProperty, WhatIsKeptComesBack) {
    EXPECT_TRUE(rc::check([](std::uint32_t shape, const std::vector<std::uint32_t>& seeds) {
        const Case made = make_case(shape, seeds);
        SparsePiece piece(made.type, made.columns, static_cast<std::uint32_t>(made.energy.size() / made.columns));
        piece.append(made.energy, made.thresholds);
        Bytes sparse(piece.sparse_bytes());
        piece.write_sparse(sparse.data());
        RC_ASSERT(sparse == csr_piece(made.type, made.columns, made.energy, made.thresholds));
        const Bytes expected = dense_pixels(made.type, made.energy, made.thresholds);
        Bytes dense(piece.dense_bytes(), std::byte{0x55});
        RC_ASSERT(expand_csr(sparse, dense).empty());
        RC_ASSERT(dense == expected);
        piece.write_dense(dense.data());
        RC_ASSERT(dense == expected);
    }));
}

TEST(SparseProperty, AHeaderThatIsDamagedIsRefused) {
    EXPECT_TRUE(rc::check(
        [](std::uint32_t shape, const std::vector<std::uint32_t>& seeds, std::uint32_t place, std::uint8_t change) {
            const Case made = make_case(shape, seeds);
            Bytes piece = csr_piece(made.type, made.columns, made.energy, made.thresholds);
            Bytes dense(made.energy.size() * bytes_of(made.type));
            RC_ASSERT(expand_csr(piece, dense).empty());
            place %= sizeof(CsrHeader);
            RC_PRE(change != 0 && place != 4);  // another type of the same size can be right
            piece[place] ^= static_cast<std::byte>(change);
            RC_ASSERT(!expand_csr(piece, dense).empty());
        }));
}

}  // namespace
}  // namespace weir::reduce

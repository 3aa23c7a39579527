// Packing: what comes back is what went in, for all that can come in; the bytes are those of the published layouts; and
// no memory is taken on the way. What other programs make of the bytes: pack_filters_test.py.
#include <gtest/gtest.h>
#include <lz4.h>
#include <rapidcheck.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/hot_thread.hpp"
#include "every_target.hpp"
#include "reduce/pack/bit_transpose.hpp"
#include "reduce/pack/packer.hpp"
#include "reduce/pack/unpacker.hpp"

namespace weir::reduce::pack {
namespace {

using Raw = std::vector<std::byte>;

constexpr std::size_t piece_bytes = std::size_t{256} << 10U;
constexpr std::array<std::size_t, 4> element_sizes{1, 2, 4, 8};
constexpr std::array all_codecs{Codec::zstd, Codec::lz4, Codec::bitshuffle_lz4, Codec::bitshuffle_zstd, Codec::bits};

/// Elements around a level, one in a hundred far away: what detectors give.
Raw noise(std::size_t bytes, std::size_t element_bytes, unsigned seed, unsigned spread = 30) {
    std::mt19937 random(seed);
    Raw raw(bytes);
    for (std::size_t at = 0; at + element_bytes <= bytes; at += element_bytes) {
        const std::uint64_t value =
            (element_bytes == 1 ? 100 : 2700) + random() % spread + (random() % 100 == 0 ? 77 : 0);
        std::memcpy(raw.data() + at, &value, element_bytes);
    }
    for (std::size_t at = bytes / element_bytes * element_bytes; at < bytes; ++at) raw[at] = static_cast<std::byte>(at);
    return raw;
}

Raw random_bytes(std::size_t bytes, unsigned seed) {
    std::mt19937 random(seed);
    Raw raw(bytes);
    for (std::byte& byte : raw) byte = static_cast<std::byte>(random());
    return raw;
}

template <class T>
Raw as_bytes(const std::vector<T>& values) {
    Raw raw(values.size() * sizeof(T));
    std::memcpy(raw.data(), values.data(), raw.size());
    return raw;
}

Raw packed(Packer& packer, const Raw& raw) {
    Raw out(packer.bound(raw.size()));
    out.resize(packer.pack(raw, out));
    return out;
}

void expect_back(const Raw& stored, Codec codec, std::size_t element_bytes, const Raw& raw) {
    Unpacker unpacker;
    EXPECT_EQ(decoded_bytes(codec, stored), raw.size());
    EXPECT_LE(raw.size(), decoded_bytes_max(codec, stored.size()).value_or(raw.size()));
    Raw out(raw.size());
    const std::string_view wrong = unpacker.unpack(codec, element_bytes, stored, out);
    EXPECT_TRUE(wrong.empty()) << wrong;
    EXPECT_EQ(out, raw);
}

std::string described(const PackOptions& options, std::size_t bytes) {
    return std::string(name(options.codec)) + " level " + std::to_string(options.level) + ", elements of " +
           std::to_string(options.element_bytes) + ", " + std::to_string(bytes) + " bytes";
}

TEST(BitTranspose, EveryInstructionSetGivesTheSameBits) {
    for (const std::size_t element : element_sizes) {
        for (const std::size_t count : {8U, 16U, 40U, 64U, 72U, 1024U, 1016U}) {
            const Raw in = random_bytes(count * element, static_cast<unsigned>(count));
            Raw expected(in.size());
            reference::transpose_bits(in, element, expected);
            with_every_target([&] {
                Raw out(in.size());
                Raw back(in.size());
                transpose_bits(in, element, out);
                EXPECT_EQ(out, expected) << count << " elements of " << element;
                untranspose_bits(out, element, back);
                EXPECT_EQ(back, in) << count << " elements of " << element;
            });
        }
    }
}

TEST(BitTranspose, IsTheOneThatIsDocumented) {
    // Eight 16-bit numbers: the lowest bits of 1 and 3 (elements 0 and 7), bit 1 of 3, bit 9 of 0x200 (element 2).
    const Raw in = as_bytes<std::uint16_t>({1, 0, 0x200, 0, 0, 0, 0, 3});
    Raw out(16);
    reference::transpose_bits(in, 2, out);
    Raw expected(16);
    expected[0] = std::byte{0x81};
    expected[1] = std::byte{0x80};
    expected[9] = std::byte{0x04};
    EXPECT_EQ(out, expected);
}

TEST(Pack, GivesBackWhatWasPutIn) {
    for (const Codec codec : all_codecs) {
        for (const std::size_t element : element_sizes) {
            Packer packer({codec, 1, element, false}, piece_bytes);
            for (const std::size_t bytes :
                 {std::size_t{640}, std::size_t{8192}, std::size_t{24579}, std::size_t{100000}, piece_bytes}) {
                SCOPED_TRACE(described(packer.options(), bytes));
                const Raw raw = noise(bytes, element, static_cast<unsigned>(bytes));
                const Raw stored = packed(packer, raw);
                if (codec == Codec::lz4 && element < 4) continue;  // LZ4 alone finds nothing in noise
                ASSERT_FALSE(stored.empty());
                EXPECT_LT(stored.size(), raw.size());
                expect_back(stored, codec, element, raw);
            }
        }
    }
}

TEST(Pack, WorksAtEveryLevel) {
    const Raw raw = noise(40000, 2, 7, 3);
    for (const Codec codec : all_codecs) {
        const auto range = levels(codec);
        if (!range.has_value()) continue;
        for (int level = range->lowest; level <= range->highest; level += level < -7 ? 46 : 1) {
            if (level == 0 && codec != Codec::lz4 && codec != Codec::bitshuffle_lz4) continue;
            Packer packer({codec, level, 2, false}, piece_bytes);
            // Each of these lengths has parameters of its own in zstd.
            for (const std::size_t bytes : {std::size_t{3000}, std::size_t{16384}, std::size_t{40000}}) {
                SCOPED_TRACE(described(packer.options(), bytes));
                const Raw part(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(bytes));
                const Raw stored = packed(packer, part);
                ASSERT_FALSE(stored.empty());
                expect_back(stored, codec, 2, part);
            }
        }
    }
}

TEST(Pack, NothingGetsShorterThanIsSaidToBePossible) {
    const Raw zeros(24U << 20U);
    for (const Codec codec : {Codec::zstd, Codec::lz4, Codec::bitshuffle_lz4, Codec::bitshuffle_zstd}) {
        Packer packer({codec, codec == Codec::zstd || codec == Codec::bitshuffle_zstd ? 19 : 1, 2, false},
                      zeros.size());
        expect_back(packed(packer, zeros), codec, 2, zeros);
    }
}

TEST(Pack, SaysWhenItDoesNotGetShorter) {
    for (const Codec codec : all_codecs) {
        Packer packer({codec, 1, 2, false}, piece_bytes);
        for (const std::size_t bytes : {std::size_t{1}, std::size_t{9}, std::size_t{100}, piece_bytes}) {
            SCOPED_TRACE(described(packer.options(), bytes));
            EXPECT_TRUE(packed(packer, random_bytes(bytes, 5)).empty());
        }
        // And the next piece is not the worse for it.
        const Raw raw = noise(20000, 2, 1, 2);
        expect_back(packed(packer, raw), codec, 2, raw);
    }
}

TEST(Pack, PiecesDoNotDependOnEachOther) {
    for (const Codec codec : all_codecs) {
        Packer packer({codec, 1, 2, false}, piece_bytes);
        const Raw raw = noise(50000, 2, 2, 3);
        const Raw first = packed(packer, raw);
        static_cast<void>(packed(packer, noise(90000, 2, 3, 3)));
        EXPECT_EQ(packed(packer, raw), first) << name(codec);
        Packer other({codec, 1, 2, false}, piece_bytes);
        EXPECT_EQ(packed(other, raw), first) << name(codec);
    }
}

// Under the malloc trap this aborts if anything allocates; the highest levels want the most memory.
TEST(Pack, DoesNotAllocate) {
    for (const Codec codec : all_codecs) {
        const auto range = levels(codec);
        for (const int level : {range ? range->lowest : 0, range ? range->usual : 0, range ? range->highest : 0}) {
            Packer packer({codec, level, 2, false}, piece_bytes);
            const Raw raw = noise(60000, 2, 4, 2);
            Raw out(packer.bound(raw.size()));
            core::hot_thread(true);
            const std::size_t stored = packer.pack(raw, out);
            core::hot_thread(false);
            out.resize(stored);
            expect_back(out, codec, 2, raw);
        }
    }
}

/// The published layout, read with the libraries and with the plain transposition only.
TEST(Pack, ChunksAreLaidOutAsPublished) {
    const Raw raw = noise(2 * 20003 + 1, 2, 9);
    for (const Codec codec : {Codec::bitshuffle_lz4, Codec::bitshuffle_zstd}) {
        Packer packer({codec, 1, 2, false}, piece_bytes);
        const Raw stored = packed(packer, raw);
        const auto big_endian = [&](std::size_t at, std::size_t bytes) {
            std::uint64_t value = 0;
            for (std::size_t i = 0; i < bytes; ++i)
                value = value << 8U | std::to_integer<std::uint64_t>(stored.at(at + i));
            return value;
        };
        EXPECT_EQ(big_endian(0, 8), raw.size());
        EXPECT_EQ(big_endian(8, 4), 8192U);
        Raw back;
        std::size_t at = 12;
        // Four whole blocks, one of a multiple of eight elements, and three elements and a byte as they are.
        for (const std::size_t bytes : {8192U, 8192U, 8192U, 8192U, 7232U}) {
            const std::size_t length = big_endian(at, 4);
            Raw block(bytes);
            const std::size_t got =
                codec == Codec::bitshuffle_zstd
                    ? ::ZSTD_decompress(block.data(), bytes, stored.data() + at + 4, length)
                    : static_cast<std::size_t>(::LZ4_decompress_safe(
                          reinterpret_cast<const char*>(stored.data() + at + 4), reinterpret_cast<char*>(block.data()),
                          static_cast<int>(length), static_cast<int>(bytes)));
            ASSERT_EQ(got, bytes) << name(codec);
            Raw plain(bytes);
            reference::untranspose_bits(block, 2, plain);
            back.insert(back.end(), plain.begin(), plain.end());
            at += 4 + length;
        }
        back.insert(back.end(), stored.begin() + static_cast<std::ptrdiff_t>(at), stored.end());
        EXPECT_EQ(back, raw) << name(codec);
    }
}

std::size_t bits_size(const Raw& raw, std::size_t element, bool is_signed) {
    Packer packer({Codec::bits, 0, element, is_signed}, piece_bytes);
    const Raw stored = packed(packer, raw);
    expect_back(stored, Codec::bits, element, raw);
    return stored.size();
}

TEST(PackBits, TakesAsManyBitsAsTheNumbersNeed) {
    std::mt19937 random(1);
    for (const unsigned width : {0U, 1U, 5U, 11U, 15U}) {
        std::vector<std::uint16_t> values(4096 * 3);
        for (auto& value : values) value = static_cast<std::uint16_t>(20000 + random() % (1U << width));
        // A header of 16 bytes; for each block 4, the reference, and its rows.
        EXPECT_EQ(bits_size(as_bytes(values), 2, false), 16U + 3 * (4 + 2 + width * 512)) << width;
    }
    std::vector<std::uint32_t> wide(2048 * 2);
    for (auto& value : wide) value = 4000000000U + random() % 256;
    EXPECT_EQ(bits_size(as_bytes(wide), 4, false), 16U + 2 * (4 + 4 + 8 * 256));
    std::vector<std::int16_t> around_zero(4096);
    for (auto& value : around_zero) value = static_cast<std::int16_t>(static_cast<int>(random() % 16) - 8);
    EXPECT_EQ(bits_size(as_bytes(around_zero), 2, true), 16U + 4 + 2 + 4 * 512);
}

TEST(PackBits, MarkersDoNotMakeAllNumbersWide) {
    std::mt19937 random(2);
    std::vector<std::uint16_t> photons(4096);
    std::vector<std::int16_t> energies(4096);
    std::size_t markers = 0;
    for (std::size_t i = 0; i < photons.size(); ++i) {
        photons[i] = static_cast<std::uint16_t>(random() % 4);
        energies[i] = static_cast<std::int16_t>(static_cast<int>(random() % 64) - 32);
        if (i % 100 != 0) continue;
        ++markers;
        photons[i] = i % 200 == 0 ? 65535 : 65534;
        energies[i] = i % 200 == 0 ? -32768 : 32767;
    }
    EXPECT_EQ(bits_size(as_bytes(photons), 2, false), 16U + 4 + 2 + 2 * 512 + markers * 4);
    EXPECT_EQ(bits_size(as_bytes(energies), 2, true), 16U + 4 + 2 + 6 * 512 + markers * 4);
    // Half of all pixels bad, as in a frame with half a module missing: the markers are next to zero in the circle.
    for (std::size_t i = 0; i < photons.size(); i += 2) photons[i] = 65535;
    EXPECT_EQ(bits_size(as_bytes(photons), 2, false), 16U + 4 + 2 + 3 * 512);
}

TEST(PackBits, AFewLowPixelsDoNotMakeAllNumbersWide) {
    std::mt19937 random(3);
    std::vector<std::uint16_t> values(4096);
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<std::uint16_t>(i % 1024 == 5 ? 17 : 2700 + random() % 64);
    EXPECT_EQ(bits_size(as_bytes(values), 2, false), 16U + 4 + 2 + 6 * 512 + 4 * 4);
}

TEST(PackProperties, WhateverComesInComesBack) {
    EXPECT_TRUE(rc::check("pack, then unpack", [] {
        const Codec codec = *rc::gen::elementOf(std::vector<Codec>(all_codecs.begin(), all_codecs.end()));
        const std::size_t element =
            *rc::gen::elementOf(std::vector<std::size_t>(element_sizes.begin(), element_sizes.end()));
        const bool is_signed = *rc::gen::arbitrary<bool>();
        const auto runs = *rc::gen::container<std::vector<std::pair<std::uint64_t, std::uint16_t>>>(
            rc::gen::pair(rc::gen::arbitrary<std::uint64_t>(), rc::gen::arbitrary<std::uint16_t>()));
        Raw raw;
        for (const auto& [value, length] : runs) {
            for (std::size_t i = 0; i < length % 700U && raw.size() + 8 < piece_bytes; ++i) {
                const std::uint64_t moved = value + i * (length % 3U);
                const auto* bytes = reinterpret_cast<const std::byte*>(&moved);
                raw.insert(raw.end(), bytes, bytes + (length % 7 == 0 ? 1 : element));
            }
        }
        Packer packer({codec, 1, element, is_signed}, piece_bytes);
        // Exactly as long as promised, so that AddressSanitizer sees a byte more.
        const auto room = std::make_unique<std::byte[]>(packer.bound(raw.size()));
        const std::size_t stored = packer.pack(raw, {room.get(), packer.bound(raw.size())});
        if (stored == 0) return;
        RC_ASSERT(stored < raw.size());
        Unpacker unpacker;
        Raw out(raw.size());
        RC_ASSERT(unpacker.unpack(codec, element, {room.get(), stored}, out).empty());
        RC_ASSERT(out == raw);
    }));
}

TEST(Unpack, DamageIsNoticedOrGivesOtherBytesButNeverHarm) {
    for (const Codec codec : all_codecs) {
        Packer packer({codec, 1, 2, false}, piece_bytes);
        const Raw raw = noise(20000, 2, 3, 2);
        const Raw stored = packed(packer, raw);
        ASSERT_FALSE(stored.empty());
        Unpacker unpacker;
        Raw out(raw.size());
        std::mt19937 random(4);
        for (int i = 0; i < 300; ++i) {
            const std::size_t length = i % 3 == 0 ? random() % stored.size() : stored.size();
            const auto damaged = std::make_unique<std::byte[]>(length);
            std::memcpy(damaged.get(), stored.data(), length);
            for (unsigned k = 0; k < 1 + random() % 3 && length > 0; ++k)
                damaged[random() % (i % 2 == 0 ? length : std::min<std::size_t>(length, 40))] =
                    static_cast<std::byte>(random());
            static_cast<void>(unpacker.unpack(codec, 2, {damaged.get(), length}, out));
        }
        for (const std::size_t length : {std::size_t{0}, std::size_t{5}, stored.size() / 2, stored.size() - 1})
            EXPECT_FALSE(unpacker.unpack(codec, 2, std::span(stored).first(length), out).empty())
                << name(codec) << ' ' << length;
        Raw longer = stored;
        longer.push_back(std::byte{0});
        EXPECT_FALSE(unpacker.unpack(codec, 2, longer, out).empty()) << name(codec);
        Raw smaller(raw.size() - 2);
        EXPECT_FALSE(unpacker.unpack(codec, 2, stored, smaller).empty()) << name(codec);
    }
}

TEST(Unpack, SaysWhatIsWrong) {
    Unpacker unpacker;
    Raw out(16);
    for (const Codec codec : all_codecs) EXPECT_EQ(decoded_bytes(codec, Raw(3)), std::nullopt) << name(codec);
    EXPECT_EQ(unpacker.unpack(static_cast<Codec>(9), 2, {}, out), "its codec is not known");
    EXPECT_EQ(unpacker.unpack(Codec::bits, 3, {}, out), "its element size is not valid");
    EXPECT_EQ(unpacker.unpack(Codec::bitshuffle_lz4, 2, Raw(12), out), "its header has another decoded size");
    EXPECT_EQ(unpacker.unpack(Codec::raw, 2, Raw(12), out), "its length does not fit");
}

/// 16 numbers of 16 bits in one block of the documented layout: all 7, but for two exceptions at these places.
Raw two_exceptions(std::uint16_t first, std::uint16_t second, std::uint8_t width = 0) {
    Raw stored;
    const auto put = [&stored](const auto value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        stored.insert(stored.end(), bytes.begin(), bytes.end());
    };
    put(std::uint32_t{2});   // bytes of an element
    put(std::uint32_t{16});  // elements of a block
    put(std::uint64_t{32});
    put(width);
    put(std::uint8_t{0});
    put(std::uint16_t{2});
    put(std::uint16_t{7});
    stored.resize(stored.size() + std::size_t{2} * width);
    for (const std::uint16_t value : {first, second, std::uint16_t{1000}, std::uint16_t{2000}}) put(value);
    return stored;
}

TEST(Unpack, ExceptionsHavePlacesOfTheirOwn) {
    std::vector<std::uint16_t> values(16, 7);
    values[3] = 1000;
    values[15] = 2000;
    expect_back(two_exceptions(3, 15), Codec::bits, 2, as_bytes(values));
    expect_back(two_exceptions(3, 15, 16), Codec::bits, 2, as_bytes(values));
    Unpacker unpacker;
    Raw out(32);
    for (const auto& [first, second] : {std::pair{3, 3}, {5, 3}, {3, 16}})
        EXPECT_EQ(
            unpacker.unpack(Codec::bits, 2,
                            two_exceptions(static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(second)), out),
            "an exception's place is not valid")
            << first << ' ' << second;
    EXPECT_EQ(unpacker.unpack(Codec::bits, 2, two_exceptions(3, 15, 17), out), "a block's header is not valid");
}

}  // namespace
}  // namespace weir::reduce::pack

// The chain of reducers for pixels on messages made here, against plain loops over whole modules.
#include "reduce/chain/pixel_chain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "core/hot_thread.hpp"
#include "pixels_reference.hpp"
#include "reduce/made_message.hpp"
#include "reduce/pixels/write_pixels.hpp"
#include "temporary_directory.hpp"

namespace weir::reduce {
namespace {

using assemble::Event;
using assemble::EventCause;
using assemble::Message;
using test::MadeMessage;

constexpr std::size_t packet_pixels = 4096;

/// Two modules of pedestals that are all different, with bad pixels, in `cells` storage cells.
class CalibrationFiles {
public:
    explicit CalibrationFiles(std::uint32_t modules, std::uint32_t cells = 1) {
        config.modules = modules;
        config.storage_cells = cells;
        config.gain = {41.0, -1.439, -0.1145};
        for (std::size_t gain = 0; gain < 3; ++gain) {
            std::vector<float> values(jungfrau_pixels * modules * cells);
            for (std::size_t i = 0; i < values.size(); ++i)
                values[i] = static_cast<float>((gain == 0 ? 2500 : 13000) + i % 1009 + 100 * (i / jungfrau_pixels));
            for (std::size_t i = 17; i < values.size(); i += 5003) values[i] = i % 2 == 0 ? 0.F : 16383.F;
            config.pedestal[gain] = {folder_ / ("g" + std::to_string(gain))};
            std::ofstream(config.pedestal[gain][0], std::ios::binary)
                .write(reinterpret_cast<const char*>(values.data()),
                       static_cast<std::streamsize>(values.size() * sizeof(float)));
        }
    }

    CalibrationConfig config;

private:
    const test::TemporaryDirectory folder_;
};

/// Raw words of all kinds: photons, the other gains, every special value.
std::vector<std::uint16_t> made_frame(std::size_t pixels, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<std::uint16_t> raw(pixels);
    for (std::uint16_t& word : raw) {
        word = static_cast<std::uint16_t>(2500 + random() % 3000);
        const auto kind = random() % 100;
        if (kind == 0) word = static_cast<std::uint16_t>(0x4000 | random() % 0x4000);
        if (kind == 1) word = static_cast<std::uint16_t>(0xc000 | random() % 0x4000);
        if (kind == 2)
            word = std::array<std::uint16_t, 4>{raw_error, raw_gain1_error, raw_saturated, 0x8001}[random() % 4];
    }
    return raw;
}

std::vector<std::byte> bytes_of(std::span<const std::uint16_t> words) {
    std::vector<std::byte> out(words.size_bytes());
    std::memcpy(out.data(), words.data(), out.size());
    return out;
}

/// All packets of `raw` but those in `lost`, in an order that is not that of the offsets.
void add_packets(MadeMessage& message, std::span<const std::uint16_t> raw, const std::vector<std::size_t>& lost = {}) {
    const std::size_t packets = raw.size() / packet_pixels;
    for (std::size_t k = 0; k < packets; ++k) {
        const std::size_t packet = k ^ 1U;
        if (std::ranges::find(lost, packet) != lost.end()) continue;
        message.add(static_cast<std::uint32_t>(packet * packet_pixels * 2),
                    bytes_of(raw.subspan(packet * packet_pixels, packet_pixels)));
    }
    message.declare(static_cast<std::uint32_t>(raw.size() * 2));
}

/// What the chain makes of an event, decoded, source after source.
std::vector<std::byte> run_chain(PixelChain& chain, const Event& event) {
    std::vector<std::byte> out;
    EXPECT_TRUE(chain.accepts(event));
    chain.begin_event(event);
    void* const memory = std::aligned_alloc(64, chain.bound(chain.piece_pixels()) / 64 * 64 + 64);
    const std::span room(static_cast<std::byte*>(memory), chain.bound(chain.piece_pixels()));
    for (std::uint32_t source = 0; source < event.messages.size(); ++source) {
        chain.begin_source(source, event.messages[source]);
        for (std::size_t left = chain.source(source).pixels(); left > 0;) {
            const std::size_t pixels = std::min(left, chain.piece_pixels());
            core::hot_thread(true);
            const StoredPiece stored = chain.next_piece(pixels, room);
            core::hot_thread(false);
            EXPECT_EQ(stored.encoding, encoding_raw);
            out.insert(out.end(), room.begin(), room.begin() + stored.bytes);
            left -= pixels;
        }
    }
    EXPECT_TRUE(chain.end_event().keep);
    std::free(memory);
    return out;
}

std::vector<std::byte> expected(const std::vector<std::uint16_t>& raw, const PixelCalibration& calibration,
                                PixelType type) {
    std::vector<float> energy(raw.size());
    reference::convert(raw, calibration, energy);
    std::vector<std::byte> out(raw.size() * reduce::bytes_of(type));
    write_pixels(type, energy, out.data());
    return out;
}

std::uint64_t counter(const PixelChain& chain, reduce::JungfrauCounter which) {
    return chain.counters().front().get(static_cast<std::size_t>(which));
}

class Chain : public testing::TestWithParam<PixelType> {};

TEST_P(Chain, ConvertsEveryModuleWithItsOwnCalibrationWhateverTheOrderOfPackets) {
    const CalibrationFiles files(2);
    PixelChain::Config config;
    config.calibration = std::make_shared<const Calibration>(files.config);
    config.output = GetParam();
    config.sources = {{.module = 0}, {.module = 1}};
    PixelChain chain(config, nullptr);
    const auto first = made_frame(jungfrau_pixels, 1);
    const auto second = made_frame(jungfrau_pixels, 2);
    MadeMessage a;
    MadeMessage b;
    add_packets(a, first);
    add_packets(b, second);
    std::array<Message*, 2> messages{const_cast<Message*>(&a.message()), const_cast<Message*>(&b.message())};
    Event event;
    event.messages = messages;
    std::vector<std::byte> all = expected(first, config.calibration->of(0, 0), GetParam());
    const std::vector<std::byte> rest = expected(second, config.calibration->of(1, 0), GetParam());
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_TRUE(run_chain(chain, event) == all);
    EXPECT_EQ(counter(chain, reduce::JungfrauCounter::events), 1U);
    EXPECT_EQ(counter(chain, reduce::JungfrauCounter::pixels), 2 * jungfrau_pixels);
    EXPECT_EQ(counter(chain, reduce::JungfrauCounter::missing_pixels), 0U);
    EXPECT_EQ(counter(chain, reduce::JungfrauCounter::bytes_out), all.size());
}

TEST_P(Chain, WhatDidNotComeIsBadAndCountedAsMissing) {
    const CalibrationFiles files(2);
    PixelChain::Config config;
    config.calibration = std::make_shared<const Calibration>(files.config);
    config.output = GetParam();
    config.sources = {{.module = 0}, {.module = 1}};
    PixelChain chain(config, nullptr);
    auto raw = made_frame(jungfrau_pixels, 3);
    MadeMessage a;
    add_packets(a, raw, {0, 5, 6, 127});
    std::array<Message*, 2> messages{const_cast<Message*>(&a.message()), nullptr};
    Event event;
    event.messages = messages;
    event.cause = EventCause::timeout;
    for (const std::size_t lost : {0U, 5U, 6U, 127U})
        std::fill_n(raw.begin() + static_cast<std::ptrdiff_t>(lost * packet_pixels), packet_pixels, raw_error);
    std::vector<std::byte> all = expected(raw, config.calibration->of(0, 0), GetParam());
    const std::vector<std::uint16_t> nothing(jungfrau_pixels, raw_error);
    const std::vector<std::byte> rest = expected(nothing, config.calibration->of(1, 0), GetParam());
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_TRUE(run_chain(chain, event) == all);
    EXPECT_EQ(counter(chain, reduce::JungfrauCounter::missing_pixels), 4 * packet_pixels + jungfrau_pixels);
    std::vector<float> energy(raw.size());
    reference::convert(raw, config.calibration->of(0, 0), energy);
    const auto bad = std::ranges::count_if(energy, [](float value) { return std::isnan(value); });
    const auto saturated = std::ranges::count_if(energy, [](float value) { return std::isinf(value); });
    EXPECT_EQ(counter(chain, reduce::JungfrauCounter::bad_pixels), static_cast<std::uint64_t>(bad) - 4 * packet_pixels);
    EXPECT_EQ(counter(chain, reduce::JungfrauCounter::saturated_pixels), static_cast<std::uint64_t>(saturated));
    EXPECT_GT(saturated, 0);
}

INSTANTIATE_TEST_SUITE_P(Outputs, Chain,
                         testing::Values(PixelType::f32, PixelType::f16, PixelType::i16, PixelType::u16),
                         [](const auto& info) {
                             return std::string(pixel_type_names[static_cast<std::size_t>(info.param)]);
                         });

TEST(PixelChain, EachStorageCellHasItsOwnCalibrationAndAnUnknownOneHasNone) {
    const CalibrationFiles files(1, 3);
    PixelChain::Config config;
    config.calibration = std::make_shared<const Calibration>(files.config);
    config.sources = {{.module = 0}};
    config.storage_cell = {.offset = 40, .bytes = 4, .mask = 0xf00, .shift = 8};
    PixelChain chain(config, nullptr);
    const auto raw = made_frame(jungfrau_pixels, 4);
    for (std::uint32_t cell = 0; cell < 5; ++cell) {
        MadeMessage a;
        add_packets(a, raw);
        auto* const message = const_cast<Message*>(&a.message());
        message->meta_bytes = 48;
        message->meta.fill(std::byte{0xff});
        const std::uint32_t word = 0xfffff0ff | cell << 8U;
        std::memcpy(message->meta.data() + 40, &word, sizeof word);
        if (cell == 4) message->meta_bytes = 40;  // too short to have one
        std::array<Message*, 1> messages{message};
        Event event;
        event.messages = messages;
        const std::vector<std::uint16_t> nothing(jungfrau_pixels, raw_error);
        EXPECT_TRUE(run_chain(chain, event) == expected(cell < 3 ? raw : nothing,
                                                        config.calibration->of(0, 0, cell < 3 ? cell : 0),
                                                        PixelType::f32))
            << "cell " << cell;
        EXPECT_EQ(counter(chain, reduce::JungfrauCounter::unknown_cell), cell < 3 ? 0U : cell - 2U);
    }
}

TEST(PixelChain, PartOfAModuleIsConvertedWithTheCalibrationOfItsRows) {
    const CalibrationFiles files(1);
    PixelChain::Config config;
    config.calibration = std::make_shared<const Calibration>(files.config);
    // 64 rows around the middle over two interfaces; which of them a source is, is in the header.
    config.sources = {{.module = 0, .first_row = 224, .rows = 32, .interface_in_header = true},
                      {.module = 0, .first_row = 224, .rows = 32, .interface_in_header = true}};
    PixelChain chain(config, nullptr);
    const auto upper = made_frame(32 * jungfrau_columns, 5);
    const auto lower = made_frame(32 * jungfrau_columns, 6);
    MadeMessage a;
    MadeMessage b;
    add_packets(a, lower);
    add_packets(b, upper);
    std::array<Message*, 2> messages{const_cast<Message*>(&a.message()), const_cast<Message*>(&b.message())};
    for (std::size_t i = 0; i < 2; ++i) {
        messages[i]->meta_bytes = 48;
        messages[i]->meta.fill(std::byte{0});
        messages[i]->meta[34] = static_cast<std::byte>(7 - i);  // the first source is the second interface
    }
    Event event;
    event.messages = messages;
    std::vector<std::byte> all = expected(lower, config.calibration->of(0, 256 * jungfrau_columns), PixelType::f32);
    const std::vector<std::byte> rest =
        expected(upper, config.calibration->of(0, 224 * jungfrau_columns), PixelType::f32);
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_TRUE(run_chain(chain, event) == all);
}

TEST(PixelChain, AMessageOfAnotherSizeIsRefusedAndCounted) {
    const CalibrationFiles files(1);
    PixelChain::Config config;
    config.calibration = std::make_shared<const Calibration>(files.config);
    config.sources = {{.module = 0}};
    PixelChain chain(config, nullptr);
    MadeMessage a;
    add_packets(a, made_frame(jungfrau_pixels / 2, 7));
    std::array<Message*, 1> messages{const_cast<Message*>(&a.message())};
    Event event;
    event.messages = messages;
    EXPECT_FALSE(chain.accepts(event));
    EXPECT_EQ(counter(chain, reduce::JungfrauCounter::refused_size), 1U);
}

// Pixels may be cut anywhere: packets that came in several buffers, or lie at odd addresses.
TEST(RawPixels, AreTheSameHoweverTheBytesAreCut) {
    const auto raw = made_frame(3 * packet_pixels, 8);
    const std::vector<std::byte> bytes = bytes_of(raw);
    std::mt19937 random(9);
    for (int round = 0; round < 40; ++round) {
        MadeMessage message;
        std::vector<bool> came(bytes.size(), false);
        for (std::size_t at = 0; at < bytes.size();) {
            const std::size_t size = std::min<std::size_t>(1 + random() % 3000, bytes.size() - at);
            const std::size_t skip = round % 2 == 0 ? 0 : random() % 3 == 0 ? 1 + random() % 4 : 0;
            // An odd address: the first byte belongs to nobody.
            if (skip < size) {
                const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
                message.add(static_cast<std::uint32_t>(at + skip),
                            {from + static_cast<std::ptrdiff_t>(skip), from + static_cast<std::ptrdiff_t>(size)});
                std::fill_n(came.begin() + static_cast<std::ptrdiff_t>(at + skip), size - skip, true);
            }
            at += size;
        }
        RawPixels pixels(4096);
        pixels.begin(message.message());
        std::uint64_t missing = 0;
        for (std::size_t at = 0; at < raw.size();) {
            const std::size_t count = std::min<std::size_t>(1 + random() % RawPixels::chunk_pixels, raw.size() - at);
            const auto got = pixels.next(count);
            ASSERT_EQ(got.size(), count);
            for (std::size_t i = 0; i < count; ++i) {
                const bool whole = came[2 * (at + i)] && came[2 * (at + i) + 1];
                missing += whole ? 0 : 1;
                ASSERT_EQ(got[i], whole ? raw[at + i] : raw_error) << "round " << round << ", pixel " << at + i;
            }
            at += count;
        }
        EXPECT_EQ(pixels.missing(), missing);
    }
}

// A frame that RDMA wrote: packets that lie beside each other in memory, as they do in the frame, in any order.
TEST(RawPixels, AreTakenWhereTheyLieThoughManyPacketsBroughtThem) {
    const auto raw = made_frame(4 * RawPixels::chunk_pixels, 3);
    const auto* const memory = reinterpret_cast<const std::byte*>(raw.data());
    const auto bytes = static_cast<std::uint32_t>(raw.size() * sizeof raw[0]);
    std::vector<std::uint32_t> places;
    for (std::uint32_t at = 0; at < bytes; at += 1000) places.push_back(at);
    std::mt19937 random(4);
    const std::uint32_t nothing = bytes + 1000;
    for (const std::uint32_t lost : {nothing, 5000U, 0U, bytes - 384}) {
        std::ranges::shuffle(places, random);
        std::vector<assemble::FragmentBlock> blocks(places.size() / assemble::FragmentBlock::capacity + 1);
        Message message;
        message.first_block = blocks.data();
        for (std::size_t i = 0; i < places.size(); ++i) {
            assemble::FragmentBlock& block = blocks[i / assemble::FragmentBlock::capacity];
            if (&block != &blocks.back()) block.next = &block + 1;
            if (places[i] / 1000 == lost / 1000) continue;
            block.refs[block.count++] = {nullptr, memory + places[i], places[i], std::min(1000U, bytes - places[i])};
        }
        RawPixels pixels(4096);
        pixels.begin(message);
        std::size_t direct = 0;
        for (std::size_t at = 0; at < raw.size(); at += RawPixels::chunk_pixels) {
            const auto got = pixels.next(RawPixels::chunk_pixels);
            direct += got.data() == raw.data() + at ? 1 : 0;
            for (std::size_t i = 0; i < got.size(); ++i)
                ASSERT_EQ(got[i], (at + i) * 2 / 1000 == lost / 1000 ? raw_error : raw[at + i]) << at + i;
        }
        EXPECT_EQ(direct, lost == nothing ? 4U : 3U);
        EXPECT_EQ(pixels.missing(), lost == nothing ? 0U : std::min(1000U, bytes - lost / 1000 * 1000) / 2);
    }
}

TEST(PieceStore, KeepsWhatDoesNotGetShorter) {
    PieceStore store(make_zstd_codec(1));
    std::vector<std::byte> flat(10000, std::byte{7});
    std::vector<std::byte> room(store.bound(piece_bytes));
    const StoredPiece packed = store.put(flat, room);
    EXPECT_EQ(packed.encoding, encoding_zstd);
    EXPECT_LT(packed.bytes, 100U);
    std::mt19937 random(3);
    std::ranges::generate(flat, [&] { return static_cast<std::byte>(random()); });
    const StoredPiece kept = store.put(flat, room);
    EXPECT_EQ(kept.encoding, encoding_raw);
    ASSERT_EQ(kept.bytes, flat.size());
    EXPECT_TRUE(std::equal(flat.begin(), flat.end(), room.begin()));
    const auto counters = store.counters();
    ASSERT_EQ(counters.size(), 1U);
    EXPECT_EQ(counters[0].kind, "zstd");
    EXPECT_EQ(counters[0].get(static_cast<std::size_t>(reduce::CodecCounter::pieces)), 2U);
    EXPECT_EQ(counters[0].get(static_cast<std::size_t>(reduce::CodecCounter::kept_raw)), 1U);
    EXPECT_EQ(counters[0].get(static_cast<std::size_t>(reduce::CodecCounter::bytes_in)), 20000U);
}

}  // namespace
}  // namespace weir::reduce

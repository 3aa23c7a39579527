#include "assemble/copy_store.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "assemble/message_table.hpp"

namespace weir::assemble {
namespace {

TEST(CopyStore, HoldsAsManyPayloadsAsItSays) {
    const std::vector<std::byte> payload(1024);
    for (const std::uint32_t cell_bytes : {128U, 256U, 4096U, 65536U})
        for (std::uint32_t bytes = 1; bytes <= payload.size(); ++bytes) {
            const CopyConfig config{.cells = 1, .cell_bytes = cell_bytes};
            CopyStore store(config);
            CopyCell* cells = nullptr;
            std::uint32_t fit = 0;
            while (store.put(cells, payload.data(), bytes) != nullptr) ++fit;
            ASSERT_EQ(fit, config.in_cell(bytes)) << bytes << " bytes in cells of " << cell_bytes;
        }
}

TEST(CopyStore, KeepsWhatIsInItAndTakesCellsAgain) {
    CopyStore store({.cells = 2, .cell_bytes = 128});
    const std::array<std::byte, 40> payload{std::byte{1}, std::byte{2}};
    for (int round = 0; round < 3; ++round) {
        CopyCell* cells = nullptr;
        const std::byte* const first = store.put(cells, payload.data(), payload.size());
        const std::byte* const second = store.put(cells, payload.data(), payload.size());
        ASSERT_NE(first, nullptr);
        ASSERT_NE(second, nullptr);
        EXPECT_NE(first, second);
        EXPECT_EQ(std::vector(first, first + payload.size()), std::vector(payload.begin(), payload.end()));
        EXPECT_EQ(store.put(cells, payload.data(), payload.size()), nullptr) << "there are two cells";
        store.give_back(cells);
    }
}

/// A table that copies, and a message in it.
class Copying : public testing::Test {
protected:
    void make(const MessageConfig& config) {
        table_ = std::make_unique<MessageTable>(config, packets_, messages_, [](void**, std::uint32_t) {});
        message_ = table_->open_unbound(0, 0);
        ASSERT_NE(message_, nullptr);
    }
    void TearDown() override {
        table_->abandon(*message_, wire::PacketCounter::unbound);
        EXPECT_EQ(table_->buffers_held(), 0U);
        EXPECT_EQ(table_->cells_held(), 0U);
    }
    [[nodiscard]] bool add(std::uint32_t bytes) {
        at_ += bytes;
        return table_->append(*message_, &buffer_, payload_.data(), at_ - bytes, bytes, 1);
    }

    std::array<std::byte, 128> payload_{};
    int buffer_ = 0;
    std::uint32_t at_ = 0;
    wire::PacketTally packets_;
    MessageTally messages_;
    std::unique_ptr<MessageTable> table_;
    Message* message_ = nullptr;
};

TEST_F(Copying, SomeAtOnceAndSomeOnceBuffersAreHeld) {
    MessageConfig config;
    config.buffers_max = 100;
    config.copies = {.at_once_bytes = 20, .bytes_max = 50, .above_held = 10, .cells = 10};
    make(config);
    EXPECT_TRUE(add(20));
    EXPECT_EQ(table_->buffers_held(), 0U);
    EXPECT_EQ(table_->cells_held(), 1U);
    for (std::uint32_t held = 1; held <= 10; ++held) {
        EXPECT_TRUE(add(50));
        EXPECT_EQ(table_->buffers_held(), held);
    }
    EXPECT_TRUE(add(50));
    EXPECT_TRUE(add(21));
    EXPECT_EQ(table_->buffers_held(), 10U);
    EXPECT_TRUE(add(51));
    EXPECT_EQ(table_->buffers_held(), 11U);
}

TEST_F(Copying, WithoutCellsPayloadStaysWhereItIs) {
    MessageConfig config;
    config.buffers_max = 100;
    config.copies = {.at_once_bytes = 128, .cells = 2, .cell_bytes = 192};
    make(config);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(add(128));
    EXPECT_EQ(table_->cells_held(), 2U);
    EXPECT_EQ(table_->buffers_held(), 1U);
}

/// Cells of tiny payload have more of it than there are references for.
TEST_F(Copying, IsFullBeforeReferencesRunOut) {
    MessageConfig config;
    config.buffers_max = 1000;
    config.copies = {.at_once_bytes = 128, .cells = 100};
    make(config);
    EXPECT_EQ(table_->fill(), Fill::low);
    std::uint32_t added = 0;
    std::uint32_t full_at = 0;
    for (; add(1); ++added)
        if (full_at == 0 && table_->fill() == Fill::full) full_at = added;
    EXPECT_EQ(table_->buffers_held(), 0U);
    EXPECT_GT(full_at, 0U);
    EXPECT_LT(full_at, added);
}

}  // namespace
}  // namespace weir::assemble

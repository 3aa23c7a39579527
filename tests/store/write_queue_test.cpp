// What becomes of writes that io_uring refuses to take. The ring of a queue is found among the descriptors of the
// process, and another file put in its place for a while.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "store/write_queue.hpp"
#include "temporary_directory.hpp"

namespace weir::store {
namespace {

std::optional<int> ring_descriptor() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
        if (target.find("io_uring") != std::string::npos) return std::stoi(entry.path().filename().string());
    }
    return std::nullopt;
}

class WriteQueueTest : public testing::Test {
protected:
    void SetUp() override {
        file_ = File::create(folder_ / "file");
        try {
            queue_.emplace(4U);
        } catch (const core::RunError& error) {
            GTEST_SKIP() << error.what();
        }
        const std::optional<int> found = ring_descriptor();
        ASSERT_TRUE(found.has_value());
        ring_ = *found;
        kept_ = ::dup(ring_);
    }
    void TearDown() override {
        if (kept_ >= 0) ::close(kept_);
        queue_.reset();
    }
    void refuse(bool refused) {
        const int other = refused ? ::open("/dev/null", O_RDWR | O_CLOEXEC) : kept_;
        ASSERT_EQ(::dup2(other, ring_), ring_);
        if (refused) ::close(other);
    }
    static std::vector<std::byte> text(const char* words) {
        const auto* const first = reinterpret_cast<const std::byte*>(words);
        return {first, first + std::strlen(words)};
    }
    std::string content() {
        std::array<std::byte, 64> bytes{};
        const std::size_t count = file_.read_at(0, bytes);
        return {reinterpret_cast<const char*>(bytes.data()), count};
    }

    const weir::test::TemporaryDirectory folder_;
    File file_;
    std::optional<WriteQueue> queue_;
    int ring_ = -1;
    int kept_ = -1;
};

TEST_F(WriteQueueTest, AnEntryThatWasRefusedIsNotWrittenLater) {
    const std::vector<std::byte> refused = text("refused");
    const std::vector<std::byte> good = text("ok");
    WriteQueue::Ticket first;
    WriteQueue::Ticket second;
    refuse(true);
    queue_->write(file_, 0, refused, first);
    EXPECT_FALSE(first.pending);
    EXPECT_NE(first.error_number, 0);
    EXPECT_EQ(queue_->under_way(), 0U);
    refuse(false);
    queue_->write(file_, 0, good, second);
    EXPECT_EQ(queue_->under_way(), 1U);
    for (int i = 0; i < 4 && second.pending; ++i) queue_->reap(true);
    EXPECT_FALSE(second.pending);
    EXPECT_EQ(second.error_number, 0);
    EXPECT_EQ(queue_->under_way(), 0U);
    for (int i = 0; i < 4; ++i) queue_->reap(false);
    EXPECT_EQ(queue_->under_way(), 0U) << "one write ended twice";
    EXPECT_EQ(content(), "ok");
}

TEST_F(WriteQueueTest, MoreRefusalsThanEntriesAreErrorsAndNoMore) {
    const std::vector<std::byte> bytes = text("0123");
    refuse(true);
    for (int i = 0; i < 20; ++i) {
        WriteQueue::Ticket ticket;
        queue_->write(file_, 0, bytes, ticket);
        EXPECT_FALSE(ticket.pending);
        EXPECT_NE(ticket.error_number, 0);
    }
    refuse(false);
    std::array<WriteQueue::Ticket, 16> tickets;
    for (std::size_t i = 0; i < tickets.size(); ++i) queue_->write(file_, 4 * i, bytes, tickets[i]);
    queue_->drain();
    for (const WriteQueue::Ticket& ticket : tickets) {
        EXPECT_FALSE(ticket.pending);
        EXPECT_EQ(ticket.error_number, 0);
    }
    EXPECT_EQ(file_.size(), 64U);
}

}  // namespace
}  // namespace weir::store

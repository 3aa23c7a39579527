// `weir replay --answers FILE`: what weir would have sent back, as a capture of its own. rx lcores put frames into
// rings without waiting; a thread writes them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/one_writer.hpp"
#include "core/units.hpp"
#include "store/capture/writer.hpp"
#include "wire/roce_answer.hpp"

namespace weir::stages {

struct AnswerRecord {
    core::TimeNs time_ns = 0;
    std::uint32_t bytes = 0;
    std::array<std::byte, wire::roce_answer_bytes_max> frame;
};

/// One rx lcore's frames on their way to the file.
class AnswerRing {
public:
    static constexpr std::uint64_t capacity = 4096;
    AnswerRing() : records_(std::make_unique<AnswerRecord[]>(capacity)) {}

    /// For the lcore. The next record to be filled in, or nullptr when the ring is full.
    [[nodiscard]] AnswerRecord* begin() noexcept {
        const std::uint64_t at = written_.load(std::memory_order_relaxed);
        return at - read_.load(std::memory_order_acquire) < capacity ? &records_[at % capacity] : nullptr;
    }
    void commit() noexcept { core::add(written_, 1, std::memory_order_release); }
    [[nodiscard]] bool has_room(std::uint64_t records) const noexcept {
        return written_.load(std::memory_order_relaxed) - read_.load(std::memory_order_acquire) + records <= capacity;
    }
    /// For the thread. The oldest record, or nullptr.
    [[nodiscard]] const AnswerRecord* front() const noexcept {
        const std::uint64_t at = read_.load(std::memory_order_relaxed);
        return at < written_.load(std::memory_order_acquire) ? &records_[at % capacity] : nullptr;
    }
    void pop() noexcept { core::add(read_, 1, std::memory_order_release); }

private:
    std::unique_ptr<AnswerRecord[]> records_;
    alignas(core::cache_line_bytes) std::atomic<std::uint64_t> written_{0};
    alignas(core::cache_line_bytes) std::atomic<std::uint64_t> read_{0};
};

class AnswerLog {
public:
    /// Creates the file: core::RunError if it exists or cannot be created.
    AnswerLog(const std::string& path, std::size_t rings);
    ~AnswerLog();
    AnswerLog(const AnswerLog&) = delete;
    AnswerLog& operator=(const AnswerLog&) = delete;

    [[nodiscard]] AnswerRing& ring(std::size_t index) noexcept { return rings_[index]; }
    void start();
    /// After the lcores have ended: writes what is left and closes the file.
    void finish();
    /// After finish(): why the file is not whole; empty if it is.
    [[nodiscard]] const std::string& error() const noexcept { return error_; }

private:
    [[nodiscard]] bool drain();
    void work();

    store::CaptureWriter writer_;
    std::vector<AnswerRing> rings_;
    std::atomic<bool> stop_{false};
    std::string error_;  ///< of the thread, until it has been joined
    std::thread thread_;
};

}  // namespace weir::stages

// An rx lcore's part in a looped capture: which pass the packets in hand are of, and what it tells the capture reader.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/one_writer.hpp"
#include "stages/pass_signals.hpp"

namespace weir::stages {

class RxPasses {
public:
    /// `signals`: null where nothing is looped; then nothing here does anything.
    RxPasses(PassSignals* signals, std::uint16_t rx) : signals_(signals), own_(signals ? &signals->rx[rx] : nullptr) {}

    /// Of the packets being worked on, modulo 256 (Packet::pass).
    [[nodiscard]] std::uint8_t current() const noexcept { return pass_; }
    void begin(std::uint8_t pass) noexcept {
        begun_ += static_cast<std::uint8_t>(pass - pass_);
        pass_ = pass;
    }
    /// What the numbers of this pass are moved up by, and the epoch that it is in at least.
    [[nodiscard]] std::uint64_t shift() const noexcept {
        return begun_ * signals_->span.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint32_t epoch() const noexcept {
        return static_cast<std::uint32_t>(begun_ * signals_->epochs.load(std::memory_order_relaxed));
    }

    /// Packets from the capture or from other rx lcores have been worked on.
    void count_processed(std::uint32_t count) noexcept {
        if (own_ != nullptr) core::add(own_->processed, count, std::memory_order_release);
    }
    /// Another rx lcore takes one of them once more.
    void count_steered() noexcept {
        if (own_ != nullptr) core::add(own_->steered);
    }

    /// The capture reader waits for everything of the first pass to have its number.
    [[nodiscard]] bool must_close() const noexcept {
        return own_ != nullptr && signals_->close.load(std::memory_order_acquire) &&
               !own_->closed.load(std::memory_order_relaxed);
    }
    void closed() noexcept { own_->closed.store(true, std::memory_order_release); }

private:
    PassSignals* signals_;
    PassSignals::Rx* own_;
    std::uint8_t pass_ = 0;
    std::uint64_t begun_ = 0;  ///< the same, not modulo 256
};

}  // namespace weir::stages

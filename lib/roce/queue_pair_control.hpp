// Connecting and disconnecting queue pairs of a running rx lcore, from any thread: one command at a time goes to the
// lcore that owns the queue pair, which executes it between two packets and answers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>

#include "roce/responder.hpp"

namespace weir::roce {

struct QueuePairCommand {
    enum class Kind : std::uint8_t {
        configure,  ///< ready, with `queue_pair`; whatever its peer had begun before ends
        reset,      ///< drops everything from now on; buffers of what its peer had begun go back
        query,
    };
    Kind kind = Kind::query;
    std::uint32_t source = 0;
    QueuePair queue_pair{};
    /// The answer: as it is after the command.
    Responder::Status status{};
    std::atomic<bool> done{false};
};

class QueuePairControl {
public:
    /// Any thread: gives the command to the lcore and waits for its answer. False: the lcore did not take it in time
    /// (it has ended), and never will.
    [[nodiscard]] bool execute(QueuePairCommand& command, std::chrono::milliseconds patience) {
        const std::lock_guard lock(one_at_a_time_);
        const auto deadline = std::chrono::steady_clock::now() + patience;
        command.done.store(false, std::memory_order_relaxed);
        slot_.store(&command, std::memory_order_release);
        while (!command.done.load(std::memory_order_acquire)) {
            QueuePairCommand* mine = &command;
            if (std::chrono::steady_clock::now() >= deadline && slot_.compare_exchange_strong(mine, nullptr))
                return false;
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        return true;
    }

    /// The lcore: a command to be executed, or nullptr. It may not be touched after finish.
    [[nodiscard]] QueuePairCommand* take() noexcept {
        if (slot_.load(std::memory_order_relaxed) == nullptr) return nullptr;
        return slot_.exchange(nullptr, std::memory_order_acq_rel);
    }
    static void finish(QueuePairCommand& command) noexcept { command.done.store(true, std::memory_order_release); }

private:
    std::mutex one_at_a_time_;
    std::atomic<QueuePairCommand*> slot_{nullptr};
};

}  // namespace weir::roce

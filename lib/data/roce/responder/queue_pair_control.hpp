// Connecting and disconnecting queue pairs of a running rx lcore: one command at a time goes to the lcore that owns the
// queue pair, which executes it between two packets and answers. Nobody waits for anybody: an lcore may be held up.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "roce/responder/responder.hpp"

namespace weir::roce {

struct QueuePairCommand {
    enum class Kind : std::uint8_t {
        configure,  ///< ready, with `queue_pair`; whatever its peer had begun before ends
        reset,      ///< drops everything from now on; buffers of what its peer had begun go back
    };
    Kind kind = Kind::configure;
    std::uint32_t source = 0;
    QueuePair queue_pair{};
};

class QueuePairControl {
public:
    /// The commanding thread. False: the one before has not been answered yet.
    [[nodiscard]] bool post(const QueuePairCommand& command) noexcept {
        if (state_.load(std::memory_order_acquire) != State::idle) return false;
        command_ = command;
        state_.store(State::posted, std::memory_order_release);
        return true;
    }
    /// The commanding thread: as the queue pair is after the command; nothing until the lcore has executed it. Then the
    /// next may be posted.
    [[nodiscard]] std::optional<Responder::Status> answer() noexcept {
        if (state_.load(std::memory_order_acquire) != State::done) return std::nullopt;
        const Responder::Status status = status_;
        state_.store(State::idle, std::memory_order_relaxed);
        return status;
    }
    /// The commanding thread takes back what the lcore has not begun with. False: its answer will come.
    bool withdraw() noexcept {
        State posted = State::posted;
        return state_.compare_exchange_strong(posted, State::idle, std::memory_order_acquire);
    }

    /// The lcore: a command to be executed, or nullptr.
    [[nodiscard]] const QueuePairCommand* take() noexcept {
        if (state_.load(std::memory_order_relaxed) != State::posted) return nullptr;
        State posted = State::posted;
        return state_.compare_exchange_strong(posted, State::taken, std::memory_order_acquire) ? &command_ : nullptr;
    }
    /// The lcore, after each command it has taken.
    void finish(const Responder::Status& status) noexcept {
        status_ = status;
        state_.store(State::done, std::memory_order_release);
    }

private:
    enum class State : std::uint8_t { idle, posted, taken, done };
    std::atomic<State> state_{State::idle};
    QueuePairCommand command_;
    Responder::Status status_;
};

}  // namespace weir::roce

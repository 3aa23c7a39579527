// One shard's side of the ShardBoard: what it tells the other shards of the builder, and what it has to know of them.
// One window for all, one numbering for all. Where there is only one shard nothing is told, and nothing is waited for.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "assemble/event.hpp"
#include "assemble/number_alignment.hpp"
#include "assemble/number_memory.hpp"
#include "assemble/shard_board.hpp"

namespace weir::assemble {

class ShardLink {
public:
    /// `board` null: there is only this shard.
    ShardLink(ShardBoard* board, std::uint32_t shard) noexcept : board_(board), shard_(shard) {}

    [[nodiscard]] bool alone() const noexcept { return board_ == nullptr; }
    /// What all others have.
    [[nodiscard]] ShardBoard::Account others() const noexcept {
        return board_ != nullptr ? board_->others(shard_) : ShardBoard::Account{};
    }
    /// The event that opened first is in this shard (as far as is known).
    [[nodiscard]] bool has_oldest() const noexcept { return board_ == nullptr || board_->oldest() == shard_; }
    /// Another shard has the event that opened first, and was asked to end it.
    [[nodiscard]] bool ask_oldest() noexcept;

    // With others only:

    void publish(const ShardBoard::Account& account) noexcept { board_->publish(shard_, account); }
    /// How many events this shard has been asked to end since it was last asked.
    [[nodiscard]] std::uint32_t take_asked() noexcept { return board_->take_asked(shard_); }
    /// An event has opened under this number.
    void opened(std::uint32_t epoch, std::uint64_t number, TimeNs now, NumberAlignment& alignment) noexcept;
    /// Tells the others where epochs begin here, and that nothing more opens before `now`.
    void post(TimeNs now) noexcept;
    /// Nothing more will open at all.
    void end_input() noexcept { input_ended_ = true; }

    /// What to add to the event's number for the turn of the counter that it is in; nothing as long as that is not
    /// known.
    [[nodiscard]] std::optional<std::uint64_t> turn_of(const Event& event, NumberAlignment& alignment) noexcept {
        return board_ != nullptr ? find_turn(event, alignment) : 0;
    }
    /// An event could not leave because its turn is not known.
    [[nodiscard]] bool holds_back() const noexcept { return holds_back_; }

private:
    [[nodiscard]] std::optional<std::uint64_t> find_turn(const Event& event, NumberAlignment& alignment) noexcept;

    /// The first event of an epoch here: what the shards have to agree about before any of the epoch leaves.
    struct First {
        enum class State : std::uint8_t { none, unposted, posted, agreed };
        State state = State::none;
        std::uint32_t epoch = 0;
        std::uint64_t number = 0;
        std::uint64_t turn = 0;  ///< what to add to numbers, once agreed
        TimeNs time_ns = 0;
    };

    ShardBoard* board_;
    std::uint32_t shard_;
    std::array<First, epochs_remembered> firsts_;  ///< by epoch modulo their count
    bool holds_back_ = false;
    bool input_ended_ = false;
};

}  // namespace weir::assemble

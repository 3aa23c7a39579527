#include "assemble/shard_link.hpp"

namespace weir::assemble {

bool ShardLink::ask_oldest() noexcept {
    if (board_ == nullptr) return false;
    const std::uint32_t oldest = board_->oldest();
    return oldest != shard_ && board_->ask(oldest);
}

void ShardLink::post(TimeNs now) noexcept {
    if (!board_->agrees_on_numbers()) return;
    bool posted = true;
    for (First& first : firsts_) {
        if (first.state != First::State::unposted) continue;
        if (board_->post(shard_, first.epoch, first.number, first.time_ns))
            first.state = First::State::posted;
        else
            posted = false;
    }
    if (posted) board_->seen_until(shard_, input_ended_ ? std::numeric_limits<TimeNs>::max() : now);
}

/// The first event of an epoch tells where the epoch begins; as soon as there are three, their middle one does, because
/// the first may have a wild number.
void ShardLink::opened(std::uint32_t epoch, std::uint64_t number, TimeNs now, NumberAlignment& alignment) noexcept {
    if (!board_->agrees_on_numbers()) return;
    First& first = firsts_[epoch % epochs_remembered];
    if (first.state == First::State::none || first.epoch < epoch) {
        first = {First::State::unposted, epoch, number, 0, now};
    } else if (first.epoch == epoch && first.state != First::State::agreed && alignment.opened_in(epoch) == 3) {
        first.number = alignment.middle(epoch);
        first.state = First::State::unposted;
    }
}

/// Until three events of its epoch have opened here, each is looked at by itself.
std::optional<std::uint64_t> ShardLink::find_turn(const Event& event, NumberAlignment& alignment) noexcept {
    First& first = firsts_[event.epoch % epochs_remembered];
    if (first.state == First::State::none || first.epoch != event.epoch) return 0;
    if (first.state == First::State::agreed) return first.turn;
    holds_back_ = true;
    if (first.state != First::State::posted) return std::nullopt;
    const bool sure = alignment.opened_in(event.epoch) >= 3;
    const auto found = board_->turn(event.epoch, sure ? first.number : event.number);
    if (!found.has_value()) return std::nullopt;
    holds_back_ = false;
    if (sure) {
        first.turn = *found;
        first.state = First::State::agreed;
    }
    return found;
}

}  // namespace weir::assemble

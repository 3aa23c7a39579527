// How a shard of the builder gets on with the others: one window for all, one numbering for all.
#include <limits>

#include "assemble/event_builder.hpp"

namespace weir::assemble {

/// As many events are open as may be: the one that opened first goes, wherever it is. Until the other shard has come to
/// it there is one too many.
void EventBuilder::make_place() noexcept {
    if (config_.board != nullptr)
        if (const std::uint32_t oldest = config_.board->oldest(); oldest != config_.shard && config_.board->ask(oldest))
            return;
    evict_oldest();
}

void EventBuilder::publish() noexcept {
    config_.board->publish(config_.shard,
                           {open_count_, in_use_ - awaiting_, queued_,
                            open_first_ != nullptr ? open_first_->first_ns : std::numeric_limits<TimeNs>::max()});
}

void EventBuilder::meet_shards() noexcept {
    if (config_.board == nullptr) return;
    for (std::uint32_t asked = config_.board->take_asked(config_.shard); asked > 0 && evict_oldest();) --asked;
    publish();
    if (!config_.board->agrees_on_numbers()) return;
    bool posted = true;
    for (First& first : firsts_) {
        if (first.state != First::State::unposted) continue;
        if (config_.board->post(config_.shard, first.epoch, first.number, first.time_ns))
            first.state = First::State::posted;
        else
            posted = false;
    }
    if (posted) config_.board->seen_until(config_.shard, input_ended_ ? std::numeric_limits<TimeNs>::max() : now_);
}

void EventBuilder::end_input() noexcept {
    input_ended_ = true;
    meet_shards();
}

/// The first event of an epoch tells where the epoch begins; as soon as there are three, their middle one does, because
/// the first may have a wild number.
void EventBuilder::note_first(std::uint32_t epoch, std::uint64_t number) noexcept {
    if (!config_.board->agrees_on_numbers()) return;
    First& first = firsts_[epoch % epochs_remembered];
    if (first.state == First::State::none || first.epoch < epoch) {
        first = {First::State::unposted, epoch, number, 0, now_};
    } else if (first.epoch == epoch && first.state != First::State::agreed && alignment_.opened_in(epoch) == 3) {
        first.number = alignment_.middle(epoch);
        first.state = First::State::unposted;
    }
}

/// Whether it is known which turn of the counter the event is in. Until three events of its epoch have opened here,
/// each is looked at by itself.
bool EventBuilder::find_turn(const Event& event, std::uint64_t& turn) noexcept {
    First& first = firsts_[event.epoch % epochs_remembered];
    if (first.state == First::State::none || first.epoch != event.epoch) return true;
    if (first.state == First::State::agreed) {
        turn = first.turn;
        return true;
    }
    holds_back_ = true;
    if (first.state != First::State::posted) return false;
    const bool sure = alignment_.opened_in(event.epoch) >= 3;
    const auto found = config_.board->turn(event.epoch, sure ? first.number : event.number);
    if (!found.has_value()) return false;
    holds_back_ = false;
    turn = *found;
    if (sure) {
        first.turn = turn;
        first.state = First::State::agreed;
    }
    return true;
}

}  // namespace weir::assemble

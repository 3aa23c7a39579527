#include "event_order.hpp"

#include <algorithm>
#include <utility>

namespace weir::app {

EventOrder::EventOrder(const store::RunReader& run, bool index, Say say) : say_(std::move(say)) {
    if (!index) return;
    const auto entries = run.index();
    if (!entries) return;
    known_ = true;
    expected_.reserve(entries->size());
    for (const store::IndexEntry& entry : *entries)
        expected_.push_back({entry.epoch, entry.event, entry.segment, entry.offset});
    std::ranges::sort(expected_);
}

void EventOrder::say_first() {
    const auto node = waiting_.extract(waiting_.begin());
    if (!node.mapped().text.empty()) say_(node.mapped().text, node.mapped().complete);
}

void EventOrder::put(const store::EventInfo& event, std::string text) {
    waiting_[{event.epoch, event.id, event.segment, event.offset}] = {std::move(text), event.complete};
    if (!known_) return;
    while (!waiting_.empty() && next_ < expected_.size() && waiting_.begin()->first <= expected_[next_]) {
        if (waiting_.begin()->first == expected_[next_]) ++next_;
        say_first();
    }
}

void EventOrder::finish() {
    while (!waiting_.empty()) say_first();
}

}  // namespace weir::app

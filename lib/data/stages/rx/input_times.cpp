#include "stages/rx/input_times.hpp"

#include <algorithm>

namespace weir::stages {

namespace {

core::TimeNs least(std::span<const core::TimeNs> times) noexcept {
    return times.empty() ? core::never : std::ranges::min(times);
}

}  // namespace

InputTimes::InputTimes(std::size_t own, std::size_t steered) : until_(own + steered, nothing_yet), own_count_(own) {}

void InputTimes::advance(std::size_t input, TimeNs until) noexcept {
    until_[input] = std::max(until_[input], until);
}

void InputTimes::end(std::size_t input) noexcept {
    until_[input] = core::never;
}

core::TimeNs InputTimes::all_but(std::size_t input) const noexcept {
    TimeNs time = core::never;
    for (std::size_t i = 0; i < until_.size(); ++i)
        if (i != input && until_[i] != nothing_yet) time = std::min(time, until_[i]);
    return time;
}

void InputTimes::end_own_turn() noexcept {
    own_time_ = least(std::span(until_).first(own_count_));
}

void InputTimes::end_steered_turn() noexcept {
    steered_time_ = least(std::span(until_).subspan(own_count_));
}

}  // namespace weir::stages

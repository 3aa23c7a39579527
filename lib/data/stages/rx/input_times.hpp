// Up to when the inputs of an rx lcore (ports, feeders, rings from other rx lcores) have given everything. What may end
// by time-out, and what the lcore promises to others, follows from it.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace weir::stages {

class InputTimes {
public:
    using TimeNs = core::TimeNs;
    static constexpr TimeNs nothing_yet = std::numeric_limits<TimeNs>::min();

    /// Inputs below `own` are the lcore's own; `steered` more follow, which bring packets from other rx lcores.
    InputTimes(std::size_t own, std::size_t steered);

    /// What came from the input before `until` has been worked on. Never runs backwards.
    void advance(std::size_t input, TimeNs until) noexcept;
    /// Nothing more comes from it.
    void end(std::size_t input) noexcept;
    /// What all inputs but this one have given, as far as they have begun; its own packets come in order of time.
    [[nodiscard]] TimeNs all_but(std::size_t input) const noexcept;

    // What advance() and end() have said shows in these after the turn in which all inputs were asked.
    void end_own_turn() noexcept;
    void end_steered_turn() noexcept;
    /// The lcore's own inputs have given all before this; core::never when they have ended.
    [[nodiscard]] TimeNs own() const noexcept { return own_time_; }
    /// All inputs have.
    [[nodiscard]] TimeNs all() const noexcept { return own_time_ < steered_time_ ? own_time_ : steered_time_; }

private:
    std::vector<TimeNs> until_;
    std::size_t own_count_;
    TimeNs own_time_ = nothing_yet;
    TimeNs steered_time_ = nothing_yet;
};

}  // namespace weir::stages

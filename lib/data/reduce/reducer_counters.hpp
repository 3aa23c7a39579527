// The counters of a reducer, of whatever kind, for the report and telemetry.
#pragma once

#include <span>

#include "core/counters.hpp"

namespace weir::reduce {

/// The counters of one reducer on one lcore; any thread may read them.
struct ReducerCounters {
    std::string_view kind;  ///< as in the configuration
    std::span<const core::CounterInfo> infos;
    const void* tally = nullptr;
    std::uint64_t (*read)(const void* tally, std::size_t index) = nullptr;

    [[nodiscard]] std::uint64_t get(std::size_t index) const { return read(tally, index); }
};

/// `tally` and `infos` must outlive the result.
template <class E>
[[nodiscard]] ReducerCounters counters_of(std::string_view kind,
                                          const std::array<core::CounterInfo, core::count_of<E>>& infos,
                                          const core::Tally<E>& tally) noexcept {
    return {kind, infos, &tally, [](const void* from, std::size_t index) {
                return static_cast<const core::Tally<E>*>(from)->get(static_cast<E>(index));
            }};
}

}  // namespace weir::reduce

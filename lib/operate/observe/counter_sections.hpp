// Every counter there is, each from the room that declares it: what docs/reference/COUNTERS.md, `weir explain` and
// diagnoses are made of.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/counters.hpp"

namespace weir::observe {

/// A table with what it counts.
struct CounterSection {
    std::string_view name;   ///< "packets", "messages", "events", as in the run report; "device", "rings", "levels"
    std::string_view title;  ///< one sentence: what is counted, and the sum that must come out
    std::span<const core::CounterInfo> counters;
};

/// All tables: those of the ledger in the order in which data passes them, then those of reducers ("reduce.KIND"), then
/// what is counted or measured beside the ledger.
[[nodiscard]] std::span<const CounterSection> counter_sections();

/// The page and section that say how to find the cause: "docs/guides/LOSSES.md#late". `full_name` has its section.
[[nodiscard]] std::string counter_page(std::string_view full_name);

/// All of docs/reference/COUNTERS.md.
[[nodiscard]] std::string counters_markdown();

/// Every counter called `name` with its section in front ("events.dropped.no_room"); `name` may lack the section, or
/// the leading "dropped.", or have the number of one of several rings ("events0"). `*` stands for anything, so
/// "dropped.*" finds many. Empty if there is none.
struct NamedCounter {
    std::string full_name;
    const core::CounterInfo* info;
};
[[nodiscard]] std::vector<NamedCounter> find_counters(std::string_view name);

}  // namespace weir::observe

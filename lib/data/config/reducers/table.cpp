// The table of the kinds of reducers. Their names are in meson.build beside this: WEIR_REDUCERS is REDUCER(name) for
// each.
#include <algorithm>
#include <array>

#include "config/reducers/entry.hpp"

namespace weir::config::detail {

#define REDUCER(name) ReducerEntry name##_reducer();
WEIR_REDUCERS
#undef REDUCER

std::span<const ReducerEntry> reducer_entries() {
#define REDUCER(name) name##_reducer(),
    static const std::array all{WEIR_REDUCERS};
#undef REDUCER
    return all;
}

const ReducerEntry& entry_of(const ReduceConfig& reducer) {
    return *std::ranges::find_if(reducer_entries(),
                                 [&](const ReducerEntry& entry) { return entry.kind.holds(reducer.options); });
}

}  // namespace weir::config::detail

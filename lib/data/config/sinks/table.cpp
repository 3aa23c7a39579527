// The table of the kinds of sinks. Their names are in meson.build beside this: WEIR_SINKS is SINK(name) for each.
#include <algorithm>
#include <array>

#include "config/sinks/entry.hpp"

namespace weir::config {

#define SINK(name) SinkEntry name##_sink();
WEIR_SINKS
#undef SINK

std::span<const SinkEntry> sink_entries() {
#define SINK(name) name##_sink(),
    static const std::array all{WEIR_SINKS};
#undef SINK
    return all;
}

const SinkEntry& entry_of(const SinkConfig& sink) {
    return *std::ranges::find_if(sink_entries(),
                                 [&](const SinkEntry& entry) { return entry.kind.holds(sink.options); });
}

std::string_view SinkConfig::kind() const {
    return entry_of(*this).kind.name;
}

bool SinkConfig::writes() const {
    return entry_of(*this).writes;
}

bool SinkConfig::has_path() const {
    return writes() && entry_of(*this).has_path;
}

bool SinkConfig::stores_events() const {
    return entry_of(*this).open != nullptr;
}

}  // namespace weir::config

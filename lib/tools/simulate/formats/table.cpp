// The table of what the simulator can send. Its names are in meson.build beside this: WEIR_SIMULATED_FORMATS is
// SIMULATED(name) for each.
#include <algorithm>

#include "simulate/simulated_format.hpp"

namespace weir::simulate {

#define SIMULATED(name) SimulationEntry simulated_##name();
WEIR_SIMULATED_FORMATS
#undef SIMULATED

std::span<const SimulationEntry> simulated_formats() {
#define SIMULATED(name) simulated_##name(),
    static const std::array all{WEIR_SIMULATED_FORMATS};
#undef SIMULATED
    return all;
}

const SimulationEntry* find_simulated(std::string_view name) {
    const auto found = std::ranges::find(simulated_formats(), name, &SimulationEntry::name);
    return found != simulated_formats().end() ? &*found : nullptr;
}

std::vector<std::string_view> simulated_names() {
    std::vector<std::string_view> names;
    for (const SimulationEntry& entry : simulated_formats())
        if (wire::is_built_in(entry.name)) names.push_back(entry.name);
    return names;
}

bool choose_format(SimulatorConfig& config, std::string_view name, std::span<const wire::DeclaredSpec> described) {
    if (wire::is_built_in(name) && find_simulated(name) != nullptr) {
        config.format = name;
        return true;
    }
    const auto found = std::ranges::find(described, name, &wire::DeclaredSpec::name);
    if (found == described.end()) return false;
    config.format = wire::described_format().name;
    config.declared = *found;
    return true;
}

}  // namespace weir::simulate

#include "observe/reduce_report.hpp"

#include <rte_cycles.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stages/pedestal_keeper.hpp"
#include "stages/work_stage.hpp"

namespace weir::observe {

std::vector<ReducerReport> collect_reducers(const std::vector<std::unique_ptr<stages::WorkStage>>& workers,
                                            const stages::PedestalKeeper* pedestals,
                                            const std::vector<std::unique_ptr<reduce::FragmentConverter>>& converters) {
    std::vector<std::vector<reduce::ReducerCounters>> lists;
    for (const auto& worker : workers) lists.push_back(worker->reducers());
    // It is the first of a chain, and so of each list.
    if (pedestals != nullptr)
        lists.push_back({reduce::counters_of("pedestal", reduce::pedestal_counters, pedestals->tally())});
    for (const auto& converter : converters)
        lists.push_back({reduce::counters_of("jungfrau", reduce::jungfrau_counters, converter->tally())});
    std::vector<ReducerReport> out;
    for (const std::vector<reduce::ReducerCounters>& all : lists) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (out.size() == i) {
                out.push_back({all[i].kind, {}});
                for (const core::CounterInfo& info : all[i].infos) out[i].values.emplace_back(info.name, 0);
            }
            for (std::size_t k = 0; k < all[i].infos.size(); ++k) {
                std::uint64_t& value = out[i].values[k].second;
                const std::uint64_t one = all[i].get(k);
                value = all[i].infos[k].merge == core::Merge::sum ? value + one : std::max(value, one);
            }
        }
    }
    return out;
}

nlohmann::json reduce_json(const std::vector<ReducerReport>& reducers) {
    nlohmann::json out = nlohmann::json::array();
    const double ns_per_cycle = 1e9 / static_cast<double>(::rte_get_tsc_hz());
    for (const ReducerReport& reducer : reducers) {
        nlohmann::json one{{"kind", reducer.kind}};
        std::uint64_t cycles = 0;
        std::uint64_t events = 0;
        std::uint64_t pieces = 0;
        std::uint64_t bytes_in = 0;
        std::uint64_t bytes_out = 0;
        for (const auto& [name, value] : reducer.values) {
            one[std::string(name)] = value;
            if (name == "cycles") cycles = value;
            if (name == "events") events = value;
            if (name == "pieces") pieces = value;
            if (name == "bytes_in") bytes_in = value;
            if (name == "bytes_out") bytes_out = value;
        }
        const double ns = static_cast<double>(cycles) * ns_per_cycle;
        one["seconds"] = ns * 1e-9;
        if (events > 0)
            one["ns_per_event"] = ns / static_cast<double>(events);
        else if (pieces > 0)
            one["ns_per_piece"] = ns / static_cast<double>(pieces);
        // What compresses says by how much.
        if (pieces > 0 && bytes_out > 0) one["ratio"] = static_cast<double>(bytes_in) / static_cast<double>(bytes_out);
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace weir::observe

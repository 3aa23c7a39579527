#include "lap_report.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace weir::bench {

namespace {

double median(std::vector<double> values) {
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double rounded(double value, double unit) {
    return std::round(value / unit) * unit;
}

}  // namespace

nlohmann::json describe_case(const StreamKind& kind, const WorkingSet& set, const Mix& mix) {
    nlohmann::json out;
    out["name"] = kind.name;
    out["sources"] = kind.sources;
    out["open_events"] = mix.open_events;
    out["order"] = mix.shuffled ? "shuffled" : "in_order";
    out["packets"] = set.frames().size();
    out["events"] = set.events();
    out["frame_bytes"] = set.frame_bytes() / set.frames().size();
    out["working_set_mib"] = set.extent_bytes() >> 20U;
    return out;
}

void report_laps(nlohmann::json& out, const std::string& name, std::span<const Lap> laps, const WorkingSet& set,
                 double tsc_hz) {
    const auto packets = static_cast<double>(set.frames().size());
    std::vector<double> rates;
    double busy = 1;
    for (const Lap& lap : laps) {
        rates.push_back(packets / static_cast<double>(lap.cycles) * tsc_hz / 1e6);
        busy = std::min(busy, lap.busy());
    }
    const double rate = median(rates);
    out[name + "_mpps"] = rounded(rate, 0.001);
    out[name + "_mpps_min"] = rounded(std::ranges::min(rates), 0.001);
    out[name + "_mpps_max"] = rounded(std::ranges::max(rates), 0.001);
    out[name + "_gbps"] = rounded(rate * static_cast<double>(set.frame_bytes()) * 8 / packets / 1000, 0.1);
    out[name + "_cycles"] = rounded(tsc_hz / rate / 1e6, 0.1);
    out[name + "_busy_min"] = rounded(busy, 0.001);
}

void report_ratio(nlohmann::json& out, const std::string& name, std::span<const Lap> above,
                  std::span<const Lap> below) {
    if (above.empty() || below.empty()) return;
    std::vector<double> ratios;
    for (std::size_t i = 0; i < above.size(); ++i)
        ratios.push_back(static_cast<double>(below[i].cycles) / static_cast<double>(above[i].cycles));
    const auto [least, most] = std::ranges::minmax(ratios);
    out[name] = rounded(median(ratios), 0.001);
    out[name + "_min"] = rounded(least, 0.001);
    out[name + "_max"] = rounded(most, 0.001);
}

}  // namespace weir::bench

#include "observe/rate_history.hpp"

#include <set>
#include <utility>

namespace weir::observe {

namespace {

constexpr double history_step_s = 1;

/// Counts that are estimates may fall again.
double rise(std::uint64_t before, std::uint64_t now) {
    return now > before ? static_cast<double>(now - before) : 0;
}

}  // namespace

RateHistory::RateHistory() {
    make_json();
}

void RateHistory::look(const Ledger& ledger, double seconds) {
    const double step = seconds - last_.seconds;
    if (begun_ && step < history_step_s) return;
    Totals now{seconds,
               ledger.received,
               ledger.received_bytes,
               ledger.get(assemble::EventCounter::complete) + ledger.incomplete(),
               {}};
    for (const Ledger::Loss& loss : ledger.losses()) now.lost[loss.cause] = loss.packets;
    if (begun_) {
        Point point{seconds,
                    rise(last_.packets, now.packets) / step,
                    8e-9 * rise(last_.bytes, now.bytes) / step,
                    rise(last_.events, now.events) / step,
                    {}};
        for (const auto& [cause, packets] : now.lost)
            if (const double more = rise(last_.lost[cause], packets); more > 0) point.lost_per_s[cause] = more / step;
        points_.push_back(std::move(point));
        if (points_.size() > points_max) points_.pop_front();
        make_json();
    }
    begun_ = true;
    last_ = std::move(now);
}

void RateHistory::make_json() {
    using nlohmann::json;
    json_ = {{"step_s", history_step_s}, {"time_s", json::array()},       {"packets_per_s", json::array()},
             {"gbps", json::array()},    {"events_per_s", json::array()}, {"lost_per_s", json::object()}};
    std::set<std::string_view> causes;
    for (const Point& point : points_) {
        json_["time_s"].push_back(point.seconds);
        json_["packets_per_s"].push_back(point.packets_per_s);
        json_["gbps"].push_back(point.gbps);
        json_["events_per_s"].push_back(point.events_per_s);
        for (const auto& [cause, rate] : point.lost_per_s) causes.insert(cause);
    }
    for (const std::string_view cause : causes) {
        json& column = json_["lost_per_s"][std::string(cause)] = json::array();
        for (const Point& point : points_) {
            const auto found = point.lost_per_s.find(cause);
            column.push_back(found != point.lost_per_s.end() ? found->second : 0.0);
        }
    }
}

}  // namespace weir::observe

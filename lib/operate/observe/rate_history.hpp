// The last minutes of a run, a point per second: rates, and losses by cause. Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "observe/ledger.hpp"

namespace weir::observe {

class RateHistory {
public:
    static constexpr std::size_t points_max = 300;

    /// Takes a point if a second has passed since the last one; the first call only begins.
    void look(const Ledger& ledger, double seconds);
    /// {"step_s": 1, "time_s": [...], "packets_per_s": [...], "gbps": [...], "events_per_s": [...],
    /// "lost_per_s": {CAUSE: [...]}}, all equally long, oldest first; every cause that was lost by in that time.
    [[nodiscard]] const nlohmann::json& json() const noexcept { return json_; }

    RateHistory();

private:
    struct Totals {
        double seconds = 0;
        std::uint64_t packets = 0;
        std::uint64_t bytes = 0;
        std::uint64_t events = 0;
        std::map<std::string_view, std::uint64_t> lost;  ///< causes are names in counter tables
    };
    struct Point {
        double seconds = 0;
        double packets_per_s = 0;
        double gbps = 0;
        double events_per_s = 0;
        std::map<std::string_view, double> lost_per_s;
    };
    void make_json();

    bool begun_ = false;
    Totals last_;
    std::deque<Point> points_;
    nlohmann::json json_;
};

}  // namespace weir::observe

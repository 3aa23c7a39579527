// Parts on their way, as fluids: each link shares its rate fairly (max-min) among the flows that cross it.
//
// Each link has a level: the most that one of its flows gets there. A flow's rate is the lowest level on its way. When
// flows begin or end, the levels of their links are found again from what the other links leave their flows, and so on
// from link to link while a level changes by more than the tolerance. An exact solver begins anew for all flows that
// are connected, which are nearly all, each time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/units.hpp"
#include "fat_tree.hpp"

namespace weir::cluster::bench {

using FlowId = std::uint32_t;

class Flows {
public:
    struct Config {
        std::size_t links = 0;
        double bytes_per_ns = 0;  ///< of each link
        double tolerance = 0.05;  ///< of a level, before others are found again
    };
    struct Stats {
        std::uint64_t flows = 0;
        std::uint64_t levels = 0;   ///< that were found
        std::uint64_t cut_off = 0;  ///< how often levels were left as they were because they did not come to rest
    };

    explicit Flows(const Config& config);

    /// Ids are used again.
    FlowId begin(const Route& route, std::uint64_t bytes, core::TimeNs now);
    /// When the next one ends, if nothing begins before.
    [[nodiscard]] std::optional<core::TimeNs> next_end(core::TimeNs now);
    /// That one; at its end.
    FlowId end(core::TimeNs now);

    [[nodiscard]] const Stats& stats() const noexcept { return stats_; }

private:
    struct Flow {
        std::array<std::uint32_t, 4> places{};  ///< in the flows of each link
        double rate = 0;                        ///< bytes per ns
        double left = 0;                        ///< at since_ns
        double since_ns = 0;
        double end_ns = 0;
        std::uint32_t heap_place = 0;
        bool is_touched = false;
    };
    struct Link {
        std::vector<FlowId> flows;
        bool is_waiting = false;
    };

    void wait(LinkId link);
    void touch(FlowId id);
    void solve(core::TimeNs now);
    void find_level(LinkId id);
    [[nodiscard]] double level_of(LinkId id);
    [[nodiscard]] double elsewhere(const Route& route, LinkId link) const noexcept;
    void set_rate(FlowId id, core::TimeNs now);
    // A heap of flows by their ends.
    void place(std::uint32_t where, FlowId id) noexcept;
    void rise(std::uint32_t where) noexcept;
    void sink(std::uint32_t where) noexcept;

    Config config_;
    std::vector<Link> links_;
    std::vector<double> levels_;  ///< of links, apart from them: nearly all the time goes into reading these two
    std::vector<Route> routes_;   ///< of flows
    std::vector<Flow> flows_;
    std::vector<FlowId> free_;
    std::vector<FlowId> heap_;
    std::vector<LinkId> waiting_;
    std::vector<FlowId> touched_;
    std::vector<double> limits_;
    Stats stats_;
};

}  // namespace weir::cluster::bench

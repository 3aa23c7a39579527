#include "store/cluster_run_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>

namespace weir::store {

namespace {

using Place = ClusterEvents::Place;
static_assert(sizeof(Place) == 16);

bool is_same_event(const Place& a, const Place& b) {
    return a.epoch == b.epoch && a.id == b.id;
}

/// Reads one run after the other, then goes through all events in order.
class ClusterEventsReader {
public:
    ClusterEventsReader(const ClusterRun& cluster, const std::map<std::uint64_t, std::string>& lost)
        : cluster_(cluster), lost_(lost) {}

    ClusterEvents read(bool quick, const std::function<void(std::uint64_t)>& tell) {
        found_.all.payload_read = !quick;
        for (std::uint32_t run = 0; run < cluster_.runs.size(); ++run) read_run(run, quick, tell);
        std::ranges::sort(places_, {}, [](const Place& place) { return std::tie(place.epoch, place.id, place.run); });
        if (!places_.empty()) {
            found_.lowest = places_.front();
            found_.highest = places_.back();
        }
        for (std::size_t first = 0, next = 0; first < places_.size(); first = next) {
            for (next = first + 1; next < places_.size() && is_same_event(places_[first], places_[next]);) ++next;
            take_twice({places_.data() + first, next - first});
        }
        look_at_blocks();
        found_.all.verified = found_.all.problem_count == 0;
        return std::move(found_);
    }

private:
    void read_run(std::uint32_t number, bool quick, const std::function<void(std::uint64_t)>& tell) {
        const RunReader& run = cluster_.runs[number].reader;
        ScanHooks hooks;
        hooks.end = [&](const EventInfo& event) {
            places_.push_back({event.id, event.epoch, number});
            if (!event.complete) ++found_.causes[static_cast<std::size_t>(event.cause)];
            if (tell) tell(event.stored_bytes);
        };
        found_.runs.push_back(quick ? run.scan_index(hooks, std::numeric_limits<std::uint64_t>::max())
                                    : run.scan(hooks));
        const Verification& one = found_.runs.back();
        Verification& all = found_.all;
        all.events += one.events;
        all.heads += one.heads;
        all.complete += one.complete;
        all.payload_bytes += one.payload_bytes;
        all.stored_bytes += one.stored_bytes;
        all.segments += one.segments;
        all.problem_count += one.problem_count;
        for (const std::string& problem : one.problems)
            all.problems.push_back(fmt::format("{}: {}", cluster_.runs[number].name, problem));
    }

    void take_twice(std::span<const Place> same) {
        ++found_.distinct;
        if (same.size() < 2) return;
        ++found_.twice;
        if (found_.twice_listed.size() == ClusterEvents::twice_listed_max) return;
        ClusterEvents::Twice& twice = found_.twice_listed.emplace_back();
        twice.id = same.front().id;
        twice.epoch = same.front().epoch;
        for (const Place& place : same) twice.runs.push_back(place.run);
    }

    /// All events of a cluster are of epoch 0, or not of a block.
    void look_at_blocks() {
        if (cluster_.block == 0) return;
        const auto block_of = [this](const Place& place) { return place.id / cluster_.block; };
        for (std::size_t first = 0, next = 0; first < places_.size() && places_[first].epoch == 0; first = next) {
            const std::uint64_t block = block_of(places_[first]);
            const bool is_lost = lost_.contains(block);
            bool is_unaccounted = !is_lost;
            for (next = first; next < places_.size() && places_[next].epoch == 0 && block_of(places_[next]) == block;
                 ++next) {
                const ClusterRun::Run& run = cluster_.runs[places_[next].run];
                is_unaccounted &= !run.has_account;
                if (!is_lost) continue;
                ++found_.lost_found;
                const bool by_force = run.state == RunState::left || run.state == RunState::interrupted;
                found_.lost_found_left += by_force ? 1 : 0;
            }
            found_.unaccounted_blocks += is_unaccounted ? 1 : 0;
        }
    }

    const ClusterRun& cluster_;
    const std::map<std::uint64_t, std::string>& lost_;
    ClusterEvents found_;
    std::vector<Place> places_;
};

}  // namespace

ClusterEvents read_cluster_events(const ClusterRun& cluster, const std::map<std::uint64_t, std::string>& lost,
                                  bool quick, const std::function<void(std::uint64_t)>& read) {
    return ClusterEventsReader(cluster, lost).read(quick, read);
}

}  // namespace weir::store

#include "store/cluster_run_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
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
    ClusterEventsReader(const ClusterRun& cluster, const LostBlocks& lost) : cluster_(cluster), lost_(lost) {}

    ClusterEvents read(bool quick, const ScanHooks& hooks) {
        found_.all.payload_read = !quick;
        for (std::uint32_t run = 0; run < cluster_.runs.size(); ++run) read_run(run, quick, hooks);
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
    void read_run(std::uint32_t number, bool quick, const ScanHooks& also) {
        const RunReader& run = cluster_.runs[number].reader;
        const auto tell = [&](const auto& hook, EventInfo event) {
            event.segment += segments_;
            if (hook) hook(event);
        };
        ScanHooks hooks = also;
        if (also.begin) hooks.begin = [&](const EventInfo& event) { tell(also.begin, event); };
        hooks.end = [&](const EventInfo& event) {
            places_.push_back({event.id, event.epoch, number});
            if (!event.complete) ++found_.causes[static_cast<std::size_t>(event.cause)];
            tell(also.end, event);
        };
        found_.runs.push_back(quick ? run.scan_index(hooks, std::numeric_limits<std::uint64_t>::max())
                                    : run.scan(hooks));
        found_.all.add(found_.runs.back(), cluster_.runs[number].name);
        segments_ += run.segments();
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
            bool has_account = false;
            bool is_lost = true;
            for (next = first; next < places_.size() && places_[next].epoch == 0 && block_of(places_[next]) == block;
                 ++next) {
                const ClusterRun::Run& run = cluster_.runs[places_[next].run];
                has_account |= run.has_account;
                if (!is_of_lost_block(places_[next].id)) {
                    is_lost = false;
                    continue;
                }
                ++found_.lost_found;
                const bool by_force = run.state == RunState::left || run.state == RunState::interrupted;
                found_.lost_found_left += by_force ? 1 : 0;
            }
            found_.unaccounted_blocks += is_lost || has_account ? 0 : 1;
        }
    }

    [[nodiscard]] bool is_of_lost_block(std::uint64_t number) const {
        const auto after = lost_.upper_bound(number);
        return after != lost_.begin() && number <= std::prev(after)->second.last;
    }

    const ClusterRun& cluster_;
    const LostBlocks& lost_;
    ClusterEvents found_;
    std::vector<Place> places_;
    std::uint32_t segments_ = 0;  ///< of the runs before
};

}  // namespace

ClusterEvents read_cluster_events(const ClusterRun& cluster, const LostBlocks& lost, bool quick,
                                  const ScanHooks& hooks) {
    return ClusterEventsReader(cluster, lost).read(quick, hooks);
}

}  // namespace weir::store

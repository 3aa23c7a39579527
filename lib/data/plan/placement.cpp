#include "plan/placement.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "plan/placement_text.hpp"

namespace weir::plan {

namespace {

using port::any_node;
using port::Cpu;
using port::HostTopology;

/// A stage that polls gets a physical core of its own, so this is what there is to give away.
struct Core {
    std::uint32_t cpu = 0;  ///< its lowest usable CPU
    std::uint32_t core = 0;
    int node = 0;
    bool isolated = false;
};

/// What one worker can take of an rx lcore's data: compressing is slower than receiving, copying together faster.
constexpr std::uint32_t workers_per_rx_reducing = 4;
constexpr std::uint32_t rx_per_worker_copying = 2;
constexpr std::uint32_t workers_max = 32;
constexpr std::size_t rx_max = 32;  ///< that are proposed: each steers to each
/// With fewer CPUs stages that poll would only take them from the threads that feed and write.
constexpr std::size_t cpus_min = 4;
constexpr std::uint32_t rx_per_builder = 4;  ///< descriptors of messages, not packets: a small part of what rx does

class Proposal {
public:
    Proposal(const HostTopology& host, const PlacementInput& input) : host_(host), input_(input) {}
    Placement make();

private:
    void collect_cores();
    void fuse();
    void place_rx();
    void place_build();
    void place_work();
    [[nodiscard]] int home_node() const;
    [[nodiscard]] std::vector<int> near_nodes() const;
    [[nodiscard]] std::size_t first_on(int node) const;
    [[nodiscard]] std::uint32_t take(std::size_t index);
    [[nodiscard]] std::uint32_t take_near();
    [[nodiscard]] std::size_t isolated_free() const {
        return static_cast<std::size_t>(std::ranges::count(free_, true, &Core::isolated));
    }

    const HostTopology& host_;
    const PlacementInput& input_;
    Placement out_;
    std::vector<Core> free_;  ///< isolated ones first, then by number
    std::size_t spare_ = 0;   ///< of those, that the stages after rx need
};

/// Physical cores that stages can have: not the one that is left to the kernel and to the threads that block, and none
/// that a given list has taken.
void Proposal::collect_cores() {
    std::map<std::uint32_t, Core> cores;
    for (const Cpu& cpu : host_.cpus) {
        if (!cpu.usable || cpu.id + 1 >= input_.lcore_ids) continue;
        const auto [at, fresh] = cores.try_emplace(cpu.core, Core{cpu.id, cpu.core, cpu.node, cpu.isolated});
        if (!fresh) at->second.isolated = at->second.isolated && cpu.isolated;
    }
    const auto left = std::ranges::find_if(cores, [](const auto& core) { return !core.second.isolated; });
    if (!cores.empty()) cores.erase(left == cores.end() ? cores.begin() : left);
    for (const auto* list : {&out_.rx, &out_.build, &out_.work})
        for (const std::uint32_t lcore : *list)
            if (const Cpu* cpu = host_.find(lcore); cpu != nullptr) cores.erase(cpu->core);
    for (const auto& [number, core] : cores) free_.push_back(core);
    std::ranges::stable_sort(free_, {}, [](const Core& core) { return !core.isolated; });
    // A control group that gets less CPU time than it sees CPUs would be stopped in the middle of polling.
    if (host_.cpu_quota > 0)
        free_.resize(std::min(free_.size(), static_cast<std::size_t>(std::max(host_.cpu_quota - 1, 0.0))));
}

/// Too few cores to give each stage one: everything on one lcore, which the kernel may move out of the way of the
/// threads that feed and write.
void Proposal::fuse() {
    out_.pin = !out_.rx.empty() || !out_.build.empty() || !out_.work.empty();
    const std::vector<std::uint32_t> usable = host_.usable();
    const std::uint32_t first = !out_.rx.empty()      ? out_.rx.front()
                                : !out_.build.empty() ? out_.build.front()
                                : !out_.work.empty()  ? out_.work.front()
                                                      : usable.front();
    for (auto* list : {&out_.rx, &out_.build, &out_.work})
        if (list->empty()) *list = {first};
}

/// For what is on no node: where there is most room for all of it, isolated cores above all.
int Proposal::home_node() const {
    std::size_t wanted = spare_;
    for (const auto& port : input_.ports) wanted += port.queues;
    std::map<int, std::pair<std::size_t, std::size_t>> room;
    for (const Core& core : free_) {
        auto& [isolated, any] = room[core.node];
        if (core.isolated) ++isolated;
        any = std::min(any + 1, wanted);
    }
    int best = any_node;
    for (const auto& [node, counts] : room)
        if (best == any_node || counts > room[best]) best = node;
    return best;
}

/// The nodes that packets arrive on, where most do first.
std::vector<int> Proposal::near_nodes() const {
    std::map<int, int> count;
    for (const std::uint32_t lcore : out_.rx)
        if (const Cpu* cpu = host_.find(lcore); cpu != nullptr) ++count[cpu->node];
    std::vector<int> nodes;
    for (const auto& [node, rx] : count) nodes.push_back(node);
    std::ranges::stable_sort(nodes, std::greater{}, [&](int node) { return count[node]; });
    return nodes;
}

std::size_t Proposal::first_on(int node) const {
    return static_cast<std::size_t>(std::ranges::find(free_, node, &Core::node) - free_.begin());
}

std::uint32_t Proposal::take(std::size_t index) {
    const std::uint32_t cpu = free_[index].cpu;
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(index));
    return cpu;
}

std::uint32_t Proposal::take_near() {
    for (const int node : near_nodes())
        if (const std::size_t found = first_on(node); found < free_.size()) return take(found);
    return take(0);
}

/// A core for each queue, as long as there are enough: on its device's node; where that has no more, its queues share
/// what they got there; where it has none at all, elsewhere.
void Proposal::place_rx() {
    struct Choice {
        std::uint32_t port = 0;
        std::uint32_t queue = 0;
        std::uint32_t cpu = 0;
    };
    std::vector<Choice> chosen;
    const int home = home_node();
    const auto is_near = [&](const Choice& choice, int node) { return host_.find(choice.cpu)->node == node; };
    const auto choose = [&](std::uint32_t port, std::uint32_t queue) {
        const int node = input_.ports[port].node == any_node ? home : input_.ports[port].node;
        if (queue >= input_.ports[port].queues || free_.size() <= spare_ || chosen.size() == rx_max) return;
        std::size_t found = first_on(node);
        if (found == free_.size()) {
            if (std::ranges::any_of(chosen, [&](const Choice& c) { return is_near(c, node); })) return;
            found = 0;
        }
        chosen.push_back({port, queue, take(found)});
    };
    std::uint32_t queues_max = 1;
    for (const auto& port : input_.ports) queues_max = std::max<std::uint32_t>(queues_max, port.queues);
    // In turns, so that few cores are shared out fairly; ports that could be anywhere come after those that could not.
    for (std::uint32_t queue = 0; queue < (input_.replay ? 1 : queues_max); ++queue)
        for (const bool anywhere : {false, true})
            for (std::uint32_t port = 0; port < input_.ports.size(); ++port) {
                if (input_.replay && !chosen.empty()) break;
                if ((input_.ports[port].node == any_node) == anywhere) choose(port, queue);
            }
    std::ranges::sort(chosen, {}, [](const Choice& c) { return std::tuple(c.port, c.queue); });
    for (const Choice& choice : chosen) out_.rx.push_back(choice.cpu);
}

void Proposal::place_build() {
    const std::size_t wanted = std::min<std::size_t>((out_.rx.size() + rx_per_builder - 1) / rx_per_builder,
                                                     std::max<std::uint32_t>(input_.build_max, 1));
    const std::size_t for_work = out_.work.empty() ? 1 : 0;
    while (out_.build.size() < wanted && (out_.build.empty() || free_.size() > for_work))
        out_.build.push_back(take_near());
}

void Proposal::place_work() {
    if (free_.empty()) {
        out_.work = {out_.build.front()};
        return;
    }
    std::size_t wanted = 1;  // nothing to reduce and nothing to write: it only counts
    if (input_.reduces)
        wanted = out_.rx.size() * workers_per_rx_reducing;
    else if (input_.writes)
        wanted = (out_.rx.size() + rx_per_worker_copying - 1) / rx_per_worker_copying;
    wanted = std::min<std::size_t>({wanted, workers_max, free_.size()});
    // Where some cores are isolated the others are the kernel's, but for what cannot do without.
    if (isolated_free() > 0) wanted = std::min(wanted, isolated_free());
    while (wanted > 1 && rings_between(out_.rx.size(), out_.build.size(), wanted) > input_.rings_max) --wanted;
    while (out_.work.size() < wanted) out_.work.push_back(take_near());
}

Placement Proposal::make() {
    out_.rx = input_.lcores.rx;
    out_.build = input_.lcores.build;
    out_.work = input_.lcores.work;
    const bool rx = out_.rx.empty();
    spare_ = (out_.build.empty() ? 1U : 0U) + (out_.work.empty() ? 1U : 0U);
    out_.proposed = rx || spare_ > 0;
    if (!out_.proposed) return out_;
    collect_cores();
    // Without a core of its own for each stage, builder and worker share one: both wait for rx, which waits for nobody.
    if (rx && spare_ == 2 && free_.size() == 2) spare_ = 1;
    if (host_.usable().size() < cpus_min || free_.size() < spare_ + (rx ? 1 : 0)) {
        fuse();
        return out_;
    }
    if (rx) place_rx();
    if (out_.build.empty()) place_build();
    if (out_.work.empty()) place_work();
    return out_;
}

/// Every queue to an rx lcore: the one with the fewest queues, of those on the device's node if there are any.
void assign_queues(const HostTopology& host, const PlacementInput& input, Placement& placement) {
    std::vector<std::uint32_t> load(placement.rx.size());
    for (std::uint32_t port = 0; port < input.ports.size() && !input.replay; ++port) {
        const int node = input.ports[port].node;
        std::vector<std::uint32_t> candidates;
        for (std::uint32_t rx = 0; rx < placement.rx.size(); ++rx)
            if (node != any_node && placement.node_of(host, placement.rx[rx]) == node) candidates.push_back(rx);
        placement.near.push_back(candidates);
        if (candidates.empty()) {
            candidates.resize(placement.rx.size());
            std::iota(candidates.begin(), candidates.end(), 0U);
        }
        for (std::uint32_t queue = 0; queue < input.ports[port].queues; ++queue) {
            const std::uint32_t rx =
                *std::ranges::min_element(candidates, {}, [&](std::uint32_t i) { return load[i]; });
            ++load[rx];
            placement.queues.push_back({port, queue, rx});
        }
    }
}

/// For threads that block: what no stage polls on, nor a sibling of it, and nobody has isolated; or else what is left.
/// In a replay, which loses nothing meanwhile, and on a small machine the kernel finds them the best place itself.
void leave_housekeeping(const HostTopology& host, const PlacementInput& input, Placement& placement) {
    const bool anywhere = input.replay || !placement.pin || host.usable().size() < cpus_min;
    const std::vector<std::uint32_t> lcores = anywhere ? std::vector<std::uint32_t>{} : placement.lcores();
    const auto polled = [&](std::uint32_t cpu) { return std::ranges::binary_search(lcores, cpu); };
    const auto core_polled = [&](const Cpu& cpu) {
        return std::ranges::any_of(host.cpus, [&](const Cpu& c) { return c.core == cpu.core && polled(c.id); });
    };
    const auto collect = [&](auto&& good) {
        if (!placement.housekeeping.empty()) return;
        for (const Cpu& cpu : host.cpus)
            if (cpu.usable && good(cpu)) placement.housekeeping.push_back(cpu.id);
    };
    collect([&](const Cpu& cpu) { return !cpu.isolated && !core_polled(cpu); });
    collect([&](const Cpu& cpu) { return !core_polled(cpu); });
    collect([&](const Cpu& cpu) { return !cpu.isolated && !polled(cpu.id); });
    collect([&](const Cpu& cpu) { return !polled(cpu.id); });
    collect([](const Cpu&) { return true; });
}

}  // namespace

std::uint32_t Placement::rx_of_queue(std::uint32_t port, std::uint32_t queue) const noexcept {
    for (const Queue& polled : queues)
        if (polled.port == port && polled.queue == queue) return polled.rx;
    return (port + queue) % static_cast<std::uint32_t>(rx.size());
}

std::vector<std::uint32_t> Placement::lcores() const {
    std::vector<std::uint32_t> all;
    for (const auto* list : {&rx, &build, &work}) all.insert(all.end(), list->begin(), list->end());
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

int Placement::node_of(const HostTopology& host, std::uint32_t lcore) const noexcept {
    const Cpu* cpu = pin ? host.find(lcore) : nullptr;
    return cpu != nullptr && cpu->usable ? cpu->node : any_node;
}

Placement place(const HostTopology& host, const PlacementInput& input) {
    Placement placement = Proposal(host, input).make();
    assign_queues(host, input, placement);
    leave_housekeeping(host, input, placement);
    explain(host, input, placement);
    return placement;
}

}  // namespace weir::plan

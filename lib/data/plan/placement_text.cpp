#include "plan/placement_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace weir::plan {

namespace {

using port::any_node;
using port::Cpu;
using port::HostTopology;

/// "lcore 4", "lcores 4-6,8".
std::string named(const std::vector<std::uint32_t>& lcores) {
    return fmt::format("lcore{} {}", lcores.size() > 1 ? "s" : "", port::cpu_list_text(lcores));
}

class Words {
public:
    Words(const HostTopology& host, const PlacementInput& input, const Placement& placement)
        : host_(host), input_(input), placement_(placement), lcores_(placement.lcores()) {}

    [[nodiscard]] std::string line(std::uint32_t lcore) const {
        return fmt::format("lcore {}: {} ({})", lcore, stages(lcore), where(lcore));
    }
    [[nodiscard]] std::string others() const {
        std::vector<std::string> threads;
        if (input_.replay) threads.emplace_back("capture reader");
        if (input_.writes) threads.emplace_back("writer");
        threads.emplace_back("control");
        return fmt::format("other threads ({}): CPUs {}", fmt::join(threads, ", "),
                           port::cpu_list_text(placement_.housekeeping));
    }
    [[nodiscard]] std::vector<std::string> warnings() const;

private:
    [[nodiscard]] std::string stages(std::uint32_t lcore) const;
    [[nodiscard]] std::string where(std::uint32_t lcore) const;
    [[nodiscard]] bool receives(std::uint32_t lcore) const {
        return std::ranges::find(placement_.rx, lcore) != placement_.rx.end();
    }
    /// The CPU that an lcore is bound to; null where it floats.
    [[nodiscard]] const Cpu* bound(std::uint32_t lcore) const {
        const Cpu* cpu = placement_.pin ? host_.find(lcore) : nullptr;
        return cpu != nullptr && cpu->usable ? cpu : nullptr;
    }
    [[nodiscard]] std::vector<std::uint32_t> usable_on(int node) const {
        std::vector<std::uint32_t> cpus;
        for (const Cpu& cpu : host_.cpus)
            if (cpu.usable && cpu.node == node) cpus.push_back(cpu.id);
        return cpus;
    }
    void warn_of_absent(std::vector<std::string>& out) const;
    void warn_of_ports(std::vector<std::string>& out) const;
    void warn_of_stages(std::vector<std::string>& out) const;
    void warn_of_siblings(std::vector<std::string>& out) const;
    void warn_of_core_0(std::vector<std::string>& out) const;
    void warn_of_interruptions(std::vector<std::string>& out) const;
    void warn_of_crowding(std::vector<std::string>& out) const;

    const HostTopology& host_;
    const PlacementInput& input_;
    const Placement& placement_;
    std::vector<std::uint32_t> lcores_;
};

std::string Words::stages(std::uint32_t lcore) const {
    std::vector<std::string> parts;
    const auto add = [&](const char* name, const std::vector<std::uint32_t>& list) {
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (list[i] != lcore) continue;
            std::string part = list.size() == 1 ? name : fmt::format("{} {}", name, i);
            if (&list == &placement_.rx) {
                if (input_.replay && i == 0) part += " captures";
                std::map<std::uint32_t, std::vector<std::uint32_t>> queues;
                for (const Placement::Queue& queue : placement_.queues)
                    if (queue.rx == i) queues[queue.port].push_back(queue.queue);
                for (const auto& [port, numbers] : queues)
                    part += fmt::format(" {} queue{} {}", input_.ports[port].name, numbers.size() > 1 ? "s" : "",
                                        port::cpu_list_text(numbers));
            }
            parts.push_back(part);
        }
    };
    add("rx", placement_.rx);
    add("build", placement_.build);
    add("work", placement_.work);
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string Words::where(std::uint32_t lcore) const {
    const Cpu* cpu = bound(lcore);
    if (cpu == nullptr) return "not bound, CPUs " + port::cpu_list_text(host_.usable());
    return fmt::format("node {}, core {}{}{}", cpu->node, cpu->core, cpu->isolated ? ", isolated" : "",
                       cpu->tickless ? ", no tick" : "");
}

void Words::warn_of_absent(std::vector<std::string>& out) const {
    std::vector<std::uint32_t> absent;
    std::vector<std::uint32_t> forbidden;
    for (const std::uint32_t lcore : lcores_) {
        if (!placement_.pin || bound(lcore) != nullptr) continue;
        (host_.find(lcore) == nullptr ? absent : forbidden).push_back(lcore);
    }
    const auto warn = [&](const std::vector<std::uint32_t>& list, const char* why) {
        if (!list.empty())
            out.push_back(fmt::format("{}: {}, and what runs there floats over CPUs {}, among the other threads",
                                      named(list), why, port::cpu_list_text(host_.usable())));
    };
    warn(absent, "this machine has no such CPU");
    warn(forbidden, "this process may not use the CPU (affinity or cpuset)");
}

void Words::warn_of_ports(std::vector<std::string>& out) const {
    for (std::uint32_t port = 0; port < input_.ports.size() && !input_.replay; ++port) {
        const int node = input_.ports[port].node;
        std::vector<std::uint32_t> far;
        for (const Placement::Queue& queue : placement_.queues) {
            const int here = placement_.node_of(host_, placement_.rx[queue.rx]);
            if (queue.port == port && node != any_node && here != any_node && here != node)
                far.push_back(placement_.rx[queue.rx]);
        }
        if (far.empty()) continue;
        const std::vector<std::uint32_t> near = usable_on(node);
        out.push_back(fmt::format(
            "port '{}' is on NUMA node {}, its packets are taken on another ({}): each crosses between the nodes ({})",
            input_.ports[port].name, node, named(far),
            near.empty() ? fmt::format("this process may use no CPU of node {}", node)
                         : fmt::format("CPUs of node {}: {}", node, port::cpu_list_text(near))));
    }
}

void Words::warn_of_stages(std::vector<std::string>& out) const {
    std::vector<int> nodes;
    for (const std::uint32_t lcore : placement_.rx)
        if (const int node = placement_.node_of(host_, lcore); node != any_node) nodes.push_back(node);
    if (nodes.empty()) return;
    std::vector<std::uint32_t> far;
    for (const auto* list : {&placement_.build, &placement_.work})
        for (const std::uint32_t lcore : *list) {
            const int node = placement_.node_of(host_, lcore);
            if (node != any_node && std::ranges::find(nodes, node) == nodes.end()) far.push_back(lcore);
        }
    if (!far.empty())
        out.push_back(
            fmt::format("{}: building or reducing on a NUMA node where nothing is received (rx is on node {}): "
                        "the data cross between the nodes",
                        named(far), nodes.front()));
}

void Words::warn_of_siblings(std::vector<std::string>& out) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> cores;
    for (const std::uint32_t lcore : lcores_)
        if (const Cpu* cpu = bound(lcore); cpu != nullptr) cores[cpu->core].push_back(lcore);
    for (const auto& [core, lcores] : cores)
        if (lcores.size() > 1)
            out.push_back(fmt::format("{} are threads of one physical core: each gets about half of what it does",
                                      named(lcores)));
}

void Words::warn_of_core_0(std::vector<std::string>& out) const {
    if (input_.replay) return;  // nothing is lost while it waits
    const Cpu* first = host_.find(0);
    for (const std::uint32_t lcore : lcores_)
        if (const Cpu* cpu = bound(lcore);
            cpu != nullptr && first != nullptr && receives(lcore) && cpu->core == first->core)
            out.push_back(
                fmt::format("lcore {}: receiving on core 0, where interrupts and the kernel's own work are served; "
                            "the queue fills up meanwhile",
                            lcore));
}

void Words::warn_of_interruptions(std::vector<std::string>& out) const {
    if (input_.replay) return;
    std::vector<std::uint32_t> isolated;
    for (const Cpu& cpu : host_.cpus)
        if (cpu.usable && cpu.isolated) isolated.push_back(cpu.id);
    std::vector<std::uint32_t> interrupted;
    for (const std::uint32_t lcore : lcores_)
        if (const Cpu* cpu = bound(lcore); cpu != nullptr && receives(lcore) && !cpu->isolated)
            interrupted.push_back(lcore);
    if (!isolated.empty() && !interrupted.empty())
        out.push_back(
            fmt::format("{}: receiving on CPUs that the kernel gives to other programs too, "
                        "while CPUs {} are isolated",
                        named(interrupted), port::cpu_list_text(isolated)));
}

void Words::warn_of_crowding(std::vector<std::string>& out) const {
    const char* and_spin =
        input_.lcores.idle == config::IdleMode::spin ? ", and idle = \"spin\" never gives one back" : "";
    if (lcores_.size() > host_.usable().size())
        out.push_back(fmt::format("{} lcores poll on {} CPUs: they take turns of milliseconds{}", lcores_.size(),
                                  host_.usable().size(), and_spin));
    else if (host_.cpu_quota > 0 && static_cast<double>(lcores_.size()) > host_.cpu_quota &&
             input_.lcores.idle != config::IdleMode::sleep)
        out.push_back(
            fmt::format("{} lcores poll, and the control group allows the time of {:.1f} CPUs: "
                        "the kernel will stop them for milliseconds (idle = \"sleep\" helps)",
                        lcores_.size(), host_.cpu_quota));
}

std::vector<std::string> Words::warnings() const {
    std::vector<std::string> out;
    warn_of_absent(out);
    warn_of_ports(out);
    warn_of_stages(out);
    warn_of_siblings(out);
    warn_of_core_0(out);
    warn_of_interruptions(out);
    warn_of_crowding(out);
    return out;
}

}  // namespace

void explain(const HostTopology& host, const PlacementInput& input, Placement& placement) {
    const Words words(host, input, placement);
    for (const std::uint32_t lcore : placement.lcores()) placement.lines.push_back(words.line(lcore));
    placement.lines.push_back(words.others());
    placement.warnings = words.warnings();
}

nlohmann::json topology_json(const HostTopology& host) {
    std::vector<std::uint32_t> all;
    std::vector<std::uint32_t> isolated;
    std::map<int, std::vector<std::uint32_t>> of_node;
    for (const Cpu& cpu : host.cpus) {
        all.push_back(cpu.id);
        if (cpu.isolated) isolated.push_back(cpu.id);
        of_node[cpu.node].push_back(cpu.id);
    }
    nlohmann::json json{{"cpus", port::cpu_list_text(all)},
                        {"usable", port::cpu_list_text(host.usable())},
                        {"isolated", port::cpu_list_text(isolated)},
                        {"cores", host.cores()},
                        {"nodes", nlohmann::json::array()}};
    if (host.cpu_quota > 0) json["cpu_quota"] = host.cpu_quota;
    for (const port::NumaNode& node : host.nodes)
        json["nodes"].push_back({{"id", node.id},
                                 {"cpus", port::cpu_list_text(of_node[node.id])},
                                 {"memory_bytes", node.memory_bytes},
                                 {"hugepage_bytes", node.hugepage_bytes},
                                 {"hugepage_free_bytes", node.hugepage_free_bytes}});
    return json;
}

nlohmann::json placement_json(const HostTopology& host, const Placement& placement) {
    nlohmann::json json{{"proposed", placement.proposed},
                        {"bound", placement.pin},
                        {"housekeeping", port::cpu_list_text(placement.housekeeping)},
                        {"lcores", nlohmann::json::array()},
                        {"text", placement.lines}};
    const auto indices = [](const std::vector<std::uint32_t>& list, std::uint32_t lcore) {
        nlohmann::json out = nlohmann::json::array();
        for (std::size_t i = 0; i < list.size(); ++i)
            if (list[i] == lcore) out.push_back(i);
        return out;
    };
    for (const std::uint32_t lcore : placement.lcores()) {
        nlohmann::json item{{"lcore", lcore},
                            {"rx", indices(placement.rx, lcore)},
                            {"build", indices(placement.build, lcore)},
                            {"work", indices(placement.work, lcore)}};
        if (const Cpu* cpu = host.find(lcore); cpu != nullptr && placement.node_of(host, lcore) != any_node)
            item.update({{"node", cpu->node}, {"core", cpu->core}, {"isolated", cpu->isolated}});
        json["lcores"].push_back(item);
    }
    return json;
}

}  // namespace weir::plan

// Memory: hugepages and their mount, what is free, what may be locked, and whether an event has room at all.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "config/device_facts.hpp"
#include "doctor/check.hpp"

namespace weir::doctor {

namespace {

constexpr std::uint64_t mib_bytes = std::uint64_t{1} << 20U;

std::uint64_t whole_mib(std::uint64_t bytes) {
    return (bytes + mib_bytes - 1) / mib_bytes;
}

bool has_pci(const CheckInput& subject) {
    return subject.run != nullptr && std::ranges::any_of(subject.run->config->ports, [](const auto& port) {
               return config::is_pci_address(port.device);
           });
}

std::string hugepages_file(const HostFacts& host, int node, std::uint32_t page_kib) {
    const std::string folder = host.hugepages_by_node ? fmt::format("/sys/devices/system/node/node{}/hugepages", node)
                                                      : "/sys/kernel/mm/hugepages";
    return fmt::format("{}/hugepages-{}kB/nr_hugepages", folder, page_kib);
}

/// What is needed beyond this is slack: headers of the sum's parts, and what DPDK keeps for itself.
constexpr std::uint64_t slack_bytes = 64 * mib_bytes;

/// Of one node. `enough_in_all`: the machine has the pages, if elsewhere.
Finding hugepages_of_node(const CheckInput& subject, int node, std::uint64_t wanted, bool enough_in_all) {
    const HostFacts& host = subject.host;
    std::uint64_t free = 0;
    const HugePages* smallest = nullptr;
    for (const HugePages& pages : host.hugepages) {
        if (pages.node != node) continue;
        free += pages.free * pages.page_kib * 1024;
        if (smallest == nullptr || pages.page_kib < smallest->page_kib) smallest = &pages;
    }
    Finding finding{.about = fmt::format("node {}", node),
                    .found = fmt::format("{} MiB of free hugepages", free / mib_bytes),
                    .wanted = fmt::format("{} MiB", whole_mib(wanted)),
                    .why = "packet buffers of a card lie in hugepages, on the node of the lcores that use them"};
    if (free >= wanted) return finding;
    finding.status = enough_in_all ? Status::warning : Status::error;
    finding.why = enough_in_all ? "the rest comes from another node, and every packet there crosses between the sockets"
                                : "packet buffers of a card lie in hugepages: without them the run does not start";
    if (smallest == nullptr) {
        finding.mend = "boot with hugepagesz=1G or 2M and hugepages=N on the kernel's command line";
        return finding;
    }
    const std::uint64_t page = std::uint64_t{smallest->page_kib} * 1024;
    const std::uint64_t pages = smallest->total + (wanted - free + page - 1) / page;
    return with_fix(std::move(finding),
                    {write_to(hugepages_file(host, node, smallest->page_kib), std::to_string(pages))}, "the next boot");
}

std::vector<Finding> check_hugepages(const CheckInput& subject) {
    if (!has_pci(subject)) return {};
    const HostFacts& host = subject.host;
    if (host.hugepages.empty())
        return {{.status = Status::error,
                 .found = "a kernel without hugepages",
                 .wanted = "hugepages",
                 .why = "packet buffers of a card lie in hugepages: without them the run does not start",
                 .mend = "boot a kernel that has hugetlbfs (CONFIG_HUGETLBFS)"}};
    std::uint64_t free = 0;
    for (const HugePages& pages : host.hugepages) free += pages.free * pages.page_kib * 1024;
    const std::vector<std::uint64_t>& wanted = subject.run->plan->node_wanted_bytes;
    const std::uint64_t sum = std::accumulate(wanted.begin(), wanted.end(), std::uint64_t{0});
    std::vector<Finding> findings;
    for (std::size_t node = 0; node < wanted.size(); ++node)
        if (wanted[node] > 0)
            findings.push_back(hugepages_of_node(subject, static_cast<int>(node), wanted[node],
                                                 free + slack_bytes >= sum && free > 0));
    return findings;
}

std::vector<Finding> check_hugetlbfs(const CheckInput& subject) {
    if (!has_pci(subject)) return {};
    const HostFacts& host = subject.host;
    Finding finding{.wanted = "a mount of type hugetlbfs", .why = "DPDK takes hugepages from files there"};
    if (!host.mounts) {
        finding.status = Status::unknown;
        finding.why = host.mounts.why;
        return {finding};
    }
    const auto mount = std::ranges::find(*host.mounts, "hugetlbfs", &Mount::type);
    if (mount != host.mounts->end()) {
        finding.found = fmt::format("hugetlbfs at {}", mount->where);
        return {finding};
    }
    finding.status = Status::error;
    finding.found = "hugetlbfs is not mounted";
    finding.why = "DPDK takes hugepages from files there: without it the run does not start";
    return {with_fix(
        std::move(finding),
        {execute({"mkdir", "-p", "/dev/hugepages"}), execute({"mount", "-t", "hugetlbfs", "none", "/dev/hugepages"})},
        "the next boot")};
}

std::vector<Finding> check_dpdk_service(const CheckInput& subject) {
    if (!has_pci(subject)) return {};
    const auto& service = subject.host.dpdk_service;
    Finding finding{.wanted = "dpdk.service off", .why = "Debian's dpdk.service frees hugepages at boot"};
    if (!service) {
        finding.status = Status::unknown;
        finding.why = service.why;
        return {finding};
    }
    finding.found = service->masked ? "dpdk.service is masked" : "dpdk.service is off";
    if (!service->enabled || service->masked || !service->frees) {
        if (service->enabled && !service->masked) finding.found = "dpdk.service is on, and leaves hugepages alone";
        return {finding};
    }
    finding.status = Status::warning;
    finding.found = "dpdk.service is switched on";
    finding.why =
        "at the next boot it gives back the hugepages that were reserved on the kernel's command line "
        "(FREE_PREVIOUS_ALLOCATIONS in /etc/dpdk/dpdk.conf)";
    finding.mend = "systemctl mask dpdk.service";
    finding.fix = {execute({"systemctl", "mask", "dpdk.service"})};
    return {finding};
}

std::vector<Finding> check_memory(const CheckInput& subject) {
    if (subject.run == nullptr) return {};
    const plan::MemoryNeed& need = subject.run->plan->memory;
    const port::FreeMemory& free = subject.host.memory;
    Finding finding{.wanted = need.text(), .why = "all memory is taken at the start, and none later"};
    if (!free.known) {
        finding.status = Status::unknown;
        finding.why = "/proc/meminfo does not say how much is free";
        return {finding};
    }
    finding.found = fmt::format("{} MiB are free of {}", free.bytes / mib_bytes, free.limited_by);
    // What lies in hugepages is not taken from there.
    const std::uint64_t ordinary = need.sum() - (has_pci(subject) ? need.dpdk_bytes : 0);
    if (ordinary <= free.bytes) return {finding};
    finding.status = Status::error;
    finding.why = "the run does not start: the kernel would end a process in the middle of the beam";
    finding.mend = "a smaller `memory` in [events], or end what else uses memory here";
    return {finding};
}

/// Payload that all packet buffers and cells of the plan have room for. `payload`: of the largest packet, which has a
/// buffer to itself unless it is copied.
std::uint64_t event_room(const plan::Plan& plan, std::uint32_t payload) {
    const std::uint64_t buffers = std::uint64_t{plan.buffers_per_rx} * plan.rx.size();
    if (plan.copies.cells == 0) return buffers * payload;
    return buffers * plan.room_bytes + std::uint64_t{plan.copies.cells} * plan.rx.size() * plan.copies.cell_bytes;
}

std::vector<Finding> check_event_memory(const CheckInput& subject) {
    if (subject.run == nullptr) return {};
    const PlannedRun& run = *subject.run;
    std::uint64_t event = 0;
    std::uint32_t payload = 0;
    for (const stages::SourceGeometry& source : run.geometry) {
        if (source.message_bytes == 0 || source.packet_payload_bytes == 0) return {};
        event += source.message_bytes;
        payload = std::max(payload, source.packet_payload_bytes);
    }
    // Frames that RDMA peers write into memory take no buffers.
    const bool regions =
        std::ranges::any_of(run.config->streams, [](const auto& s) { return !s.roce.regions.empty(); });
    if (regions) return {};
    const std::uint64_t room = event_room(*run.plan, payload);
    Finding finding{.found = fmt::format("{} for events of {}", bytes_text(static_cast<double>(room)),
                                         bytes_text(static_cast<double>(event))),
                    .wanted = "room for several events",
                    .why = "an event is kept until its last source has come"};
    const std::uint64_t comfortable =
        static_cast<std::uint64_t>(subject.load.bytes_per_s() * run.config->events.timeout_ms / 1000);
    if (room < event) {
        finding.status = Status::error;
        finding.why = "an event does not fit into the memory of all open events, so none will ever be complete";
        finding.mend = fmt::format("memory = \"{}MiB\" in [events]", whole_mib(4 * event));
    } else if (room < 2 * event || room < comfortable) {
        finding.status = Status::warning;
        finding.sure = Sure::likely;
        finding.wanted = room < 2 * event
                             ? "room for two events and more"
                             : fmt::format("{}: what comes within the time-out of {} ms at {}",
                                           bytes_text(static_cast<double>(comfortable)), run.config->events.timeout_ms,
                                           bit_rate_text(subject.load.bits_per_s));
        finding.why =
            "when a source falls silent, events stay open for as long as the time-out, and then older ones are evicted";
        finding.mend = fmt::format("memory = \"{}MiB\" in [events]", whole_mib(std::max(2 * comfortable, 4 * event)));
    }
    return {finding};
}

std::vector<Finding> check_memlock(const CheckInput& subject) {
    if (subject.run == nullptr) return {};
    const HostFacts& host = subject.host;
    Finding finding{.wanted = "the memory of the run may be locked",
                    .why = "memory that is not locked may be swapped out or moved, and the lcore waits meanwhile"};
    if (host.may_lock) {
        finding.found = "CAP_IPC_LOCK: all memory may be locked";
        return {finding};
    }
    if (!host.memlock) {
        finding.status = Status::unknown;
        finding.why = host.memlock.why;
        return {finding};
    }
    const bool unlimited = *host.memlock == std::numeric_limits<std::uint64_t>::max();
    finding.found = unlimited ? "unlimited" : fmt::format("{} KiB may be locked", *host.memlock / 1024);
    finding.wanted = fmt::format("{} MiB", whole_mib(subject.run->plan->memory.sum()));
    if (*host.memlock >= subject.run->plan->memory.sum()) return {finding};
    finding.status = Status::warning;
    finding.sure = Sure::possible;
    finding.mend = "LimitMEMLOCK=infinity in the unit, or ulimit -l unlimited in the shell that starts weir";
    return {finding};
}

std::vector<Finding> check_open_files(const CheckInput& subject) {
    if (subject.run == nullptr) return {};
    const HostFacts& host = subject.host;
    constexpr std::uint64_t of_the_rest = 256;  // sinks, devices, sockets
    std::uint64_t pages = 0;
    if (has_pci(subject)) {
        std::uint64_t page_kib = 2048;
        for (const HugePages& some : host.hugepages)
            if (some.free > 0) page_kib = std::max<std::uint64_t>(page_kib, some.page_kib);
        pages = subject.run->plan->eal_memory_bytes / (page_kib * 1024) + 1;
    }
    Finding finding{.wanted = fmt::format("{} open files", pages + of_the_rest),
                    .why = "DPDK keeps a file open for every hugepage, and sinks have theirs"};
    if (!host.open_files) {
        finding.status = Status::unknown;
        finding.why = host.open_files.why;
        return {finding};
    }
    const bool unlimited = *host.open_files == std::numeric_limits<std::uint64_t>::max();
    finding.found = unlimited ? "unlimited" : fmt::format("{} at most", *host.open_files);
    if (*host.open_files >= pages + of_the_rest) return {finding};
    finding.status = pages > *host.open_files ? Status::error : Status::warning;
    finding.sure = finding.status == Status::error ? Sure::certain : Sure::likely;
    finding.mend = fmt::format("LimitNOFILE={0} in the unit, or ulimit -n {0} in the shell that starts weir",
                               std::max<std::uint64_t>(65536, 2 * pages));
    return {finding};
}

}  // namespace

std::vector<Check> memory_checks() {
    return {
        {"hugepages", "memory",
         "free hugepages on each NUMA node, against what the plan takes there (PCI devices only)", true,
         check_hugepages},
        {"hugetlbfs", "memory", "whether hugetlbfs is mounted (PCI devices only)", true, check_hugetlbfs},
        {"dpdk_service", "memory", "whether Debian's dpdk.service will free reserved hugepages at the next boot", false,
         check_dpdk_service},
        {"memory", "memory", "free memory, against the sum of everything that the run takes at its start", false,
         check_memory},
        {"event_memory", "memory", "the room for open events, against the size of an event and the rate", true,
         check_event_memory},
        {"memlock", "memory", "whether the run may lock its memory", false, check_memlock},
        {"open_files", "memory", "how many files a process may open, against hugepages and sinks", false,
         check_open_files},
    };
}

}  // namespace weir::doctor

#include "port/eal.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core/allocation_context.hpp"
#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "core/refused_memory.hpp"
#include "core/resident_memory.hpp"

namespace weir::port {

std::vector<std::uint32_t> usable_cpus() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<std::uint32_t> cpus;
    if (::sched_getaffinity(0, sizeof set, &set) == 0)
        for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
            if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    if (cpus.empty()) cpus.push_back(0);
    return cpus;
}

namespace {

std::mutex log_mutex;
bool log_captured = false;
std::string log_text;

ssize_t write_log(void*, const char* bytes, std::size_t count) {
    constexpr std::size_t text_bytes_max = 4096;
    const std::lock_guard lock(log_mutex);
    if (!log_captured) return ::write(STDERR_FILENO, bytes, count);
    log_text.append(bytes, std::min(count, text_bytes_max - std::min(text_bytes_max, log_text.size())));
    return static_cast<ssize_t>(count);
}

/// DPDK's log stream is ours from the first call on.
void take_log() {
    static std::FILE* stream = nullptr;
    if (stream != nullptr) return;
    cookie_io_functions_t functions{};
    functions.write = write_log;
    stream = ::fopencookie(nullptr, "w", functions);
    if (stream == nullptr) return;
    ::setvbuf(stream, nullptr, _IOLBF, 0);
    ::rte_openlog_stream(stream);
}

std::string lcore_map(const EalConfig& config) {
    const auto or_all = [](const std::vector<std::uint32_t>& cpus) { return cpus.empty() ? usable_cpus() : cpus; };
    const std::vector<std::uint32_t> cpus = or_all(config.cpus);
    const std::string all = fmt::format("{}", fmt::join(usable_cpus(), ","));
    std::uint32_t main = RTE_MAX_LCORE - 1;
    while (std::ranges::find(config.lcores, main) != config.lcores.end()) --main;
    std::string map = fmt::format("{}@({})", main, fmt::join(or_all(config.other_cpus), ","));
    for (const std::uint32_t lcore : config.lcores) {
        const bool own = config.pin && std::ranges::find(cpus, lcore) != cpus.end();
        map += own ? fmt::format(",{0}@{0}", lcore) : fmt::format(",{}@({})", lcore, all);
    }
    return fmt::format("{} --main-lcore={}", map, main);
}

}  // namespace

namespace {

/// Where EAL makes its files for a prefix: as DPDK 22.11 decides it.
std::string runtime_folder(const std::string& prefix) {
    const char* root = "/var/run";
    if (::getuid() != 0) {
        root = ::getenv("XDG_RUNTIME_DIR");
        if (root == nullptr) root = "/tmp";
    }
    return fmt::format("{}/dpdk/{}", root, prefix);
}

std::string telemetry_folder;

/// Runs that are there at the same time must not share a name: the second one would answer for nobody.
void take_telemetry_name(const std::string& name, std::vector<std::string>& args) {
    telemetry_folder = runtime_folder(name);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = telemetry_folder + "/dpdk_telemetry.v2";
    if (path.size() >= sizeof address.sun_path)
        throw core::UsageError(fmt::format("--telemetry {}: the name is too long for a socket ({})", name, path));
    path.copy(address.sun_path, path.size());
    const int probe = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const bool taken = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(probe);
    if (taken) throw core::RunError(fmt::format("--telemetry {}: another program answers at {}", name, path));
    args.push_back("--file-prefix=" + name);
    // Functions for the end run in reverse order: DPDK removes its socket first, then the folder is empty.
    std::atexit([] { ::rmdir(telemetry_folder.c_str()); });
}

}  // namespace

LogCapture::LogCapture() {
    take_log();
    const std::lock_guard lock(log_mutex);
    log_captured = true;
    log_text.clear();
}

LogCapture::~LogCapture() {
    const std::lock_guard lock(log_mutex);
    log_captured = false;
}

std::string LogCapture::text() {
    const std::lock_guard lock(log_mutex);
    std::string line;
    for (const char c : log_text) {
        if (c != '\n')
            line += c;
        else if (!line.ends_with("; ") && !line.empty())
            line += "; ";
    }
    while (line.ends_with(' ') || line.ends_with(';')) line.pop_back();
    return line;
}

namespace {

/// EAL ends the process where there is no room for the thread of an lcore, so that is tried before. `bytes`: what EAL
/// takes apart from that. Throws std::bad_alloc, or std::system_error.
void try_room(std::uint64_t bytes, std::size_t threads) {
    const core::AllocationContext allocating("DPDK");
    void* const memory = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) core::refuse_memory(bytes);
    const auto unmap = [bytes](void* mapped) { ::munmap(mapped, bytes); };
    const std::unique_ptr<void, decltype(unmap)> held(memory, unmap);
    std::mutex gate;
    std::vector<std::jthread> tried;
    const std::scoped_lock closed(gate);  // opens first, on every way out
    for (std::size_t i = 0; i < threads; ++i) tried.emplace_back([&gate] { const std::scoped_lock passed(gate); });
}

/// EAL takes a CPU that /sys does not show for one that is not there, and answers with the list of its options.
void need_sysfs() {
    const std::string cpu = fmt::format("/sys/devices/system/cpu/cpu{}/topology/core_id", usable_cpus().front());
    if (::access(cpu.c_str(), F_OK) == 0) return;
    throw core::RunError(
        fmt::format("DPDK could not start: it looks for the CPUs in /sys, and {} is not there; in a chroot or a "
                    "container, mount it: mount -t sysfs sysfs /sys",
                    cpu));
}

/// "512,0,128": MiB by node; empty if nothing is to be taken. The rest comes when it is needed, from where there is
/// some.
std::string node_memory(const EalConfig& config) {
    std::vector<std::uint64_t> mib;
    for (const std::uint64_t bytes : config.node_memory_bytes) mib.push_back(bytes == 0 ? 0 : (bytes >> 20U) + 1);
    if (std::ranges::all_of(mib, [](std::uint64_t m) { return m == 0; })) return {};
    return fmt::format("{}", fmt::join(mib, ","));
}

/// What the StandingEal was started with, if there is one.
std::optional<EalConfig> standing;
bool ending = false;

/// Empty, or what is asked for and is not there.
std::string lacking(const EalConfig& has, const EalConfig& needs) {
    if (!needs.pci.empty()) return "PCI devices";
    if (!needs.telemetry.empty()) return "telemetry";
    for (const std::uint32_t lcore : needs.lcores)
        if (std::ranges::find(has.lcores, lcore) == has.lcores.end()) return fmt::format("lcore {}", lcore);
    if (has.drivers && !needs.drivers) return "all drivers";
    for (const std::string& driver : needs.drivers.value_or(std::vector<std::string>()))
        if (has.drivers && std::ranges::find(*has.drivers, driver) == has.drivers->end()) return "the driver " + driver;
    if (const std::uint64_t free = StandingEal::free_bytes(); needs.memory_bytes > free)
        return fmt::format("{} bytes of memory, of which it has {}", needs.memory_bytes, free);
    return {};
}

/// Before anybody uses it: page by page, at the first write to each, it takes several times as long.
void touch_memory() noexcept {
    const auto touch = [](const rte_memseg_list*, const rte_memseg* segment, std::size_t bytes, void*) {
        core::touch(segment->addr, bytes);
        return 0;
    };
    ::rte_memseg_contig_walk(touch, nullptr);
}

void begin_eal(const EalConfig& config) {
    need_sysfs();
    const std::string lcores = lcore_map(config);
    const std::size_t split = lcores.find(' ');
    std::vector<std::string> args = {"weir", "--lcores=" + lcores.substr(0, split), lcores.substr(split + 1),
                                     "--log-level=*:error"};
    args.push_back(config.telemetry.empty() ? "--no-telemetry" : "--telemetry");
    const std::uint64_t mib = (config.memory_bytes >> 20U) + 1;
    if (config.pci.empty()) {
        // No device needs physical addresses, so neither hugepages nor privileges are needed.
        args.insert(args.end(), {"--no-huge", "--no-pci", "--no-shconf", "-m", std::to_string(mib)});
    } else {
        if (config.telemetry.empty()) args.push_back("--file-prefix=weir" + std::to_string(::getpid()));
        for (const std::string& address : config.pci) args.push_back("--allow=" + address);
        if (const std::string nodes = node_memory(config); !nodes.empty()) args.push_back("--socket-mem=" + nodes);
    }
    if (!config.telemetry.empty()) take_telemetry_name(config.telemetry, args);
    const OnlyNamedDrivers drivers(config.pci.empty() ? config.drivers : std::nullopt);
    args.insert(args.end(), drivers.arguments().begin(), drivers.arguments().end());
    // Drivers with a socket to another process write to it when that process may have gone: an error, not the end.
    ::signal(SIGPIPE, SIG_IGN);
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    constexpr std::uint64_t own_bytes = std::uint64_t{8} << 20U;  // its tables
    constexpr std::size_t own_threads = 2;                        // for interrupts, and where it answers others
    try_room(own_bytes + (config.pci.empty() ? mib << 20U : 0), config.lcores.size() + own_threads);
    const LogCapture log;
    if (::rte_eal_init(static_cast<int>(argv.size()), argv.data()) < 0) {
        const std::string reason = LogCapture::text();
        throw core::RunError(fmt::format(
            "DPDK could not start: {} (asked for {} MiB of memory{}){}{}", rte_strerror(rte_errno), mib,
            config.pci.empty() ? "" : " in hugepages, which PCI devices need", reason.empty() ? "" : ": ", reason));
    }
    if (const std::string remarks = LogCapture::text(); !remarks.empty()) core::print_stderr("{}\n", remarks);
    if (config.touch && config.pci.empty()) touch_memory();
}

}  // namespace

void start_eal(const EalConfig& config) {
    for (const std::uint32_t lcore : config.lcores)
        if (lcore >= RTE_MAX_LCORE)
            throw core::UsageError(
                fmt::format("[lcores]: found lcore {}; accepted: 0 to {}", lcore, RTE_MAX_LCORE - 1));
    if (!standing) return begin_eal(config);
    if (const std::string what = lacking(*standing, config); !what.empty())
        throw core::RunError("DPDK runs already, and was started without " + what);
}

void stop_eal() noexcept {
    if (!standing) ::rte_eal_cleanup();
}

void end_with_process() noexcept {
    ending = !standing && ::rte_eal_has_hugepages() == 0;
}

bool ends_with_process() noexcept {
    return ending;
}

StandingEal::StandingEal(const EalConfig& config) {
    begin_eal(config);
    standing = config;
}

std::uint64_t StandingEal::free_bytes() noexcept {
    std::uint64_t bytes = 0;
    for (unsigned i = 0; i < ::rte_socket_count(); ++i)
        if (rte_malloc_socket_stats heap{}; ::rte_malloc_get_socket_stats(::rte_socket_id_by_idx(i), &heap) == 0)
            bytes += heap.heap_freesz_bytes;
    return bytes;
}

StandingEal::~StandingEal() {
    standing.reset();
    stop_eal();
}

}  // namespace weir::port

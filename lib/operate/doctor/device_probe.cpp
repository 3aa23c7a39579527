#include "doctor/device_probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/device_facts.hpp"
#include "core/error.hpp"
#include "doctor/device_json.hpp"
#include "doctor/opened_port.hpp"
#include "port/eal.hpp"
#include "port/stale_hugepages.hpp"

namespace weir::doctor {

namespace {

/// Drivers whose device is nobody else's while no run has it.
constexpr std::array opened_drivers{"pci", "kernel", "net_af_packet", "net_af_xdp", "net_tap", "net_null"};

port::EalConfig eal_for_probe(const PlannedRun& run) {
    port::EalConfig eal;
    std::uint64_t bytes = std::uint64_t{64} << 20U;  // EAL itself, and devices
    for (const config::PortConfig& port : run.config->ports) {
        if (!not_opened_reason(port).empty()) continue;
        bytes += OpenedPort::memory_bytes(port, run.plan->room_bytes);
        if (config::is_pci_address(port.device)) eal.pci.push_back(port.devargs());
    }
    eal.memory_bytes = bytes;
    return eal;
}

DeviceFacts look_at_port(const PlannedRun& run, std::uint32_t index, double watch_s) {
    DeviceFacts facts;
    facts.port = run.config->ports[index].name;
    facts.not_opened = not_opened_reason(run.config->ports[index]);
    if (!facts.not_opened.empty()) return facts;
    try {
        OpenedPort port(*run.config, *run.plan, index);
        facts = port.look();
        facts.rules = port.try_rules(watch_s);
    } catch (const std::exception& error) {
        facts.not_opened = error.what();
    }
    return facts;
}

/// In the child.
nlohmann::json probe(const PlannedRun& run, double watch_s) {
    try {
        port::start_eal(eal_for_probe(run));
        std::vector<DeviceFacts> devices;
        for (std::uint32_t index = 0; index < run.config->ports.size(); ++index)
            devices.push_back(look_at_port(run, index, watch_s));
        return {{"devices", devices_json(devices)}};
    } catch (const std::exception& error) {
        return {{"error", error.what()}};
    }
}

[[noreturn]] void child(int to_parent, const PlannedRun& run, double watch_s) {
    const std::string text = probe(run, watch_s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (std::size_t at = 0; at < text.size();) {
        const ssize_t wrote = ::write(to_parent, text.data() + at, text.size() - at);
        if (wrote <= 0) break;
        at += static_cast<std::size_t>(wrote);
    }
    port::stop_eal();
    ::_exit(0);  // what the parent has in its buffers is the parent's to write
}

std::string read_all(int from_child) {
    std::string text;
    std::array<char, 4096> some;
    while (true) {
        const ssize_t got = ::read(from_child, some.data(), some.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return text;
        text.append(some.data(), static_cast<std::size_t>(got));
    }
}

/// A driver may wait for ever; then the child is ended, and its pipe with it.
class Guard {
public:
    Guard(pid_t child, double seconds)
        : thread_([child, seconds](const std::stop_token& stop) {
              const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
              while (!stop.stop_requested() && std::chrono::steady_clock::now() < end)
                  std::this_thread::sleep_for(std::chrono::milliseconds(50));
              if (!stop.stop_requested()) ::kill(child, SIGKILL);
          }) {}

private:
    std::jthread thread_;
};

}  // namespace

std::string not_opened_reason(const config::PortConfig& port) {
    const std::string driver = config::driver_of(port.device);
    for (const char* name : opened_drivers)
        if (driver == name) return {};
    if (driver == "sim") return "it is a simulated detector, inside weir";
    return fmt::format("opening {} to look at it would disturb the program at its other end", driver);
}

Known<std::vector<DeviceFacts>> probe_devices(const PlannedRun& run, double watch_s) {
    using Result = Known<std::vector<DeviceFacts>>;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return Result::no(fmt::format("pipe: {}", std::strerror(errno)));
    ::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0) {
        ::close(ends[0]);
        ::close(ends[1]);
        return Result::no(fmt::format("fork: {}", std::strerror(errno)));
    }
    if (pid == 0) {
        ::close(ends[0]);
        child(ends[1], run, watch_s);
    }
    ::close(ends[1]);
    constexpr double patience_s = 60;  // PCI cards take seconds to come up
    std::string text;
    {
        const Guard guard(pid, patience_s + watch_s * static_cast<double>(run.config->ports.size()));
        text = read_all(ends[0]);
    }
    ::close(ends[0]);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    // DPDK leaves files in hugetlbfs, which keep their pages: a run that has just as many as it needs would lack them.
    port::remove_stale_hugepages();
    const nlohmann::json said = nlohmann::json::parse(text, nullptr, false);
    if (said.is_discarded())
        return Result::no(WIFSIGNALED(status) ? fmt::format("DPDK or a driver ended with signal {} ({})",
                                                            WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                                              : "the process that opened the devices said nothing");
    if (said.contains("error")) return Result::no(said["error"].get<std::string>());
    return devices_of(said["devices"]);
}

}  // namespace weir::doctor

// Starting DPDK: one EAL per process, its memory and lcores decided before it starts, because without hugepages the
// memory cannot grow afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "port/drivers.hpp"

namespace weir::port {

struct EalConfig {
    std::vector<std::uint32_t> lcores;  ///< lcore ids that run stages; bound to the CPU of that number if there is one
    std::uint64_t memory_bytes = 0;     ///< pools, rings and tables that live in EAL memory, all sums added up
    std::vector<std::uint64_t> node_memory_bytes;  ///< of it, taken at the start on each NUMA node; with hugepages only
    std::vector<std::string> pci;                  ///< PCI addresses; when there are any, hugepages are used
    Drivers drivers = std::nullopt;                ///< that are loaded; with `pci` all of them
    std::string telemetry;  ///< DPDK's telemetry answers under this file prefix; empty: it is off
    /// CPUs that an lcore can be bound to, and those that the calling thread and the threads that it starts keep to;
    /// empty: those that the process has.
    std::vector<std::uint32_t> cpus{};
    std::vector<std::uint32_t> other_cpus{};
    bool pin = true;     ///< false: lcores float over all CPUs of the process
    bool touch = false;  ///< make memory that is not in hugepages resident at once
};

/// Starts EAL; the calling thread becomes the main lcore, which runs no stage. Throws core::RunError with DPDK's
/// reason; std::bad_alloc or std::system_error where there is no room for its memory or its threads. While there is a
/// StandingEal, nothing is started and nothing is stopped; core::RunError then says what it lacks.
void start_eal(const EalConfig& config);
void stop_eal() noexcept;

/// From now on pools keep their memory, because the process is about to end, and with it all that is EAL's: DPDK writes
/// zeros over whatever is given back to it. Without effect while there is a StandingEal, and with hugepages, which are
/// files.
void end_with_process() noexcept;
[[nodiscard]] bool ends_with_process() noexcept;

/// EAL for whatever comes one after the other in a process, each of which would start its own. One per process, as EAL.
/// Lcores are bound as `config` says, whatever is asked for later.
class StandingEal {
public:
    /// Throws as start_eal().
    explicit StandingEal(const EalConfig& config);
    ~StandingEal();
    StandingEal(const StandingEal&) = delete;
    StandingEal& operator=(const StandingEal&) = delete;

    /// Of its memory, what nobody has at the moment.
    [[nodiscard]] static std::uint64_t free_bytes() noexcept;
};

/// What DPDK and its drivers log goes to stderr, but while one of these lives it is collected: it is the reason for a
/// step that failed, and belongs into the message about it. One at a time; after start_eal.
class LogCapture {
public:
    LogCapture();
    ~LogCapture();
    LogCapture(const LogCapture&) = delete;
    LogCapture& operator=(const LogCapture&) = delete;
    /// What came since then, on one line; empty if nothing did.
    [[nodiscard]] static std::string text();
};

/// The CPUs that this process may use.
[[nodiscard]] std::vector<std::uint32_t> usable_cpus();

}  // namespace weir::port

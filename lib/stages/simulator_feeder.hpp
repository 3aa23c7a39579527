// The simulated detector of `weir run` with a `sim` device: an ordinary thread that fills the queue of an in-process
// DPDK device. It may block, and it counts what it hands over: the left side of the ledger.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "port/buffers.hpp"
#include "simulate/simulator.hpp"
#include "stages/stage.hpp"

struct rte_ring;

namespace weir::stages {

/// The simulated detector behind an in-process DPDK device (net_ring): what `weir run` polls is an ethdev like any
/// other.
class SimulatorFeeder {
public:
    struct Config {
        simulate::SimulatorConfig simulator;
        double events_per_s =
            0;  ///< 0: as fast as the pipeline takes them; otherwise like a detector, which does not wait
        std::uint32_t queue_entries = 1024;  ///< of the device's queue
    };

    /// Reads "sim,format=jungfrau,events=1000,rate=100,drop=0.001,seed=1,..." for `sources` sources; `formats` are the
    /// declared ones that may be named. Throws core::UsageError naming the key.
    static Config parse_device(const std::string& device, std::uint32_t sources,
                               std::span<const wire::DeclaredSpec> formats);
    [[nodiscard]] static bool is_simulator(const std::string& device) noexcept;

    /// Creates the ring and the device; its name is device().
    SimulatorFeeder(const Config& config, const std::string& name, port::BufferPool& pool);
    ~SimulatorFeeder();
    /// Sends everything; after join(), once more from the beginning.
    void start(const RunSignals& signals);
    void join();

    [[nodiscard]] const std::string& device() const noexcept { return device_; }
    [[nodiscard]] std::uint64_t emitted() const noexcept { return emitted_.load(std::memory_order_relaxed); }
    /// Frames that found the device's queue full: lost before weir saw them.
    [[nodiscard]] std::uint64_t missed() const noexcept { return missed_.load(std::memory_order_relaxed); }
    /// Everything was sent, and taken.
    [[nodiscard]] bool drained() const noexcept;

private:
    void run(const RunSignals& signals);

    Config config_;
    std::optional<simulate::Simulator> simulator_;  ///< always there
    bool started_ = false;
    port::BufferPool& pool_;
    rte_ring* ring_ = nullptr;
    std::string device_;
    std::atomic<std::uint64_t> emitted_{0};
    std::atomic<std::uint64_t> missed_{0};
    std::atomic<bool> sent_all_{false};
    std::thread thread_;
};

}  // namespace weir::stages

// The simulated detector of `weir run` with a `sim` device: an ordinary thread that fills the queue of an in-process
// DPDK device (net_ring), so that weir polls an ethdev like any other. It may block, and it counts what it hands over:
// the left side of the ledger.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "port/buffers.hpp"
#include "simulate/simulator.hpp"
#include "stages/built_in_device.hpp"

struct rte_ring;

namespace weir::simulate {

class SimulatorFeeder final : public stages::BuiltInDevice {
public:
    struct Config {
        SimulatorConfig simulator;
        double events_per_s =
            0;  ///< 0: as fast as the pipeline takes them; otherwise like a detector, which does not wait
        std::uint32_t queue_entries = 1024;  ///< of the device's queue
    };

    /// Reads "sim,format=jungfrau,events=1000,rate=100,drop=0.001,seed=1,..." for `sources` sources; `formats` are the
    /// declared ones that may be named. Throws core::UsageError naming the key.
    static Config parse_device(const std::string& device, std::uint32_t sources,
                               std::span<const wire::DeclaredSpec> formats);

    /// Creates the ring and the device; its name is device().
    SimulatorFeeder(const Config& config, const std::string& name, port::BufferPool& pool);
    ~SimulatorFeeder() override;
    void start(const stages::RunSignals& signals) override;
    void join() override;

    [[nodiscard]] const std::string& device() const noexcept override { return device_; }
    [[nodiscard]] std::uint64_t emitted() const noexcept { return emitted_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t missed() const noexcept override { return missed_.load(std::memory_order_relaxed); }
    [[nodiscard]] bool drained() const noexcept override;

private:
    void run(const stages::RunSignals& signals);

    Config config_;
    std::optional<Simulator> simulator_;  ///< always there
    bool started_ = false;
    port::BufferPool& pool_;
    rte_ring* ring_ = nullptr;
    std::string device_;
    std::atomic<std::uint64_t> emitted_{0};
    std::atomic<std::uint64_t> missed_{0};
    std::atomic<bool> sent_all_{false};
    std::thread thread_;
};

/// stages::MakeBuiltInDevice of the program.
std::unique_ptr<stages::BuiltInDevice> make_simulator(const stages::BuiltInDeviceConfig& config,
                                                      port::BufferPool& pool);

}  // namespace weir::simulate

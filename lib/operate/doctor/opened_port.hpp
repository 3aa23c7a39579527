// A port of a configuration, opened as a run would, to be looked at. After start_eal.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "config/run_config.hpp"
#include "doctor/host_facts.hpp"
#include "plan/plan.hpp"
#include "port/buffers.hpp"
#include "port/live_port.hpp"

namespace weir::doctor {

class OpenedPort {
public:
    /// Throws core::RunError with the driver's answer.
    OpenedPort(const config::RunConfig& config, const plan::Plan& plan, std::uint32_t index);

    /// What DPDK says of it. Without `rules`.
    [[nodiscard]] DeviceFacts look() const;
    /// The rules that the run would give it, and what becomes of them. Sends packets for them where the port is one end
    /// of something whose other end the kernel has (net_tap); otherwise waits `watch_s` for packets that come anyway.
    [[nodiscard]] Known<std::vector<RuleOutcome>> try_rules(double watch_s);

    /// DPDK memory that looking at this port takes.
    [[nodiscard]] static std::uint64_t memory_bytes(const config::PortConfig& port, std::uint32_t room_bytes);

private:
    const config::RunConfig& config_;
    const plan::Plan& plan_;
    std::uint32_t index_;
    std::unique_ptr<port::BufferPool> pool_;
    std::unique_ptr<port::LivePort> port_;
};

}  // namespace weir::doctor

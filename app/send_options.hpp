// The options of `weir send`: what they are called, what they accept, and which go together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/pacer.hpp"
#include "simulate/rc_sender.hpp"
#include "simulate/simulator.hpp"

namespace weir::app {

struct SendOptions {
    simulate::SimulatorConfig simulator;
    simulate::Pacer::Config pace;
    simulate::RcSender::Config rc;
    std::string to;
    std::string report;
    std::string format;
    std::string config;   ///< where declared formats are
    std::string connect;  ///< where the receiver's queue pairs are learnt; empty: the command line says them
    double duration_s = 0;
    std::uint16_t queues = 1;  ///< of a device, to send through
    double timeout_ms = 0;     ///< of rc; 0: the default
    bool dst_mac_given = false;
    bool unanswered = false;  ///< rc: sends without waiting for anybody
    bool digests = false;
    bool verbs = false;  ///< the packets are made by an RDMA adapter
    bool quiet = false;

    [[nodiscard]] bool to_udp() const { return to.starts_with("udp:"); }
    [[nodiscard]] bool to_device() const { return to.starts_with("device:"); }
    [[nodiscard]] bool to_verbs() const { return to.starts_with("verbs:"); }
    [[nodiscard]] bool live() const { return to_udp() || to_device() || to_verbs(); }
    /// Messages are acknowledged: a reliable connection over a device.
    [[nodiscard]] bool answered() const {
        return to_device() && !unanswered && simulator.transport != simulate::SimulatedTransport::udp &&
               simulator.service == wire::RoceTransport::rc;
    }
};

/// False when help was asked for and given. Throws core::UsageError, and what Boost.Program_options throws.
bool read_send_options(const std::vector<std::string>& args, SendOptions& options);

/// A number from 0 to `limit`, decimal or hexadecimal; throws core::UsageError naming the option.
std::uint64_t number_of(const char* option, const std::string& text, std::uint64_t limit);

}  // namespace weir::app

// Sends the simulator's messages through libibverbs: an RDMA adapter, or Linux soft-RoCE, makes the packets, waits for
// acknowledgements and sends again. The queue pairs are agreed on with perftest's exchange (perftest_client.hpp). A
// build without libibverbs has this, too, and says that it has no verbs.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "roce/perftest.hpp"
#include "simulate/rc_sender.hpp"

namespace weir::simulate {

class VerbsSender {
public:
    virtual ~VerbsSender() = default;
    /// Our queue pairs, one per source.
    [[nodiscard]] virtual std::vector<roce::PerftestEnd> ends() const = 0;
    /// Makes them ready to send to the other side's, in the same order. Throws core::RunError naming the step.
    virtual void connect(std::span<const roce::PerftestEnd> peers) = 0;
    /// As RcSender::send(); what only the adapter knows (packets, what was sent again) stays 0. With UC and UD
    /// `acknowledged` counts what was sent.
    virtual RcSender::Result send() = 0;
};

/// Throws what open_verbs_sender would throw where there is no such device.
void check_verbs_device(const std::string& device);

/// Opens an RDMA device by name; empty: the first there is. Of `config` depth, time-out, retries, pace and durations
/// are used. Throws core::RunError: no such device, or what it would not do; core::UsageError: built without verbs.
std::unique_ptr<VerbsSender> open_verbs_sender(const std::string& device, Simulator& simulator,
                                               const RcSender::Config& config, const std::atomic<bool>& stop);

}  // namespace weir::simulate

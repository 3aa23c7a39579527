// How a queue pair is made ready: from reset to ready to send, towards the other side's. For builds with libibverbs.
#pragma once

#include <cstdint>

#include "core/units.hpp"
#include "roce/perftest.hpp"
#include "verbs/rdma_device.hpp"

namespace weir::verbs {

/// What of a connection is for this side to say.
struct ConnectionConfig {
    std::uint32_t path_mtu = 4096;  ///< bytes
    std::uint32_t first_psn = 0;    ///< of the packets that we send
    unsigned access = 0;            ///< of the other side to our memory: IBV_ACCESS_...
    std::uint32_t qkey = 0;         ///< datagrams
    // Reliable connections:
    core::TimeNs timeout_ns = 67'108'864;  ///< after which is sent again
    std::uint32_t retries = 7;             ///< 7 at most
    std::uint32_t rnr_retries = 7;         ///< while the other side has no request posted; 7: without end
};

/// What the other side has to know of ours; its memory is the caller's to add.
[[nodiscard]] roce::PerftestEnd end_of(const ibv_qp* queue_pair, const RdmaPort& port, std::uint32_t first_psn);

/// Reliable, unreliable or for datagrams; as the queue pair was created. Throws core::RunError that names the step.
void connect(ibv_qp* queue_pair, const RdmaPort& port, const ConnectionConfig& config, const roce::PerftestEnd& peer);

[[nodiscard]] ibv_ah_attr path_to(const RdmaPort& port, const roce::PerftestEnd& peer) noexcept;

}  // namespace weir::verbs

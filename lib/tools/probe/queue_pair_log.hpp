// What came for one queue pair: its messages, put together in the order of their PSNs, whatever order they came in.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "probe/packet_sample.hpp"

namespace weir::probe {

struct RdmaMessage {
    std::uint64_t bytes = 0;  ///< of what came
    std::uint32_t packets = 0;
    bool whole = false;  ///< from its first packet to its last, nothing missing
    bool is_write = false;
    std::optional<std::uint32_t> immediate{};
    std::optional<std::uint32_t> first{};  ///< index of its first packet in the sample
    std::uint64_t va = 0;                  ///< WRITE
    std::uint32_t rkey = 0;
    core::TimeNs first_ns = 0;
    core::TimeNs last_ns = 0;
};

struct QueuePairLog {
    IpText src;
    IpText dst;
    std::uint32_t qp = 0;
    wire::RoceTransport transport = wire::RoceTransport::other;  ///< of the first packet
    std::vector<std::uint32_t> requests{};                       ///< indices into the sample
    std::set<std::uint32_t> flows{};
    std::vector<RdmaMessage> messages{};
    std::uint64_t payload_bytes = 0;
    std::uint64_t bad_icrc = 0;
    std::uint64_t repeated = 0;    ///< packets whose PSN had been there
    std::uint64_t disordered = 0;  ///< packets whose PSN is before that of one that came earlier
    std::uint64_t missing = 0;     ///< PSNs that did not come
    std::uint32_t first_psn = 0;
    bool begins_whole = false;     ///< the first packet begins a message
    std::uint32_t packet_max = 0;  ///< most payload of one packet

    /// Makes `messages` of `requests`; once.
    void finish(const PacketSample& sample);
};

}  // namespace weir::probe

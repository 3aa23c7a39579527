// What the two ends of an RDMA connection tell each other over the control connection.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "roce/perftest.hpp"

namespace weir::bench {

/// How messages travel.
struct VerbsKind {
    bool write = false;     ///< RDMA WRITE with immediate; otherwise SEND
    bool reliable = false;  ///< what is lost is sent again; otherwise it is lost
    friend bool operator==(const VerbsKind&, const VerbsKind&) = default;
};

/// One end. Its queue pair has an IPv4 address.
struct VerbsEnd {
    roce::PerftestEnd queue_pair;
    std::uint32_t path_mtu = 0;  ///< bytes of a message in a packet, at most
    // Of the receiver:
    VerbsKind kind;
    std::uint32_t places = 0;       ///< for a message each, from queue_pair.va on, written in turn
    std::uint32_t place_bytes = 0;  ///< from one to the next
    friend bool operator==(const VerbsEnd&, const VerbsEnd&) = default;

    /// The immediate of a message: the low bits of its number. It tells the place, too, because no trial is so long
    /// that they start again.
    [[nodiscard]] std::uint32_t place_of(std::uint32_t immediate) const noexcept { return immediate % places; }
};

[[nodiscard]] nlohmann::json to_json(const VerbsEnd& end);
/// Throws core::RunError for what cannot be.
[[nodiscard]] VerbsEnd verbs_end_from_json(const nlohmann::json& json);

}  // namespace weir::bench

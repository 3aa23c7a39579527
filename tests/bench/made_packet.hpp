// A packet as a sender makes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/packet_plan.hpp"

namespace weir::test {

inline std::vector<std::byte> made_packet(const bench::PacketPlan& plan, std::uint64_t sequence,
                                          core::TimeNs now = 1000) {
    const bench::PacketMaker maker(plan);
    std::vector<std::byte> bytes(bench::PacketPlan::head_bytes);
    maker.write_head(sequence, now, bytes.data());
    const auto body = maker.body(sequence);
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
}

}  // namespace weir::test

// A part: what a readout node has of the events of one block, as bytes in memory and on their way to the builder. In
// the byte order of the host; all nodes of a cluster are of one kind. docs/internals/CLUSTER.md describes it.
//
//   PartHead, then for each event, in any order:
//     PartEvent
//     for each of its sources a store::SourceBody, its missing ranges, zeros up to a multiple of 64
//     the payload of the sources one after the other, without what is missing; zeros up to a multiple of 64
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "cluster/message.hpp"
#include "store/format.hpp"

namespace weir::fabric {

inline constexpr std::uint32_t part_magic = 0x54525057;  ///< the bytes "WPRT"
inline constexpr std::uint32_t part_align = store::block_align;

struct PartHead {
    std::uint32_t magic = part_magic;
    std::uint32_t events = 0;
    cluster::Block block = 0;
    cluster::Block end = 0;   ///< after the numbers that it is about
    std::uint64_t bytes = 0;  ///< of the part, this head included
    std::array<std::uint64_t, 4> reserved{};
};
static_assert(sizeof(PartHead) == part_align && std::is_trivially_copyable_v<PartHead>);

struct PartEvent {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;          ///< of all that belongs to the event, this included
    std::uint64_t payload_bytes = 0;  ///< of all its sources
    std::uint32_t sources = 0;
    store::Cause cause = store::Cause::complete;  ///< in the readout node
    std::array<std::uint8_t, 3> reserved{};
    std::array<std::uint64_t, 4> reserved_too{};
};
static_assert(sizeof(PartEvent) == part_align && std::is_trivially_copyable_v<PartEvent>);

}  // namespace weir::fabric

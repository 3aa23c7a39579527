#include "bench/roce_target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "core/units.hpp"
#include "wire/roce.hpp"

namespace weir::bench {
namespace {

// As in pipeline.cpp.
constexpr std::uint32_t queue_pair = 0x11;
constexpr std::uint32_t region_key = 0x1234;
constexpr std::uint64_t region_va = 0x10000000;
/// So that packets of one burst, in their order, never meet.
constexpr std::uint32_t places_min = 2 * Receiver::burst;

}  // namespace

RoceTarget::RoceTarget(FrameKind::Is is, std::uint32_t bytes, std::uint32_t addresses) {
    if (bytes > wire::roce_mtu_max)
        throw core::RunError(fmt::format("a RoCE packet carries at most {} bytes, not {}", wire::roce_mtu_max, bytes));
    frames_.is = is;
    frames_.qp = queue_pair;
    if (is != FrameKind::Is::roce_write) return;
    constexpr std::uint32_t line = core::cache_line_bytes;
    frames_.rkey = region_key;
    frames_.va = region_va;
    frames_.places = std::max(places_min, addresses);
    frames_.place_bytes = (bytes + line - 1) / line * line;
    region_.resize(std::size_t{frames_.places} * frames_.place_bytes);
    written_.resize(frames_.places);
}

RoceTarget::Taken RoceTarget::take(const wire::Datagram& datagram) noexcept {
    wire::RocePacket packet;
    const wire::Verdict verdict = wire::decode_roce(datagram, true, packet);
    switch (verdict) {
        case wire::ok:
            break;
        case wire::Verdict::malformed_bad_icrc:
        case wire::Verdict::malformed_roce_header:
        case wire::Verdict::malformed_roce_length:
            return {.is = Is::damaged};
        default:
            return {.is = Is::other};
    }
    const bool writes = frames_.is == FrameKind::Is::roce_write;
    if (packet.qp != frames_.qp || packet.is_write != writes || packet.transport != wire::RoceTransport::uc ||
        packet.place != wire::RocePlace::only)
        return {.is = Is::other};
    if (!writes) return {Is::taken, packet.payload, packet.bytes};
    const std::uint64_t at = packet.va - frames_.va;
    if (packet.rkey != frames_.rkey || packet.bytes == 0 || at >= region_.size() || packet.bytes > region_.size() - at)
        return {.is = Is::other};
    const std::size_t first = at / frames_.place_bytes;
    const std::size_t last = (at + packet.bytes - 1) / frames_.place_bytes;
    for (std::size_t place = first; place <= last; ++place)
        if (written_[place] == burst_) return {.is = Is::not_yet};
    for (std::size_t place = first; place <= last; ++place) written_[place] = burst_;
    std::memcpy(region_.data() + at, packet.payload, packet.bytes);
    return {Is::taken, region_.data() + at, packet.bytes};
}

}  // namespace weir::bench

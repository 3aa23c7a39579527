#include "probe/queue_pair_log.hpp"

#include <algorithm>
#include <map>

namespace weir::probe {
namespace {

constexpr std::uint32_t psn_mask = 0xff'ffff;
constexpr std::int64_t psn_half = 0x80'0000;
/// A step this large is a connection that began anew.
constexpr std::int64_t restart = 0x1'0000;

/// Puts one packet onto the message that is open.
void extend(RdmaMessage& message, const SampledRequest& request, std::uint32_t index) {
    const wire::RocePacket& packet = request.packet;
    if (message.packets == 0) {
        message.first_ns = request.time_ns;
        message.is_write = packet.is_write;
    }
    if (packet.starts()) {
        message.first = index;
        message.va = packet.va;
        message.rkey = packet.rkey;
    }
    if (packet.has_immediate) message.immediate = packet.immediate;
    message.bytes += packet.bytes;
    message.last_ns = std::max(message.last_ns, request.time_ns);
    message.first_ns = std::min(message.first_ns, request.time_ns);
    ++message.packets;
}

}  // namespace

void QueuePairLog::finish(const PacketSample& sample) {
    std::map<std::int64_t, std::uint32_t> by_psn;  // counted on across wraps
    std::int64_t at = 0;
    std::int64_t highest = 0;
    for (const std::uint32_t index : requests) {
        const SampledRequest& request = sample.requests()[index];
        payload_bytes += request.packet.bytes;
        bad_icrc += request.bad_icrc ? 1 : 0;
        packet_max = std::max(packet_max, request.packet.bytes);
        if (request.bad_icrc) continue;
        if (by_psn.empty()) {
            first_psn = request.packet.psn;
            begins_whole = request.packet.starts();
            at = highest = request.packet.psn;
        } else {
            std::int64_t step = (request.packet.psn - static_cast<std::uint32_t>(highest)) & psn_mask;
            if (step >= psn_half) step -= psn_half * 2;
            at = step > restart || step < -restart ? highest + restart * 2 : highest + step;
            if (at < highest) ++disordered;
        }
        // A request that is sent again has the PSN that it had.
        if (!by_psn.emplace(at, index).second) ++repeated;
        highest = std::max(highest, at);
    }
    std::optional<RdmaMessage> open;
    std::int64_t next = by_psn.empty() ? 0 : by_psn.begin()->first;
    const auto close = [&](bool whole) {
        if (open) messages.push_back(*open);
        if (open) messages.back().whole = whole;
        open.reset();
    };
    for (const auto& [psn, index] : by_psn) {
        const SampledRequest& request = sample.requests()[index];
        if (psn != next) {
            if (psn - next < restart) missing += static_cast<std::uint64_t>(psn - next);
            close(false);
        }
        next = psn + 1;
        if (request.packet.starts()) close(false);
        if (!open) open.emplace();
        extend(*open, request, index);
        if (request.packet.ends()) close(open->first.has_value());
    }
    close(false);
}

}  // namespace weir::probe

#include "probe/fragment_join.hpp"

#include <algorithm>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::probe {
namespace {

struct PiecePlace {
    std::uint32_t id = 0;
    std::uint32_t offset = 0;
    bool more = false;
};

/// RFC 791 section 3.1; RFC 8200 section 4.5, whose header lies right before the piece.
PiecePlace place_of(const wire::Datagram& piece) {
    if (piece.ipv6) {
        const std::byte* header = piece.payload - wire::ipv6_fragment_header_bytes;
        const std::uint32_t field = wire::load_be<std::uint16_t>(header + 2);
        return {wire::load_be<std::uint32_t>(header + 4), field & 0xfff8U, (field & 1U) != 0};
    }
    const std::uint32_t field = wire::load_be<std::uint16_t>(piece.ip + 6);
    return {wire::load_be<std::uint16_t>(piece.ip + 4), (field & 0x1fffU) * 8, (field & 0x2000U) != 0};
}

}  // namespace

std::optional<FragmentJoin::Whole> FragmentJoin::add(const wire::Datagram& piece, std::uint32_t head_bytes,
                                                     core::TimeNs time_ns) {
    const PiecePlace place = place_of(piece);
    const Key key{IpText::source_of(piece), IpText::destination_of(piece), place.id};
    const auto [at, fresh] = open_.try_emplace(key);
    Open& open = at->second;
    if (fresh) {
        open.whole.first_ns = time_ns;
        order_.push_back(key);
        // What was completed is still in the order, and finds nothing here.
        while (open_.size() > open_max) {
            forgotten_ += open_.erase(order_.front());
            order_.pop_front();
        }
    }
    if (!open.pieces.emplace(place.offset, piece.payload_bytes).second) return std::nullopt;
    open.bytes += piece.payload_bytes;
    if (!place.more) open.total = place.offset + piece.payload_bytes;
    if (place.offset == 0 && piece.payload_bytes >= wire::udp_header_bytes) {
        open.whole.sport = wire::load_be<std::uint16_t>(piece.payload);
        open.whole.dport = wire::load_be<std::uint16_t>(piece.payload + 2);
        const std::uint32_t bytes = std::min(piece.payload_bytes - wire::udp_header_bytes, head_bytes);
        const std::byte* from = piece.payload + wire::udp_header_bytes;
        open.whole.head.assign(from, from + bytes);
    }
    if (open.total <= wire::udp_header_bytes || open.bytes < open.total || !open.pieces.contains(0))
        return std::nullopt;
    Whole whole = std::move(open.whole);
    whole.payload_bytes = open.total - wire::udp_header_bytes;
    whole.pieces = static_cast<std::uint32_t>(open.pieces.size());
    open_.erase(at);
    if (order_.size() > 4 * open_max) std::erase_if(order_, [&](const Key& known) { return !open_.contains(known); });
    return whole;
}

}  // namespace weir::probe

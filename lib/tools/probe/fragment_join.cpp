#include "probe/fragment_join.hpp"

#include <algorithm>
#include <iterator>

#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::probe {

/// As in a run (port::IpReassembly): copies of a piece say nothing, an overlap or a second end spoils the datagram, and
/// so do more pieces than are put together.
bool FragmentJoin::fits(Open& open, const wire::PiecePlace& place) {
    const auto after = open.pieces.upper_bound(place.begin);
    const auto next = after == open.pieces.begin() ? after : std::prev(after);
    for (auto at = next; at != open.pieces.end() && at->first < place.end; ++at) {
        if (at->first == place.begin && at->second == place.end) return false;
        open.spoiled = open.spoiled || at->second > place.begin;
    }
    const std::uint32_t furthest = open.pieces.empty() ? 0 : std::prev(open.pieces.end())->second;
    open.spoiled = open.spoiled || open.pieces.size() == wire::ip_pieces_max ||
                   (open.total == 0 ? place.last && furthest >= place.end
                                    : place.last != (place.end == open.total) || place.end > open.total);
    return !open.spoiled;
}

std::optional<FragmentJoin::Whole> FragmentJoin::add(const wire::Datagram& piece, std::uint32_t head_bytes,
                                                     core::TimeNs time_ns) {
    const wire::PiecePlace place = wire::place_of(piece);
    const Key key{IpText::source_of(piece), IpText::destination_of(piece), place.identification};
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
    if (!fits(open, place)) return std::nullopt;
    open.pieces.emplace(place.begin, place.end);
    open.bytes += piece.payload_bytes;
    if (place.last) open.total = place.end;
    if (place.begin == 0 && piece.payload_bytes >= wire::udp_header_bytes) {
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

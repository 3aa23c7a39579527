// Pieces of IP datagrams: of each datagram only the beginning is kept, and whether all of it came.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "core/units.hpp"
#include "probe/ip_text.hpp"
#include "wire/network.hpp"

namespace weir::probe {

class FragmentJoin {
public:
    /// A UDP datagram that is there as a whole.
    struct Whole {
        std::vector<std::byte> head;  ///< of the payload
        std::uint32_t payload_bytes = 0;
        std::uint16_t sport = 0;
        std::uint16_t dport = 0;
        std::uint32_t pieces = 0;
        core::TimeNs first_ns = 0;  ///< its first piece
    };

    /// Takes a piece (wire::parse_frame said so) and keeps `head_bytes` of the payload. The datagram, if this completes
    /// it.
    std::optional<Whole> add(const wire::Datagram& piece, std::uint32_t head_bytes, core::TimeNs time_ns);
    /// Datagrams that are not whole.
    [[nodiscard]] std::uint64_t lost() const noexcept { return forgotten_ + open_.size(); }

private:
    static constexpr std::size_t open_max = 1024;

    struct Key {
        IpText src;
        IpText dst;
        std::uint32_t id = 0;
        auto operator<=>(const Key&) const = default;
    };
    struct Open {
        Whole whole;
        std::map<std::uint32_t, std::uint32_t> pieces;  ///< begin → end
        std::uint32_t bytes = 0;
        std::uint32_t total = 0;  ///< 0: the last piece has not come
        bool spoiled = false;     ///< it never becomes whole
    };

    [[nodiscard]] static bool fits(Open& open, const wire::PiecePlace& place);

    std::map<Key, Open> open_;
    std::deque<Key> order_;
    std::uint64_t forgotten_ = 0;
};

}  // namespace weir::probe

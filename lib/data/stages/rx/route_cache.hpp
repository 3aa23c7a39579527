// Which way datagrams went of late: the next one of the same sender to the same UDP port, or to the same RoCE queue
// pair, goes the same way. So what a packet costs does not grow with the number of rules, addresses and sources.
#pragma once

#include <array>
#include <cstdint>

#include "stages/rx/flow_place.hpp"
#include "steer/steering.hpp"
#include "wire/fragment.hpp"

namespace weir::stages {

/// For IPv4 and steering that asks for no marks; of other datagrams it knows nothing. (Those of IPv6 have no addresses
/// here, and nothing is remembered of a datagram without.) One knows UDP ports or queue pairs, not both.
class RouteCache {
public:
    /// `key` of the datagram: UDP port or queue pair. nullptr: not known.
    [[nodiscard]] const steer::Route* find(std::uint8_t port, const wire::Datagram& datagram,
                                           std::uint32_t key) const noexcept {
        const Entry& entry = entries_[place_of(datagram, key)];
        const bool same = entry.addresses == addresses_of(datagram) && entry.key == key_of(port, key);
        return same ? &entry.route : nullptr;
    }
    void remember(std::uint8_t port, const wire::Datagram& datagram, std::uint32_t key,
                  const steer::Route& route) noexcept {
        const std::uint64_t addresses = addresses_of(datagram);
        if (addresses != 0) entries_[place_of(datagram, key)] = {addresses, key_of(port, key), route};
    }

private:
    /// In one cache line.
    struct alignas(32) Entry {
        std::uint64_t addresses = 0;
        std::uint64_t key = 0;  ///< 0: nothing is here
        steer::Route route{};
    };
    [[nodiscard]] static std::uint64_t addresses_of(const wire::Datagram& datagram) noexcept {
        return std::uint64_t{datagram.src} << 32U | datagram.dst;
    }
    [[nodiscard]] static std::uint64_t key_of(std::uint8_t port, std::uint32_t key) noexcept {
        constexpr std::uint64_t used = std::uint64_t{1} << 40U;
        return used | std::uint64_t{port} << 32U | key;
    }
    [[nodiscard]] static std::uint32_t place_of(const wire::Datagram& datagram, std::uint32_t key) noexcept {
        return flow_place(addresses_of(datagram), key);
    }

    std::array<Entry, flow_places> entries_{};
};

}  // namespace weir::stages

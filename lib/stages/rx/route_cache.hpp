// Which way UDP datagrams went of late: the next one of the same sender to the same port goes the same way. So what a
// packet costs does not grow with the number of rules, addresses and sources.
#pragma once

#include <array>
#include <cstdint>

#include "steer/steering.hpp"
#include "wire/fragment.hpp"

namespace weir::stages {

/// For IPv4 and steering that asks for no marks; of other datagrams it knows nothing. (Those of IPv6 have no addresses
/// here, and nothing is remembered of a datagram without.)
class RouteCache {
public:
    /// nullptr: not known.
    [[nodiscard]] const steer::Route* find(std::uint8_t port, const wire::Datagram& datagram) const noexcept {
        const Entry& entry = entries_[place_of(datagram)];
        const bool same = entry.addresses == addresses_of(datagram) && entry.ports == ports_of(port, datagram);
        return same ? &entry.route : nullptr;
    }
    void remember(std::uint8_t port, const wire::Datagram& datagram, const steer::Route& route) noexcept {
        const std::uint64_t addresses = addresses_of(datagram);
        if (addresses != 0) entries_[place_of(datagram)] = {addresses, ports_of(port, datagram), route};
    }

private:
    static constexpr std::uint32_t place_bits = 11;
    /// In one cache line.
    struct alignas(32) Entry {
        std::uint64_t addresses = 0;  ///< 0: nothing is here
        std::uint32_t ports = 0;
        steer::Route route{};
    };
    [[nodiscard]] static std::uint64_t addresses_of(const wire::Datagram& datagram) noexcept {
        return std::uint64_t{datagram.src} << 32U | datagram.dst;
    }
    [[nodiscard]] static std::uint32_t ports_of(std::uint8_t port, const wire::Datagram& datagram) noexcept {
        constexpr std::uint32_t used = 0x1000'0000;
        return used | std::uint32_t{port} << 16U | datagram.dport;
    }
    /// Senders, destinations or ports that count up, alone or together, have places of their own.
    [[nodiscard]] static std::uint32_t place_of(const wire::Datagram& datagram) noexcept {
        const std::uint64_t mixed = addresses_of(datagram) * 0x85EB'CA6B'9E37'79B1U;
        return (datagram.dport + static_cast<std::uint32_t>(mixed >> (64 - place_bits))) % (1U << place_bits);
    }

    std::array<Entry, 1U << place_bits> entries_{};
};

}  // namespace weir::stages

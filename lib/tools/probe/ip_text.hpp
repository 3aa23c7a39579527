// An IP address as it is compared, sorted and printed.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "wire/fragment.hpp"

namespace weir::probe {

struct IpText {
    bool v6 = false;
    std::array<std::uint8_t, 16> bytes{};  ///< network order; IPv4 in the first four

    [[nodiscard]] static IpText source_of(const wire::Datagram& datagram) noexcept;
    [[nodiscard]] static IpText destination_of(const wire::Datagram& datagram) noexcept;
    [[nodiscard]] std::string text() const;
    auto operator<=>(const IpText&) const = default;
};

}  // namespace weir::probe

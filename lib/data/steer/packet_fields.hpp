// Reads from a frame what flow rules look at, as a NIC's parser would: no checksums, no lengths beyond what is there.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "steer/flow_rule.hpp"

namespace weir::steer {

/// The headers of one frame. A field whose header is not there is 0, and `shape` says that it is not.
struct PacketFields {
    Shape shape{};
    std::array<Wide, field_count> values{};

    [[nodiscard]] const Wide& operator[](Field field) const noexcept { return values[static_cast<std::size_t>(field)]; }
    [[nodiscard]] Wide& operator[](Field field) noexcept { return values[static_cast<std::size_t>(field)]; }
};

/// Never reads outside `frame`. A header that is cut off is not there. UDP of a fragment that is not the first is not
/// there either, nor is it after IPv6 extension headers: a NIC's rule does not see it.
[[nodiscard]] PacketFields read_fields(std::span<const std::byte> frame) noexcept;

}  // namespace weir::steer

// Records that were not captured on Ethernet, made into Ethernet frames: `tcpdump -i any` (LINUX_SLL, SLL2), captures
// that begin with the IP header (RAW), loopback of other systems (NULL, LOOP).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "store/capture/reader.hpp"

namespace weir::store {

/// A LINKTYPE_ value.
inline constexpr std::uint32_t link_ethernet = 1;

/// "101 (RAW)".
[[nodiscard]] std::string link_text(std::uint32_t link);

class CaptureLink {
public:
    /// Records of this kind can be read, Ethernet among them. LINKTYPE_ values, as they are in files.
    [[nodiscard]] static bool is_known(std::uint32_t link) noexcept;
    /// What to say of a kind that cannot.
    [[nodiscard]] static std::string refusal(std::uint32_t link);

    /// `link` is_known.
    explicit CaptureLink(std::uint32_t link);

    /// The record with an Ethernet header for its own one. Its bytes are then in memory of this object until the next
    /// call, and no longer in a lent block. One that is too short for its own header becomes empty. On Ethernet: as it
    /// is.
    void to_ethernet(CaptureRecord& record) noexcept;

private:
    struct Header {
        std::uint32_t bytes = 0;  ///< of the kind itself
        std::uint16_t type = 0;   ///< an EtherType; 0: what comes after is no packet of a network that is known here
        std::array<std::byte, 6> source{};
    };
    [[nodiscard]] Header header_of(const CaptureRecord& record) const noexcept;

    std::uint32_t link_;
    std::unique_ptr<std::byte[]> frame_;  ///< for the longest record that there can be
};

}  // namespace weir::store

// pcapng in numbers (draft-ietf-opsawg-pcapng, section 4 and appendix A): what its reader and its writer both need. A
// reader tells the byte order from the magic.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::store::pcapng {

inline constexpr std::uint32_t section_block = 0x0a0d0d0a;
inline constexpr std::uint32_t interface_block = 1;
inline constexpr std::uint32_t obsolete_packet_block = 2;
inline constexpr std::uint32_t simple_packet_block = 3;
inline constexpr std::uint32_t statistics_block = 5;
inline constexpr std::uint32_t packet_block = 6;
inline constexpr std::uint32_t byte_order_magic = 0x1a2b3c4d;

inline constexpr std::uint16_t opt_end = 0;
inline constexpr std::uint16_t opt_comment = 1;
inline constexpr std::uint16_t shb_hardware = 2;
inline constexpr std::uint16_t shb_os = 3;
inline constexpr std::uint16_t shb_userappl = 4;
inline constexpr std::uint16_t if_name = 2;
inline constexpr std::uint16_t if_description = 3;
inline constexpr std::uint16_t if_mac_address = 6;
inline constexpr std::uint16_t if_speed = 8;
inline constexpr std::uint16_t if_tsresol = 9;
inline constexpr std::uint16_t if_tsoffset = 14;
inline constexpr std::uint16_t if_hardware = 15;
inline constexpr std::uint16_t epb_flags = 2;
inline constexpr std::uint16_t epb_dropcount = 4;
inline constexpr std::uint16_t epb_queue = 6;
inline constexpr std::uint16_t isb_starttime = 2;
inline constexpr std::uint16_t isb_endtime = 3;
inline constexpr std::uint16_t isb_ifrecv = 4;
inline constexpr std::uint16_t isb_ifdrop = 5;
inline constexpr std::uint16_t isb_filteraccept = 6;
inline constexpr std::uint16_t isb_osdrop = 7;
inline constexpr std::uint16_t isb_usrdeliv = 8;

/// Of a block: its type, and its length before and after the body.
inline constexpr std::uint32_t frame_bytes = 12;
/// Of a packet block's body, before the packet.
inline constexpr std::uint32_t packet_head_bytes = 20;

/// With what fills up to the next multiple of four.
[[nodiscard]] constexpr std::size_t filled(std::size_t bytes) noexcept {
    return (bytes + 3) & ~std::size_t{3};
}

}  // namespace weir::store::pcapng

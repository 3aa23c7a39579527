// What the simulated detector is told to be.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "wire/encode.hpp"

namespace weir::simulate {

enum class SimulatedTransport : std::uint8_t { udp, roce_send, roce_write };

/// What the simulated detector is, and what the simulated network does to it. The defaults are those of `weir send`.
struct SimulatorConfig {
    std::string format = "jungfrau";  ///< one of simulated_formats()
    SimulatedTransport transport = SimulatedTransport::udp;
    std::uint32_t sources = 1;  ///< streams: one UDP port or queue pair each
    std::uint64_t events = 0;   ///< 0: without end
    std::uint64_t first_event = 1;
    std::uint64_t seed = 1;

    std::uint32_t interfaces = 1;              ///< jungfrau, moench: 2 makes a module out of two sources
    std::optional<std::uint32_t> rows{};       ///< jungfrau, moench, eiger: partial readout; default all
    std::optional<std::uint32_t> bit_depth{};  ///< eiger: default 16
    std::optional<bool> tengiga{};             ///< eiger: default true
    wire::DeclaredSpec declared{};             ///< declared: the format
    std::uint32_t source_id = 0;               ///< declared: in the header of source 0; source i has source_id + i
    std::uint32_t bytes_min = 1;               ///< messages of no fixed size: sizes are drawn evenly from here
    std::uint32_t bytes_max = 0;               ///< to here; 0 means 20000, or what one datagram holds
    std::uint8_t lb_version = 0;               ///< ejfat: load balancer header 2 or 3, or none
    std::uint8_t re_version = 1;               ///< ejfat: reassembly header 1 or 2
    std::uint32_t mtu = 0;                     ///< udp: IP MTU, 0 means 9000; roce: path MTU, 0 means 4096
    wire::RoceTransport service =
        wire::RoceTransport::uc;  ///< roce: uc, rc or ud; the frames of rc are those of a sender that nobody answers
    std::uint32_t first_psn = 0;  ///< roce, dune, ess: packet number of every source's first packet
    std::uint32_t queue_pair = 0x11;  ///< roce: of source 0; source i has queue_pair + i
    bool immediate = true;            ///< roce: the event number's low 32 bits travel in the LAST packet
    std::uint64_t va = 0x10000000;    ///< roce_write: buffer of source 0; source i has va + i * va_step
    std::uint32_t rkey = 0x1234;      ///< roce_write: of all sources
    std::uint32_t regions = 1;        ///< roce_write: buffers of a source, which its messages go to in turn
    std::uint64_t region_stride = 0;  ///< from one to the next; 0: as long as a message of fixed size
    /// roce_write, formats of frames: most pixels of a WRITE, in bytes. 0: the rows that a packet holds, or one row. As
    /// many as a frame has: the frame is one WRITE.
    std::uint32_t write_bytes = 0;
    std::uint32_t readout_chips = 4;      ///< … parts of a frame that take turns to be written
    std::uint32_t port = 0;               ///< udp: of source 0, 0 means the format's own; source i has port + i
    bool one_port = false;                ///< udp: all sources send to `port`
    std::optional<std::uint16_t> vlan{};  ///< VLAN id
    std::uint32_t src_ip = 0x0a01000a;    ///< 10.1.0.10, of source 0; source i has src_ip + i
    std::uint32_t dst_ip = 0x0a010002;    ///< 10.1.0.2
    /// roce: IPv6 instead. The last four bytes of the source address count on with the sources.
    std::optional<wire::Ipv6Addresses> ipv6{};
    std::optional<std::uint16_t> src_port{};  ///< of all sources; default: the format's own (roce: one per queue pair)
    bool one_src_ip = false;                  ///< all sources share src_ip
    std::array<std::uint8_t, 6> src_mac{0x02, 0, 0, 0, 0, 0x0a};  ///< of source 0; the last byte counts on
    std::array<std::uint8_t, 6> dst_mac{0x02, 0, 0, 0, 0, 0x02};

    double drop = 0;       ///< probability that a packet is not sent
    double duplicate = 0;  ///< probability that a sent packet is sent twice
    double truncate = 0;   ///< probability that a sent packet is cut short; its IP lengths stay, its copy stays whole
    double corrupt = 0;    ///< roce: probability that a bit that its iCRC covers is flipped; its copy stays whole
    std::uint32_t reorder = 0;  ///< places that a packet may move, either way
};

}  // namespace weir::simulate

// Builds frames: what `weir send`, the tests, the fuzz corpora and the benches put on the wire. The encoders know the
// formats from the same facts as the decoders, and share no code with them but the header structs.
//
// Two steps: a format encoder makes a UDP payload, write_udp_frame puts Ethernet, IPv4 or IPv6, and UDP in front. RoCE
// is one step, because its iCRC covers the IP and UDP headers. Every writer takes the caller's memory and returns the
// bytes written, or 0 when `out` is too small; the functions that return a vector are for tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "wire/format.hpp"
#include "wire/roce.hpp"

namespace weir::wire {

/// Network byte order.
struct Ipv6Addresses {
    std::array<std::uint8_t, 16> src{};
    std::array<std::uint8_t, 16> dst{};
};

/// Addresses and the few header fields that matter. Addresses are in host byte order: 10.1.0.2 is 0x0a010002.
struct FrameSpec {
    std::array<std::uint8_t, 6> destination_mac{0x02, 0, 0, 0, 0, 0x02};
    std::array<std::uint8_t, 6> source_mac{0x02, 0, 0, 0, 0, 0x01};
    std::optional<std::uint16_t> vlan;            ///< tag control information (priority and VLAN id), if tagged
    std::optional<std::uint16_t> service_vlan{};  ///< that of an outer 802.1ad tag
    std::optional<Ipv6Addresses> ipv6{};  ///< IPv6 instead of IPv4: src, dst, identification, dont_fragment unused
    std::uint32_t src = 0x0a010001;
    std::uint32_t dst = 0x0a010002;
    std::uint16_t sport = 32410;
    std::uint16_t dport = 50001;
    std::uint16_t identification = 0;
    std::uint8_t tos = 0;
    std::uint8_t ttl = 64;
    bool dont_fragment = true;
};

/// Bytes of the IPv4 or IPv6 header.
[[nodiscard]] std::uint32_t ip_header_bytes(const FrameSpec& spec) noexcept;
/// Bytes of Ethernet [VLAN], IP and UDP headers.
[[nodiscard]] std::uint32_t frame_header_bytes(const FrameSpec& spec) noexcept;
/// Writes the headers for a UDP payload of `payload_bytes`, which the caller writes after them (UDP checksum 0:
/// over IPv6 only RoCEv2 is accepted so by everybody, RFC 6936).
std::size_t write_frame_headers(const FrameSpec& spec, std::uint32_t payload_bytes, std::span<std::byte> out) noexcept;
/// Over IPv6 with the UDP checksum that kernels insist on.
std::size_t write_udp_frame(const FrameSpec& spec, std::span<const std::byte> payload,
                            std::span<std::byte> out) noexcept;
[[nodiscard]] std::vector<std::byte> make_udp_frame(const FrameSpec& spec, std::span<const std::byte> payload);

/// The 48-byte slsDetector header of JUNGFRAU, MOENCH and EIGER (docs/reference/formats/jungfrau.md says what the
/// fields mean).
struct SlsHeader {
    std::uint64_t frame_number = 0;
    std::uint32_t exposure_100ns = 0;
    std::uint32_t packet_number = 0;
    std::uint64_t bunch_id = 0;
    std::uint64_t timestamp_100ns = 0;
    std::uint16_t module_id = 0;
    std::uint16_t row = 0;
    std::uint16_t column = 0;
    std::uint32_t daq_info = 0;
    std::uint16_t round_robin = 0;   ///< EIGER
    std::uint8_t detector_type = 3;  ///< 1 EIGER, 3 JUNGFRAU, 5 MOENCH
    std::uint8_t version = 2;
};
std::size_t write_sls(const SlsHeader& header, std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

struct EjfatHeader {
    std::uint16_t data_id = 0;
    std::uint32_t offset = 0;  ///< of this segment in the buffer
    std::uint32_t total = 0;   ///< bytes of the whole buffer
    std::uint64_t event = 0;
    std::uint8_t lb_version = 0;  ///< 0: no load balancer header; 2 or 3
    std::uint8_t re_version = 1;  ///< 1 or 2, whatever the load balancer header has
    std::uint16_t entropy = 0;    ///< v2: entropy, v3: port select
    std::uint64_t tick = 0;       ///< load balancer event number
};
std::size_t write_ejfat(const EjfatHeader& header, std::span<const std::byte> payload,
                        std::span<std::byte> out) noexcept;

/// The DAQEthHeader; values wider than their field are cut.
struct DuneHeader {
    std::uint32_t version = 0;                    ///< 6 bits
    std::uint32_t detector = 3;                   ///< 6 bits; 3 is HD_TPC
    std::uint32_t crate = 0;                      ///< 10 bits
    std::uint32_t slot = 0;                       ///< 4 bits
    std::uint32_t stream = 0;                     ///< 8 bits
    std::uint32_t sequence = 0;                   ///< 12 bits, per stream
    std::uint64_t timestamp = 0;                  ///< ticks of 16 ns
    std::optional<std::uint32_t> block_length{};  ///< in words of 8 bytes; by default as long as the payload is
};
/// Detector, crate, slot and stream as the one number that `source_ids` lists.
[[nodiscard]] std::uint32_t dune_source(const DuneHeader& header) noexcept;
std::size_t write_dune(const DuneHeader& header, std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

struct EssHeader {
    std::uint8_t version = 0;  ///< 0 or 1
    std::uint8_t type = 0x30;  ///< instrument; 0x30 is LOKI
    std::uint8_t output_queue = 0;
    std::uint8_t time_source = 0x0b;
    std::uint32_t pulse_seconds = 0;
    std::uint32_t pulse_ticks = 0;  ///< of 88.0525 MHz
    std::uint32_t previous_seconds = 0;
    std::uint32_t previous_ticks = 0;
    std::uint32_t sequence = 0;
};
/// Without payload it is a heartbeat.
std::size_t write_ess(const EssHeader& header, std::span<const std::byte> payload, std::span<std::byte> out) noexcept;

struct SpeadItem {
    std::uint32_t id = 0;
    std::uint64_t value = 0;
    bool immediate = true;  ///< otherwise the value is an address in the heap
};
struct SpeadHeader {
    std::uint32_t address_bits = 48;               ///< 48 or 40
    std::uint64_t heap = 0;                        ///< heap counter
    std::optional<std::uint64_t> heap_bytes{};     ///< heap size, if the packet says it
    std::uint64_t offset = 0;                      ///< of the payload in the heap
    std::optional<std::uint64_t> payload_bytes{};  ///< as said; by default as it is
    std::span<const SpeadItem> items{};            ///< after those of the heap
};
/// Packet header and items: what is in front of the payload.
[[nodiscard]] std::size_t spead_front_bytes(const SpeadHeader& header) noexcept;
std::size_t write_spead(const SpeadHeader& header, std::span<const std::byte> payload,
                        std::span<std::byte> out) noexcept;

/// The values of one packet's fields in a declared format; those that the spec does not have are ignored. Values wider
/// than their field are cut.
struct DeclaredValues {
    std::uint64_t event = 0;
    std::uint64_t index = 0;
    std::uint64_t offset = 0;
    std::uint64_t total = 0;
    std::uint64_t source = 0;
    std::uint64_t sequence = 0;
};
/// Places `value` (as it is after mask and shift) into a header, leaving bits outside the mask as they are. Nothing
/// happens if there is no field, or if it lies outside the header.
void set_declared_field(const DeclaredSpec& spec, const std::optional<DeclaredField>& field, std::uint64_t value,
                        std::span<std::byte> header) noexcept;
std::size_t write_declared(const DeclaredSpec& spec, const DeclaredValues& values, std::span<const std::byte> payload,
                           std::span<std::byte> out) noexcept;

/// Opcodes of RoCEv2 requests; the transport is added: opcode = transport << 5 | operation.
enum class RoceOperation : std::uint8_t {
    send_first = 0x00,
    send_middle = 0x01,
    send_last = 0x02,
    send_last_immediate = 0x03,
    send_only = 0x04,
    send_only_immediate = 0x05,
    write_first = 0x06,
    write_middle = 0x07,
    write_last = 0x08,
    write_last_immediate = 0x09,
    write_only = 0x0a,
    write_only_immediate = 0x0b,
    read_request = 0x0c,
    acknowledge = 0x11,
};

/// Opcode of packet `index` of `count` of a SEND or WRITE.
[[nodiscard]] std::uint8_t roce_opcode(RoceTransport transport, bool is_write, std::uint32_t index, std::uint32_t count,
                                       bool immediate) noexcept;

/// All that is in front of the payload; what it uses of `packet` is said at write_roce_frame, but `payload`. For those
/// who write payload, padding and iCRC themselves.
std::size_t write_roce_headers(const FrameSpec& spec, const RocePacket& packet, std::span<std::byte> out) noexcept;
/// Frame bytes of the RoCE packet, iCRC included, Ethernet padding not.
[[nodiscard]] std::size_t roce_frame_bytes(const FrameSpec& spec, const RocePacket& packet) noexcept;
/// Writes the whole frame. Uses opcode, qp, psn, pkey, ack_request, solicited, the fields of the extension headers that
/// the opcode has (syndrome and msn of an acknowledgement), and payload/bytes; transport, place, is_write and
/// has_immediate follow from the opcode and are ignored. The destination port is spec.dport: set it to roce_port.
std::size_t write_roce_frame(const FrameSpec& spec, const RocePacket& packet, std::span<std::byte> out) noexcept;
[[nodiscard]] std::vector<std::byte> make_roce_frame(const FrameSpec& spec, const RocePacket& packet);

/// The packets of one whole RoCE message, cut at the path MTU. Payload pointers borrow from `payload`.
struct RoceMessage {
    RoceTransport transport = RoceTransport::uc;
    bool is_write = false;
    std::uint32_t qp = 0x11;
    std::uint32_t psn = 0;  ///< of the first packet
    std::uint32_t mtu = 4096;
    std::optional<std::uint32_t> immediate{};
    std::uint64_t va = 0;
    std::uint32_t rkey = 0;
};
[[nodiscard]] std::uint32_t roce_packet_count(const RoceMessage& message, std::uint32_t message_bytes) noexcept;
[[nodiscard]] RocePacket roce_packet_of(const RoceMessage& message, std::span<const std::byte> payload,
                                        std::uint32_t index) noexcept;

}  // namespace weir::wire

// Payload framing: what a format is, what it is configured with, and the table of all of them (formats.cpp). Dispatch
// is once per burst through FormatEntry; the decoders themselves are in a folder per format. Not here: transports.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "wire/fragment.hpp"

namespace weir::wire {

enum class ByteOrder : std::uint8_t { little, big };

/// A number in a declared header: `bytes` read in the format's byte order, then masked, then shifted right.
struct DeclaredField {
    std::uint32_t offset = 0;  ///< from the start of the UDP payload, bytes
    std::uint32_t bytes = 0;   ///< 1..8
    std::optional<std::uint64_t> mask{};
    std::uint32_t shift = 0;  ///< bits

    bool operator==(const DeclaredField&) const = default;
};

/// A format declared in the configuration: `[[format]]`, key for key.
struct DeclaredSpec {
    std::string name;
    ByteOrder byte_order = ByteOrder::little;
    std::uint32_t header_bytes = 0;
    std::optional<DeclaredField> event;      ///< required
    std::optional<std::uint32_t> wrap_bits;  ///< event.wrap_bits: width of the event counter, default the field's width
    std::optional<DeclaredField> index;      ///< packet index: offset = index * payload_bytes
    std::optional<DeclaredField> offset;     ///< byte offset; neither index nor offset: every packet is a whole message
    std::optional<std::uint32_t> payload_bytes;
    std::optional<std::uint32_t> packets;      ///< per message: total = packets * payload_bytes
    std::optional<DeclaredField> total;        ///< bytes of the whole message, in the header
    std::optional<std::uint32_t> total_bytes;  ///< or always the same; key `total` too
    std::optional<DeclaredField> magic;
    std::uint64_t magic_value = 0;        ///< compared with the field after mask and shift
    std::optional<DeclaredField> source;  ///< for source_by = "header"

    bool operator==(const DeclaredSpec&) const = default;
};

/// Largest message that is believed when the configuration does not say.
inline constexpr std::uint32_t message_bytes_max_default = 16U << 20;

/// Where the decoder of a module with two UDP interfaces learns which of them sent a packet.
enum class LaneBy : std::uint8_t {
    none,      ///< it makes no difference
    datagram,  ///< Datagram::lane, set by the caller from the place of the port in the list
    row,       ///< the row in the header: odd rows come from the second interface
};

/// Options of PSI's detectors (jungfrau, moench, eiger).
struct SlsOptions {
    std::optional<std::uint32_t> rows{};       ///< partial readout: rows of a module (eiger: of a port); default all
    std::optional<std::uint32_t> bit_depth{};  ///< eiger: bits per pixel, 4, 8, 12, 16 (default) or 32
    std::optional<bool> tengiga{};             ///< eiger: packets of 4096 bytes (default), not of 1024
    LaneBy lane_by = LaneBy::datagram;         ///< how two interfaces are told apart where it matters
    bool interfaces_joined = false;            ///< both interfaces of a module are one source, one message
};

/// spead: the keys of the stream, key for key.
struct SpeadOptions {
    std::optional<std::uint32_t> address_bits{};  ///< flavour: 48 or 40; nothing: either, as each packet says
    std::uint32_t event_item = 1;   ///< id of the immediate item with the event number; 1 is the heap counter
    std::uint32_t source_item = 0;  ///< id of the immediate item with the source id; 0: there is none
    std::uint32_t heap_bytes = 0;   ///< size of every heap, if the packets do not say; 0: they do, or nobody does

    bool operator==(const SpeadOptions&) const = default;
};

/// What the stream's options say, whatever the format. Each format takes its own and refuses values that it cannot
/// have.
struct FormatOptions {
    int interfaces = 1;                                           ///< jungfrau, moench: UDP interfaces of a module
    std::uint32_t message_bytes_max = message_bytes_max_default;  ///< `max_message_bytes`; 0 means the default
    DeclaredSpec declared{};                                      ///< declared only
    SlsOptions sls{};
    SpeadOptions spead{};  ///< spead only
};

/// A DeclaredField made ready: one 8-byte load at `at`, byte swap if the format is big-endian, shift, mask.
struct FieldReader {
    std::uint32_t at = 0;
    std::uint32_t shift = 0;
    std::uint64_t mask = 0;  ///< 0: the field is absent
};

/// The packets of one of a module's UDP interfaces: from `first_packet` on, lying at `offset` in the message.
struct SlsLane {
    std::uint32_t first_packet = 0;
    std::uint32_t offset = 0;
};

struct SlsContext {
    std::uint32_t lane_packets = 0;  ///< of each interface, per frame
    LaneBy lane_by = LaneBy::none;
    std::array<SlsLane, 2> lanes{};
};

/// spead only: what its decoder goes by.
struct SpeadContext {
    std::uint8_t address_bits = 0;  ///< 0: as the packet says, 48 or 40
    std::uint32_t event_item = 1;
    std::uint32_t source_item = 0;
};

/// What a decoder knows of its stream; plain data, constant during a run.
struct FormatContext {
    std::uint32_t header_bytes = 0;         ///< stripped from every packet
    std::uint32_t header_read_bytes = 0;    ///< a decoder reads no byte of the datagram beyond these
    std::uint32_t payload_bytes = 0;        ///< per packet if fixed, else 0
    std::uint32_t packets_per_message = 0;  ///< if fixed, else 0
    std::uint32_t message_bytes = 0;        ///< if fixed, else 0: known once a packet has been seen
    std::uint32_t message_bytes_max = 0;
    std::uint8_t number_bits = 64;  ///< width of the event number on the wire
    bool carries_number = true;     ///< false: the transport has to number the messages (`message`)
    bool carries_source = false;    ///< Fragment::header_source is set: source_by = "header" is possible
    /// Width of the counter that numbers every packet of a source (Fragment::sequence); 0: the format has none. With
    /// one, decoders set `sequence` and `header_source` of packets that are `control`, too.
    std::uint8_t sequence_bits = 0;

    SlsContext sls{};  ///< jungfrau, moench, eiger only

    // declared only
    bool big_endian = false;
    std::uint64_t magic_value = 0;
    FieldReader event{};
    FieldReader index{};
    FieldReader offset{};
    FieldReader total{};
    FieldReader magic{};
    FieldReader source{};

    SpeadContext spead{};
};

/// One line of the table of formats.
struct FormatEntry {
    std::string_view name;  ///< as in the configuration

    /// Decodes a burst: for each datagram i, verdict[i] is `ok` and out[i] is filled, or verdict[i] is the counter in
    /// which the packet ends and out[i] means nothing. Both arrays have the size of the burst. Of each datagram only
    /// min(payload_bytes, context.header_read_bytes) bytes are read, so `payload_bytes` may be that of a whole message
    /// of which only the beginning is at hand (an RDMA message whose payload carries this format).
    void (*decode_burst)(const FormatContext& context, std::span<const Datagram> datagrams, Fragment* out,
                         Verdict* verdict) noexcept;

    /// Throws core::UsageError naming the option, what was found and what is accepted.
    FormatContext (*make_context)(const FormatOptions& options);
};

/// All formats: jungfrau, moench, eiger, ejfat, dune, ess, spead, message, declared.
[[nodiscard]] std::span<const FormatEntry> formats() noexcept;

/// By name, or nullptr. A format of the user's own name is `declared` with his DeclaredSpec.
[[nodiscard]] const FormatEntry* find_format(std::string_view name) noexcept;

}  // namespace weir::wire

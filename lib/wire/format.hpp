// Payload framing: what a format is, what it is configured with, and the table of all of them (formats.cpp). Dispatch
// is once per burst through FormatEntry; the decoders themselves are in a folder per format. Not here: transports.
#pragma once

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
    std::optional<std::uint32_t> packets;  ///< per message: total = packets * payload_bytes
    std::optional<DeclaredField> total;    ///< bytes of the whole message
    std::optional<DeclaredField> magic;
    std::uint64_t magic_value = 0;        ///< compared with the field after mask and shift
    std::optional<DeclaredField> source;  ///< for source_by = "header"

    bool operator==(const DeclaredSpec&) const = default;
};

/// Largest message that is believed when the configuration does not say.
inline constexpr std::uint32_t message_bytes_max_default = 16U << 20;

/// What the stream's options say, whatever the format. Each format takes its own and refuses values that it cannot
/// have.
struct FormatOptions {
    int interfaces = 1;                                           ///< jungfrau: UDP interfaces per module, 1 or 2
    std::uint32_t message_bytes_max = message_bytes_max_default;  ///< `max_message_bytes`; 0 means the default
    DeclaredSpec declared{};                                      ///< declared only
};

/// A DeclaredField made ready: one 8-byte load at `at`, byte swap if the format is big-endian, shift, mask.
struct FieldReader {
    std::uint32_t at = 0;
    std::uint32_t shift = 0;
    std::uint64_t mask = 0;  ///< 0: the field is absent
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

    // declared only
    bool big_endian = false;
    std::uint64_t magic_value = 0;
    FieldReader event{};
    FieldReader index{};
    FieldReader offset{};
    FieldReader total{};
    FieldReader magic{};
    FieldReader source{};
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

/// All formats: jungfrau, ejfat, message, declared.
[[nodiscard]] std::span<const FormatEntry> formats() noexcept;

/// By name, or nullptr. A format of the user's own name is `declared` with his DeclaredSpec.
[[nodiscard]] const FormatEntry* find_format(std::string_view name) noexcept;

}  // namespace weir::wire

// Payload framing: what a format is, what it is configured with, and the table of all of them (formats/table.cpp).
// Everything that the rest of weir knows of a format is in its FormatEntry, which its own folder makes. Dispatch is
// once per burst through it. Not here: transports.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/fragment.hpp"
#include "wire/image_shape.hpp"

namespace weir::options {
template <class T>
class OptionTable;
}

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
    /// The event number's second part: `event` counts seconds, this one the `event_count` samples of each. The number
    /// is event * event_count + event_part.
    std::optional<DeclaredField> event_part{};
    std::uint64_t event_count = 0;
    std::optional<DeclaredField> index;   ///< packet index: offset = index * payload_bytes
    std::optional<DeclaredField> offset;  ///< byte offset; neither index nor offset: every packet is a whole message
    std::optional<std::uint32_t> payload_bytes;
    std::optional<std::uint32_t> packets;      ///< per message: total = packets * payload_bytes
    std::optional<DeclaredField> total;        ///< bytes of the whole message, in the header
    std::optional<std::uint32_t> total_bytes;  ///< or always the same; key `total` too
    std::optional<DeclaredField> magic;
    std::uint64_t magic_value = 0;        ///< compared with the field after mask and shift
    std::optional<DeclaredField> source;  ///< for source_by = "header"
    /// Counts every packet of a source by one, through all of its messages, and begins again where the field is full.
    std::optional<DeclaredField> sequence{};

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

    bool operator==(const SlsOptions&) const = default;
};

/// ess: the keys of the stream, key for key.
struct EssOptions {
    std::uint32_t packets_per_pulse = 0;  ///< of a source; 0: any number

    bool operator==(const EssOptions&) const = default;
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
    EssOptions ess{};
    SpeadOptions spead{};  ///< spead only

    bool operator==(const FormatOptions&) const = default;
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
    bool in_sequence = false;  ///< Fragment::in_sequence is set

    SlsContext sls{};  ///< jungfrau, moench, eiger only

    // declared only
    bool big_endian = false;
    std::uint64_t magic_value = 0;
    FieldReader event{};
    FieldReader event_part{};
    std::uint64_t event_count = 0;
    FieldReader index{};
    FieldReader offset{};
    FieldReader total{};
    FieldReader magic{};
    FieldReader source{};
    FieldReader sequence{};

    SpeadContext spead{};
};

/// What is known of the images of a format beside their shape (FormatEntry::image_shape).
struct ImageFacts {
    bool gain_bits = false;       ///< the upper two say the gain, as JUNGFRAU's do: energies can be made of them
    double pixel_um = 0;          ///< a pixel's edge, as the maker states it
    std::string_view detector{};  ///< for people: "JUNGFRAU"
    std::string_view remark{};    ///< for people who look at a picture
};

/// Where the image of a source stands among those of others, counted in images.
struct ImagePlace {
    std::uint32_t row = 0;
    std::uint32_t column = 0;
    bool upside_down = false;  ///< its last row is on top

    bool operator==(const ImagePlace&) const = default;
};

/// A part of a message, or of a buffer.
struct ByteSpan {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

/// Everything that others know of a format. What is empty or null does not apply to it.
struct FormatEntry {
    std::string_view name;  ///< as in the configuration

    /// Decodes a burst: for each datagram i, verdict[i] is `ok` and out[i] is filled, or verdict[i] is the counter in
    /// which the packet ends and out[i] means nothing. Both arrays have the size of the burst. Of each datagram only
    /// min(payload_bytes, context.header_read_bytes) bytes are read, so `payload_bytes` may be that of a whole message
    /// of which only the beginning is at hand (an RDMA message whose payload carries this format).
    void (*decode_burst)(const FormatContext& context, std::span<const Datagram> datagrams, Fragment* out,
                         Verdict* verdict) noexcept;

    /// The same for a message that lies in one place as a whole, as RDMA brings it: the header, and after it all of the
    /// payload. `datagram` is header and payload together. Null: decode_burst does, for there a packet can be a whole
    /// message.
    Verdict (*decode_whole)(const FormatContext& context, const Datagram& datagram, Fragment& out) noexcept = nullptr;

    /// Throws core::UsageError naming the option, what was found and what is accepted.
    FormatContext (*make_context)(const FormatOptions& options);

    /// What decodes the formats that a [[format]] describes: it has their names, and none of its own.
    bool described = false;
    /// Packets say which event they are of. Without that the transport has to.
    bool numbers_events = true;
    /// Set if headers say which source they are from; in words where that is more than an id.
    std::optional<std::string_view> source_id{};

    /// Keys of [[stream]] that are this format's. Formats may share some: then they have the same `describe`.
    std::span<const std::string_view> keys{};
    /// The keys, with those of the formats that share some, in the order in which they are read and printed. Which of
    /// them fit together is checked with make_context, after each.
    options::OptionTable<FormatOptions> (*describe)() = nullptr;
    /// That of `keys` without which `source_by = "header"` is impossible, and what it is.
    std::string_view source_key{};
    std::string_view source_key_meaning{};
    /// Bytes of every message where the keys say so; 0 where they do not.
    std::uint32_t (*message_bytes)(const FormatOptions& options) = nullptr;

    ImageFacts image{};
    /// How they lie in a message; null: the messages are no images. Throws as make_context.
    ImageShape (*image_shape)(const FormatOptions& options) = nullptr;
    /// Where the images of sources stand, by a header of each (empty: nothing came of it). Empty: the headers do not
    /// say. Null: below each other.
    std::vector<ImagePlace> (*image_places)(std::span<const std::span<const std::byte>> headers) = nullptr;
    /// Bytes of a number in the payload, for what sorts bits before it compresses.
    std::uint32_t (*element_bytes)(const FormatOptions& options) = nullptr;

    /// Writes where in its message a packet lies into the header that was kept of another packet of it, which has
    /// context.header_bytes: so packets are made again from what is stored. `lane`: UDP interface in the module. False
    /// where the header cannot say it: every packet is a whole message.
    bool (*put_place)(const FormatContext& context, const FormatOptions& options, std::uint32_t lane,
                      std::uint64_t offset, std::span<std::byte> header) = nullptr;
    /// Of all messages of a run only the bytes `there` come: which keys would fit that, in words; empty if none would.
    std::string (*setting_for)(const FormatOptions& options, const FormatContext& now, ByteSpan there) = nullptr;

    std::string_view page{};  ///< of the documentation, below docs/
};

/// All formats, in the order of help and messages.
[[nodiscard]] std::span<const FormatEntry> formats() noexcept;

/// By name, or nullptr. A format of the user's own name is `declared` with his DeclaredSpec.
[[nodiscard]] const FormatEntry* find_format(std::string_view name) noexcept;

/// The entry that decodes what [[format]] describes.
[[nodiscard]] const FormatEntry& described_format() noexcept;

/// The names that need no [[format]], and that none may have.
[[nodiscard]] std::vector<std::string_view> built_in_formats();

/// Whether it needs no [[format]].
[[nodiscard]] bool is_built_in(std::string_view name) noexcept;

}  // namespace weir::wire

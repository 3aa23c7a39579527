// What a format knows of itself for those who look at packets whose format is not known yet: whether they are its own,
// how it is set up, and what the fields of its header are. For tools; nothing on an lcore asks this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/format.hpp"

namespace weir::wire {

/// The beginning of one UDP payload, or of one RDMA message.
struct SampledPacket {
    std::span<const std::byte> head;  ///< as much of it as was kept
    std::uint32_t payload_bytes = 0;  ///< of the whole
    std::uint32_t flow = 0;           ///< packets of one sender to one place have the same number
    bool whole_message = false;       ///< RDMA brought header and all payload of a message in one
};

/// What a format says of a sample.
struct Recognition {
    double share = 0;                   ///< of the packets, those that have the marks of the format
    unsigned mark_bits = 0;             ///< bits of a packet that would all have to be right by chance
    FormatOptions options;              ///< the set-up that fits
    std::vector<std::string> evidence;  ///< what was found, a sentence each
    std::vector<std::string> doubts;    ///< what the packets do not say, or say in two ways
};

/// A number in a header, and what it may be. One description serves the view of a single packet and its checks.
struct HeaderField {
    std::string name;
    std::uint32_t offset = 0;  ///< from the start of the UDP payload, bytes
    std::uint32_t bytes = 0;   ///< 1..8
    ByteOrder order = ByteOrder::little;
    std::string meaning{};
    std::optional<std::pair<std::uint64_t, std::uint64_t>> accepted{};  ///< from, to; after mask and shift
    std::uint64_t mask = ~std::uint64_t{0};
    std::uint32_t shift = 0;  ///< bits

    /// Reads it; nothing if it does not lie in `header`.
    [[nodiscard]] std::optional<std::uint64_t> value(std::span<const std::byte> header) const noexcept;
    [[nodiscard]] bool fits(std::uint64_t value) const noexcept {
        return !accepted || (value >= accepted->first && value <= accepted->second);
    }
};

/// What a format's folder makes for tools, beside its FormatEntry, which is for those who assemble: NAME_marks().
struct FormatMarks {
    /// Whether packets are of this format, and which set-up fits them. Never throws for what is in them. Null: nothing
    /// in a packet tells it.
    Recognition (*recognise)(std::span<const SampledPacket> packets) = nullptr;
    /// The fields of the header that begins with `head`, as far as it can be followed; `payload_bytes` is what the
    /// datagram has. Null: it has no header of its own.
    std::vector<HeaderField> (*header_fields)(std::span<const std::byte> head, std::uint32_t payload_bytes,
                                              const FormatOptions& options) = nullptr;
};

/// `format`: of wire::formats().
[[nodiscard]] const FormatMarks& marks_of(const FormatEntry& format) noexcept;

/// How far a sample is from chance, 0..1: the share of packets that fit, less where so few bits of so few packets say
/// it that noise might.
[[nodiscard]] double confidence_of(const Recognition& recognition, std::size_t packets) noexcept;

/// "0 to 127", or "5" if both are the same.
[[nodiscard]] std::string span_text(std::uint64_t from, std::uint64_t to);

}  // namespace weir::wire

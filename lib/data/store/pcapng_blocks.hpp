// The blocks of a pcapng file, as bytes: draft-ietf-opsawg-pcapng (version 1.0), in the order of this machine. Time
// stamps have nanoseconds. Only what weir writes; store/capture/pcapng_parser.cpp reads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace weir::store {

/// Who wrote the file (Section Header Block). Empty texts are left out.
struct PcapngSection {
    std::string hardware;
    std::string os;
    std::string application;
    std::vector<std::string> comments;
};

/// Where packets came from (Interface Description Block), Ethernet.
struct PcapngInterface {
    std::string name;
    std::string description;
    std::string hardware;
    std::uint64_t bits_per_second = 0;  ///< 0: not known
    std::uint32_t snap_bytes = 0;       ///< packets are cut off after so many bytes; 0: not at all
    std::optional<std::array<std::uint8_t, 6>> mac;
};

/// A received packet (Enhanced Packet Block).
struct PcapngPacket {
    std::span<const std::byte> bytes;  ///< as captured
    core::TimeNs time_ns = 0;          ///< UNIX time; what lies before 1970 becomes 0
    std::uint32_t wire_bytes = 0;
    std::uint32_t interface = 0;
    std::optional<std::uint32_t> queue;  ///< receive queue
    std::uint64_t dropped = 0;           ///< packets lost since the one before it on the same interface
    std::span<const std::string> comments{};
};

/// What became of an interface's packets until `time_ns` (Interface Statistics Block). Nothing: not known.
struct PcapngStatistics {
    std::uint32_t interface = 0;
    core::TimeNs time_ns = 0;
    std::optional<core::TimeNs> start_ns;
    std::optional<core::TimeNs> end_ns;
    std::optional<std::uint64_t> received;         ///< by the device, dropped ones included
    std::optional<std::uint64_t> device_dropped;   ///< by the device or its driver
    std::optional<std::uint64_t> accepted;         ///< packets that were to be captured
    std::optional<std::uint64_t> capture_dropped;  ///< of these, those left out for want of room
    std::optional<std::uint64_t> delivered;        ///< of these, those in the file
    std::vector<std::string> comments;
};

void append_block(std::vector<std::byte>& out, const PcapngSection& section);
void append_block(std::vector<std::byte>& out, const PcapngInterface& interface);
void append_block(std::vector<std::byte>& out, const PcapngStatistics& statistics);

/// Bytes that the packet's block takes.
[[nodiscard]] std::size_t block_bytes(const PcapngPacket& packet) noexcept;
/// Writes the block to memory of that size.
void write_block(std::byte* out, const PcapngPacket& packet) noexcept;

/// A longer text is cut: an option holds 65535 bytes, and nobody reads a comment of that length.
inline constexpr std::size_t pcapng_text_bytes_max = 4096;

}  // namespace weir::store

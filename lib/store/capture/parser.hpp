// The parts of CaptureReader: what parses pcapng, and what hands rare kinds of pcap to libpcap. Internal to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/capture/reader.hpp"

struct pcap;

namespace weir::store {

/// libpcap's largest packet on Ethernet (MAXIMUM_SNAPLEN). A larger length in a file is damage.
inline constexpr std::uint32_t capture_bytes_max = 262144;
inline constexpr std::uint32_t link_ethernet = 1;

/// What a snapshot length of a file means: 0 and what no int holds stand for no limit.
[[nodiscard]] std::uint32_t snapshot_of(std::uint32_t stored) noexcept;

/// Seconds and nanoseconds of any size as a time: clamped to what TimeNs holds, never negative.
[[nodiscard]] core::TimeNs capture_time(std::int64_t seconds, std::int64_t fraction_ns) noexcept;

/// "101 (RAW)".
[[nodiscard]] std::string link_text(std::uint32_t link);

/// pcapng as in draft-ietf-opsawg-pcapng: sections in one byte order, any number of interfaces of one link type and
/// snapshot length, Enhanced, Simple and (obsolete) Packet Blocks; all other blocks are skipped.
class PcapngParser {
public:
    /// Reads up to the first interface, which must be there before any packet. Returns why it cannot be read, or "".
    /// At data() is a Section Header Block of which the magic has been recognised.
    [[nodiscard]] std::string open(CaptureInput& input);
    /// 1: a record; 0: the proper end; -1: damage, see reason().
    [[nodiscard]] int next(CaptureInput& input, CaptureRecord& record) noexcept;
    [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
    /// Of all interfaces. After open().
    [[nodiscard]] std::uint32_t link() const noexcept { return link_; }

private:
    struct Interface {
        std::uint64_t ticks_per_s = 1'000'000;
        std::int64_t offset_s = 0;
    };
    struct Block {
        std::uint32_t type = 0;
        std::uint32_t bytes = 0;  ///< all of it; at data() lies this much, unless it is of a kind that is skipped
        bool is_whole = false;
    };
    /// As next(). A block that is skipped is consumed. Of the first one in a file libpcap looks at less.
    [[nodiscard]] int take(CaptureInput& input, Block& block, bool first = false) noexcept;
    [[nodiscard]] bool section(const std::byte* at, std::uint32_t bytes, bool first = false) noexcept;
    [[nodiscard]] bool interface(const std::byte* at, std::uint32_t bytes) noexcept;
    [[nodiscard]] bool interface_options(const std::byte* at, const std::byte* end, Interface& out) noexcept;
    [[nodiscard]] bool packet(const std::byte* at, const Block& block, CaptureRecord& record) noexcept;
    [[nodiscard]] bool fail(std::string reason) noexcept;
    [[nodiscard]] std::uint16_t u16(const std::byte* at) const noexcept;
    [[nodiscard]] std::uint32_t u32(const std::byte* at) const noexcept;

    bool swapped_ = false;
    std::optional<std::uint32_t> snapshot_bytes_;  ///< of the first interface, and so of all
    std::uint32_t link_ = link_ethernet;           ///< likewise
    std::vector<Interface> interfaces_;
    std::string reason_;
};

/// libpcap over the same bytes.
class LibraryParser {
public:
    LibraryParser() = default;
    ~LibraryParser();
    LibraryParser(const LibraryParser&) = delete;
    LibraryParser& operator=(const LibraryParser&) = delete;
    /// Returns why it cannot be read, or "". From then on the input is libpcap's.
    [[nodiscard]] std::string open(CaptureInput& input);
    /// 1: a record; 0: the proper end; -1: damage, see reason().
    [[nodiscard]] int next(CaptureRecord& record) noexcept;
    [[nodiscard]] std::string reason() const;
    /// After open().
    [[nodiscard]] std::uint32_t link() const noexcept;
    /// The reader that owns the input has moved.
    void moved_to(CaptureInput& input) noexcept { input_ = &input; }

private:
    CaptureInput* input_ = nullptr;
    pcap* handle_ = nullptr;
};

}  // namespace weir::store

// The part of CaptureReader that parses pcapng. Internal to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/capture/link.hpp"
#include "store/capture/reader.hpp"

namespace weir::store {

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

}  // namespace weir::store

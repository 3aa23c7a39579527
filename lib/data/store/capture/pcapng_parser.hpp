// The part of CaptureReader that parses pcapng. Internal to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/capture/link.hpp"
#include "store/capture/reader.hpp"

namespace weir::store {

/// pcapng as in draft-ietf-opsawg-pcapng: any number of sections, each in its own byte order, any number of interfaces,
/// each with its own snapshot length, resolution and offset, Enhanced, Simple and (obsolete) Packet Blocks; all other
/// blocks are skipped. Packets of Ethernet interfaces are delivered. Those of another kind that can be made Ethernet
/// (link.hpp) are, unless an Ethernet interface is described before the first packet, and only those of the kind that
/// comes first: what is left is skipped and counted.
class PcapngParser {
public:
    /// Reads up to the first interface that can be read, and beyond it to the first packet where that is no Ethernet.
    /// Returns why it cannot be read, or "". At data() is a Section Header Block of which the magic has been
    /// recognised.
    [[nodiscard]] std::string open(CaptureInput& input);
    /// 1: a record; 0: the proper end; -1: damage, see reason().
    [[nodiscard]] int next(CaptureInput& input, CaptureRecord& record) noexcept;
    [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
    /// Packets of interfaces that are not read, so far.
    [[nodiscard]] std::uint64_t other_link() const noexcept { return other_link_; }
    /// "276 (LINUX_SLL2), and Ethernet is read"; after other_link() has become more than 0.
    [[nodiscard]] std::string other_link_text() const;

private:
    struct Interface {
        std::uint64_t ticks_per_s = 1'000'000;
        std::int64_t offset_s = 0;
        std::uint32_t snapshot_bytes = 0;
        std::uint32_t link = 0;
    };
    struct Block {
        std::uint32_t type = 0;
        std::uint32_t bytes = 0;  ///< all of it; at data() lies this much, unless it is of a kind that is skipped
        bool is_whole = false;
    };
    /// As next(). A block that is skipped is consumed. Of the first one in a file libpcap looks at less.
    [[nodiscard]] int take(CaptureInput& input, Block& block, bool first = false) noexcept;
    /// Its type and length, and the byte order where a section begins. False: no block begins here.
    [[nodiscard]] bool begin(CaptureInput& input, Block& block, bool first) noexcept;
    /// Whether a block that is longer than any Ethernet packet may be passed over unread.
    [[nodiscard]] bool may_skip(CaptureInput& input, const Block& block) noexcept;
    /// A block that is no packet, and lies at `at`.
    [[nodiscard]] bool description(const std::byte* at, const Block& block, bool first = false) noexcept;
    [[nodiscard]] bool section(const std::byte* at, std::uint32_t bytes, bool first) noexcept;
    [[nodiscard]] bool interface(const std::byte* at, std::uint32_t bytes) noexcept;
    [[nodiscard]] bool interface_options(const std::byte* at, const std::byte* end, Interface& out) noexcept;
    /// For open(): a block before the first packet that is read. 1: consumed; -1: damage.
    [[nodiscard]] int pass(CaptureInput& input, const Block& block, bool first) noexcept;
    /// A packet block at data(). 1: a record; 0: one that is not read; -1: damage.
    [[nodiscard]] int packet(CaptureInput& input, const Block& block, CaptureRecord& record) noexcept;
    [[nodiscard]] bool fill(const std::byte* at, const Block& block, const Interface& from,
                            CaptureRecord& record) noexcept;
    /// Of a packet block that begins at `at`; null: it is not described.
    [[nodiscard]] const Interface* interface_of(const std::byte* at, std::uint32_t type) const noexcept;
    [[nodiscard]] bool is_read(const Interface& from) const noexcept {
        return from.link == link_ethernet || from.link == converted_;
    }
    void leave_out(const Interface& from) noexcept;
    [[nodiscard]] bool fail(std::string reason) noexcept;
    [[nodiscard]] std::uint16_t u16(const std::byte* at) const noexcept;
    [[nodiscard]] std::uint32_t u32(const std::byte* at) const noexcept;

    bool swapped_ = false;
    std::vector<Interface> interfaces_;        ///< of the section
    std::optional<std::uint32_t> first_link_;  ///< of the file
    std::optional<std::uint32_t> converted_;   ///< the kind besides Ethernet that is read
    bool decided_ = false;                     ///< whether there is one
    std::unique_ptr<CaptureLink> link_;        ///< for it
    std::optional<Block> held_;                ///< open() has taken it for next()
    std::optional<int> ended_;                 ///< open() has found the end: what next() says
    std::uint64_t other_link_ = 0;
    std::vector<std::uint32_t> other_links_;
    std::string reason_;
};

}  // namespace weir::store

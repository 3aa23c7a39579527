#include "store/capture/pcapng_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "store/capture/pcapng_format.hpp"
#include "store/capture/stored_numbers.hpp"

namespace weir::store {

namespace {

constexpr std::uint32_t section_bytes_min = store::pcapng::frame_bytes + 16;
constexpr std::uint32_t interface_bytes_min = store::pcapng::frame_bytes + 8;
constexpr std::uint32_t block_bytes_max = 16U << 20;  // as libpcap has it: more is damage
constexpr std::size_t interfaces_max = 65536;

bool is_packet(std::uint32_t type) noexcept {
    return type == store::pcapng::obsolete_packet_block || type == store::pcapng::simple_packet_block ||
           type == store::pcapng::packet_block;
}

}  // namespace

std::uint16_t PcapngParser::u16(const std::byte* at) const noexcept {
    std::uint16_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return swapped_ ? __builtin_bswap16(value) : value;
}

std::uint32_t PcapngParser::u32(const std::byte* at) const noexcept {
    std::uint32_t value = 0;
    std::memcpy(&value, at, sizeof value);
    return swapped_ ? __builtin_bswap32(value) : value;
}

bool PcapngParser::fail(std::string reason) noexcept {
    reason_ = std::move(reason);
    return false;
}

int PcapngParser::take(CaptureInput& input, Block& block, bool first) noexcept {
    if (!input.need(8)) {
        if (input.there() == 0) return 0;
        reason_ = "the file ends inside a block's header";
        return -1;
    }
    block.type = u32(input.data());
    block.bytes = u32(input.data() + 4);
    if (block.bytes < store::pcapng::frame_bytes || (block.bytes % 4 != 0 && !first) || block.bytes > block_bytes_max) {
        reason_ = fmt::format("a block of {} bytes, which none can have", block.bytes);
        return -1;
    }
    const bool wanted = is_packet(block.type) || block.type == store::pcapng::interface_block ||
                        block.type == store::pcapng::section_block;
    if (wanted && block.bytes > CaptureInput::need_max) {
        reason_ = fmt::format("a block of {} bytes; at most {} are read", block.bytes, CaptureInput::need_max);
        return -1;
    }
    block.is_whole = block.bytes <= CaptureInput::need_max;
    const std::uint32_t before = block.bytes - 4;
    if (block.is_whole ? !input.need(block.bytes) : !(input.skip(before) && input.need(4))) {
        reason_ = "the file ends inside a block";
        return -1;
    }
    if (!first && u32(input.data() + (block.is_whole ? before : 0)) != block.bytes) {
        reason_ = "the lengths at the two ends of a block differ";
        return -1;
    }
    if (!block.is_whole) input.consume(4);
    return 1;
}

bool PcapngParser::section(const std::byte* at, std::uint32_t bytes, bool first) noexcept {
    if (bytes < section_bytes_min) return fail(fmt::format("a section header of {} bytes", bytes));
    const std::uint32_t order = u32(at + 8);
    if (order != store::pcapng::byte_order_magic)
        return fail(order == __builtin_bswap32(store::pcapng::byte_order_magic) ? "sections in different byte orders"
                                                                                : "a section without a byte order");
    const std::uint16_t major = u16(at + 12);
    const std::uint16_t minor = u16(at + 14);
    if (major != 1 || (first && minor != 0 && minor != 2))
        return fail(fmt::format("pcapng version {}.{}; 1.0 and 1.2 can be read", major, minor));
    interfaces_.clear();
    return true;
}

bool PcapngParser::interface(const std::byte* at, std::uint32_t bytes) noexcept {
    if (bytes < interface_bytes_min) return fail(fmt::format("an interface description of {} bytes", bytes));
    const std::uint32_t link = u16(at + 8);
    const std::uint32_t snapshot = snapshot_of(u32(at + 12));
    if (!CaptureLink::is_known(link)) return fail(CaptureLink::refusal(link));
    if (snapshot_bytes_.has_value() && link_ != link)
        return fail(fmt::format("an interface of link type {} after one of {}", link_text(link), link_text(link_)));
    if (snapshot_bytes_.has_value() && *snapshot_bytes_ != snapshot)
        return fail(fmt::format("an interface with snapshot length {} after one with {}", snapshot, *snapshot_bytes_));
    if (interfaces_.size() == interfaces_max) return fail(fmt::format("more than {} interfaces", interfaces_max));
    Interface fresh;
    if (!interface_options(at + 16, at + bytes - 4, fresh)) return false;
    snapshot_bytes_ = snapshot;
    link_ = link;
    interfaces_.push_back(fresh);
    return true;
}

bool PcapngParser::interface_options(const std::byte* at, const std::byte* end, Interface& out) noexcept {
    bool saw_resolution = false;
    bool saw_offset = false;
    while (at != end) {
        if (end - at < 4) return fail("an interface's options are cut off");
        const std::uint16_t code = u16(at);
        const std::uint16_t bytes = u16(at + 2);
        const std::ptrdiff_t padded = (bytes + 3) / 4 * 4;
        at += 4;
        if (end - at < padded) return fail("an interface's options are cut off");
        if (code == store::pcapng::opt_end) return bytes == 0 || fail("an end of options with a length");
        if (code == store::pcapng::if_tsresol) {
            if (bytes != 1 || std::exchange(saw_resolution, true)) return fail("a damaged time resolution");
            const auto stored = std::to_integer<unsigned>(*at);
            const unsigned exponent = stored & 0x7fU;
            const bool binary = (stored & 0x80U) != 0;
            if (exponent > (binary ? 63U : 19U)) return fail("a time resolution that is too fine");
            out.ticks_per_s = binary ? std::uint64_t{1} << exponent : 1;
            for (unsigned i = 0; !binary && i < exponent; ++i) out.ticks_per_s *= 10;
        } else if (code == store::pcapng::if_tsoffset) {
            if (bytes != 8 || std::exchange(saw_offset, true)) return fail("a damaged time offset");
            std::uint64_t value = 0;
            std::memcpy(&value, at, sizeof value);
            out.offset_s = static_cast<std::int64_t>(swapped_ ? __builtin_bswap64(value) : value);
        }
        at += padded;
    }
    return true;
}

bool PcapngParser::packet(const std::byte* at, const Block& block, CaptureRecord& record) noexcept {
    const std::byte* end = at + block.bytes - 4;
    const std::byte* body = at + 8;
    const std::ptrdiff_t fixed = block.type == store::pcapng::simple_packet_block ? 4 : 20;
    if (end - body < fixed) return fail("a packet block that is too short for its header");
    std::uint32_t which = 0;
    std::uint64_t ticks = 0;
    std::uint32_t captured = 0;
    if (block.type == store::pcapng::simple_packet_block) {
        // It has no captured length: what the snapshot length leaves of the packet.
        record.wire_bytes = u32(body);
        captured = std::min(record.wire_bytes, *snapshot_bytes_);
    } else {
        which = block.type == store::pcapng::obsolete_packet_block ? u16(body) : u32(body);
        ticks = std::uint64_t{u32(body + 4)} << 32U | u32(body + 8);
        captured = u32(body + 12);
        record.wire_bytes = std::max(u32(body + 16), captured);
    }
    if (which >= interfaces_.size()) return fail(fmt::format("a packet on interface {}, which is not there", which));
    if (captured > *snapshot_bytes_)
        return fail(fmt::format("a packet of {} bytes, beyond the snapshot length", captured));
    if (static_cast<std::size_t>(end - body - fixed) < captured) return fail("a packet longer than its block");
    const Interface& from = interfaces_[which];
    const std::uint64_t seconds = ticks / from.ticks_per_s + static_cast<std::uint64_t>(from.offset_s);
    const auto fraction_ns = static_cast<std::int64_t>(static_cast<unsigned __int128>(ticks % from.ticks_per_s) *
                                                       static_cast<std::uint64_t>(core::ns_per_s) / from.ticks_per_s);
    record.time_ns = capture_time(static_cast<std::int64_t>(seconds), fraction_ns);
    record.bytes = {body + fixed, captured};
    return true;
}

std::string PcapngParser::open(CaptureInput& input) {
    if (!input.need(12)) return "the file ends inside its section header";
    std::uint32_t order = 0;
    std::memcpy(&order, input.data() + 8, sizeof order);
    swapped_ = order == __builtin_bswap32(store::pcapng::byte_order_magic);
    for (bool first = true;; first = false) {
        Block block;
        const int state = take(input, block, first);
        if (state < 0) return reason_;
        if (state == 0) return "no interface is described";
        if (is_packet(block.type)) return "a packet before any interface is described";
        if (!block.is_whole) continue;
        if (first && !section(input.data(), block.bytes, true)) return reason_;
        if (block.type == store::pcapng::interface_block && !interface(input.data(), block.bytes)) return reason_;
        input.consume(block.bytes);
        if (!interfaces_.empty()) return {};
    }
}

int PcapngParser::next(CaptureInput& input, CaptureRecord& record) noexcept {
    for (;;) {
        Block block;
        const int state = take(input, block);
        if (state <= 0) return state;
        if (!block.is_whole) continue;
        const std::byte* at = input.data();
        bool good = true;
        if (block.type == store::pcapng::section_block)
            good = section(at, block.bytes);
        else if (block.type == store::pcapng::interface_block)
            good = interface(at, block.bytes);
        else if (is_packet(block.type)) {
            good = packet(at, block, record);
            record.block = input.block();
        }
        if (!good) return -1;
        input.consume(block.bytes);
        if (is_packet(block.type)) return 1;
    }
}

}  // namespace weir::store

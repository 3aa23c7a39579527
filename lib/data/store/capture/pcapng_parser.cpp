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

/// Of a packet block's body, before the packet.
std::size_t fixed_bytes(std::uint32_t type) noexcept {
    return type == store::pcapng::simple_packet_block ? 4 : store::pcapng::packet_head_bytes;
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

bool PcapngParser::begin(CaptureInput& input, Block& block, bool first) noexcept {
    block.type = u32(input.data());
    if (block.type == store::pcapng::section_block) {
        if (!input.need(12)) return fail("the file ends inside a block's header");
        std::uint32_t order = 0;
        std::memcpy(&order, input.data() + 8, sizeof order);
        swapped_ = order == __builtin_bswap32(store::pcapng::byte_order_magic);
    }
    block.bytes = u32(input.data() + 4);
    if (block.type == 0 && block.bytes == 0) return fail("zeros where a block should begin");
    if (block.bytes < store::pcapng::frame_bytes || (block.bytes % 4 != 0 && !first) || block.bytes > block_bytes_max)
        return fail(fmt::format("a block of {} bytes, which none can have", block.bytes));
    return true;
}

bool PcapngParser::may_skip(CaptureInput& input, const Block& block) noexcept {
    if (block.type == store::pcapng::interface_block || block.type == store::pcapng::section_block) return false;
    if (!is_packet(block.type)) return true;
    if (!input.need(store::pcapng::frame_bytes)) return false;
    const Interface* from = interface_of(input.data(), block.type);
    if (from == nullptr || is_read(*from)) return false;
    leave_out(*from);
    return true;
}

int PcapngParser::take(CaptureInput& input, Block& block, bool first) noexcept {
    if (!input.need(8)) {
        if (input.there() == 0) return 0;
        reason_ = "the file ends inside a block's header";
        return -1;
    }
    if (!begin(input, block, first)) return -1;
    block.is_whole = block.bytes <= CaptureInput::need_max;
    if (!block.is_whole && !may_skip(input, block)) {
        reason_ = fmt::format("a block of {} bytes; at most {} are read", block.bytes, CaptureInput::need_max);
        return -1;
    }
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

bool PcapngParser::description(const std::byte* at, const Block& block, bool first) noexcept {
    if (block.type == store::pcapng::section_block) return section(at, block.bytes, first);
    return block.type != store::pcapng::interface_block || interface(at, block.bytes);
}

bool PcapngParser::section(const std::byte* at, std::uint32_t bytes, bool first) noexcept {
    if (bytes < section_bytes_min) return fail(fmt::format("a section header of {} bytes", bytes));
    if (u32(at + 8) != store::pcapng::byte_order_magic) return fail("a section without a byte order");
    const std::uint16_t major = u16(at + 12);
    const std::uint16_t minor = u16(at + 14);
    if (major != 1 || (first && minor != 0 && minor != 2))
        return fail(fmt::format("pcapng version {}.{}; 1.0 and 1.2 can be read", major, minor));
    interfaces_.clear();
    return true;
}

bool PcapngParser::interface(const std::byte* at, std::uint32_t bytes) noexcept {
    if (bytes < interface_bytes_min) return fail(fmt::format("an interface description of {} bytes", bytes));
    if (interfaces_.size() == interfaces_max) return fail(fmt::format("more than {} interfaces", interfaces_max));
    Interface fresh;
    fresh.link = u16(at + 8);
    fresh.snapshot_bytes = snapshot_of(u32(at + 12));
    if (!interface_options(at + 16, at + bytes - 4, fresh)) return false;
    if (!first_link_) first_link_ = fresh.link;
    if (!decided_ && fresh.link == link_ethernet) {
        converted_.reset();
        decided_ = true;
    } else if (!decided_ && !converted_ && CaptureLink::is_known(fresh.link)) {
        converted_ = fresh.link;
    }
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

const PcapngParser::Interface* PcapngParser::interface_of(const std::byte* at, std::uint32_t type) const noexcept {
    std::uint32_t which = 0;
    if (type == store::pcapng::packet_block) which = u32(at + 8);
    if (type == store::pcapng::obsolete_packet_block) which = u16(at + 8);
    return which < interfaces_.size() ? &interfaces_[which] : nullptr;
}

void PcapngParser::leave_out(const Interface& from) noexcept {
    ++other_link_;
    if (std::ranges::find(other_links_, from.link) == other_links_.end()) other_links_.push_back(from.link);
}

std::string PcapngParser::other_link_text() const {
    std::string text;
    for (const std::uint32_t link : other_links_) text += (text.empty() ? "" : ", ") + link_text(link);
    return text +
           (converted_ ? fmt::format("; {} and Ethernet are read", link_text(*converted_)) : "; Ethernet is read");
}

bool PcapngParser::fill(const std::byte* at, const Block& block, const Interface& from,
                        CaptureRecord& record) noexcept {
    const std::byte* end = at + block.bytes - 4;
    const std::byte* body = at + 8;
    std::uint64_t ticks = 0;
    std::uint32_t captured = 0;
    if (block.type == store::pcapng::simple_packet_block) {
        // It has no captured length: what the snapshot length leaves of the packet.
        record.wire_bytes = u32(body);
        captured = std::min(record.wire_bytes, from.snapshot_bytes);
    } else {
        ticks = std::uint64_t{u32(body + 4)} << 32U | u32(body + 8);
        captured = u32(body + 12);
        record.wire_bytes = std::max(u32(body + 16), captured);
    }
    if (captured > from.snapshot_bytes)
        return fail(fmt::format("a packet of {} bytes, beyond the snapshot length", captured));
    const std::size_t fixed = fixed_bytes(block.type);
    if (static_cast<std::size_t>(end - body) - fixed < captured) return fail("a packet longer than its block");
    const std::uint64_t seconds = ticks / from.ticks_per_s + static_cast<std::uint64_t>(from.offset_s);
    const auto fraction_ns = static_cast<std::int64_t>(static_cast<unsigned __int128>(ticks % from.ticks_per_s) *
                                                       static_cast<std::uint64_t>(core::ns_per_s) / from.ticks_per_s);
    record.time_ns = capture_time(static_cast<std::int64_t>(seconds), fraction_ns);
    record.bytes = {body + fixed, captured};
    return true;
}

int PcapngParser::packet(CaptureInput& input, const Block& block, CaptureRecord& record) noexcept {
    const std::byte* at = input.data();
    if (block.bytes < store::pcapng::frame_bytes + fixed_bytes(block.type)) {
        reason_ = "a packet block that is too short for its header";
        return -1;
    }
    const Interface* from = interface_of(at, block.type);
    if (from == nullptr) {
        reason_ = "a packet on an interface that is not described";
        return -1;
    }
    const bool wanted = is_read(*from);
    if (wanted && !fill(at, block, *from, record)) return -1;
    record.block = input.block();
    input.consume(block.bytes);
    if (!wanted) {
        leave_out(*from);
        return 0;
    }
    if (from->link != link_ethernet) link_->to_ethernet(record);
    return 1;
}

std::string PcapngParser::open(CaptureInput& input) {
    if (!input.need(12)) return "the file ends inside its section header";
    for (bool first = true; !decided_; first = false) {
        Block block;
        int state = take(input, block, first);
        if (state > 0 && block.is_whole && is_packet(block.type) && converted_) {
            held_ = block;
            break;
        }
        if (state > 0 && block.is_whole) state = pass(input, block, first);
        if (state > 0) continue;
        if (!converted_) {
            if (state < 0) return reason_;
            return first_link_ ? CaptureLink::refusal(*first_link_) : "no interface is described";
        }
        ended_ = state;
        break;
    }
    decided_ = true;
    if (converted_) link_ = std::make_unique<CaptureLink>(*converted_);
    return {};
}

int PcapngParser::pass(CaptureInput& input, const Block& block, bool first) noexcept {
    if (is_packet(block.type)) {
        CaptureRecord none;
        if (first_link_) return packet(input, block, none) < 0 ? -1 : 1;
        reason_ = "a packet before any interface is described";
        return -1;
    }
    if (!description(input.data(), block, first)) return -1;
    input.consume(block.bytes);
    return 1;
}

int PcapngParser::next(CaptureInput& input, CaptureRecord& record) noexcept {
    if (ended_) return *ended_;
    for (;;) {
        Block block;
        if (held_) {
            block = *held_;
            held_.reset();
        } else if (const int state = take(input, block); state <= 0) {
            return state;
        }
        if (!block.is_whole) continue;
        if (is_packet(block.type)) {
            if (const int state = packet(input, block, record); state != 0) return state;
            continue;
        }
        if (!description(input.data(), block)) return -1;
        input.consume(block.bytes);
    }
}

}  // namespace weir::store

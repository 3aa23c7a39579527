#include "store/capture/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "store/capture/pcap_library.hpp"

namespace weir::store {

namespace {

// https://www.tcpdump.org/linktypes.html
constexpr std::uint32_t link_null = 0;      // four bytes: the address family, in the byte order of the machine
constexpr std::uint32_t link_raw_bsd = 12;  // what DLT_RAW is on Linux; files should have 101
constexpr std::uint32_t link_raw = 101;
constexpr std::uint32_t link_loop = 108;  // as null, but in network byte order
constexpr std::uint32_t link_sll = 113;
constexpr std::uint32_t link_ipv4 = 228;
constexpr std::uint32_t link_ipv6 = 229;
constexpr std::uint32_t link_sll2 = 276;

constexpr std::uint16_t type_ipv4 = 0x0800;
constexpr std::uint16_t type_ipv6 = 0x86dd;
constexpr std::uint32_t ethernet_bytes = 14;
constexpr std::size_t frame_bytes_max = CaptureInput::need_max + ethernet_bytes;

std::uint16_t big(const std::byte* at) noexcept {
    return static_cast<std::uint16_t>(std::to_integer<unsigned>(at[0]) << 8U | std::to_integer<unsigned>(at[1]));
}

/// Of a packet that begins with its IP header.
std::uint16_t type_by_version(std::byte first) noexcept {
    const unsigned version = std::to_integer<unsigned>(first) >> 4U;
    return version == 4 ? type_ipv4 : version == 6 ? type_ipv6 : std::uint16_t{0};
}

/// Of an address family in either byte order, so that captures of any machine are read. IPv6 has as many numbers as
/// there are systems: Linux, NetBSD and OpenBSD, FreeBSD, macOS.
std::uint16_t type_by_family(const std::byte* at) noexcept {
    const unsigned family = std::to_integer<unsigned>(at[0]) | std::to_integer<unsigned>(at[3]);
    if (at[1] != std::byte{0} || at[2] != std::byte{0} || (at[0] != std::byte{0} && at[3] != std::byte{0})) return 0;
    if (family == 2) return type_ipv4;
    return family == 10 || family == 24 || family == 28 || family == 30 ? type_ipv6 : std::uint16_t{0};
}

/// In these "cooked" captures the field has another meaning where the interface is a wireless monitor or netlink.
bool has_ethertype(std::uint16_t hardware) noexcept {
    return hardware != 801 && hardware != 802 && hardware != 803 && hardware != 824;
}

}  // namespace

std::string link_text(std::uint32_t link) {
    const char* name = pcap().pcap_datalink_val_to_name(static_cast<int>(link));
    return fmt::format("{} ({})", link, name != nullptr ? name : "unknown");
}

bool CaptureLink::is_known(std::uint32_t link) noexcept {
    constexpr std::array known{link_ethernet, link_null, link_raw_bsd, link_raw, link_loop,
                               link_sll,      link_ipv4, link_ipv6,    link_sll2};
    return std::ranges::find(known, link) != known.end();
}

std::string CaptureLink::refusal(std::uint32_t link) {
    return fmt::format(
        "captured on link type {}; captures of Ethernet, of `tcpdump -i any` (LINUX_SLL, LINUX_SLL2), "
        "RAW, NULL and LOOP can be replayed",
        link_text(link));
}

CaptureLink::CaptureLink(std::uint32_t link)
    : link_(link), frame_(std::make_unique_for_overwrite<std::byte[]>(frame_bytes_max)) {}

CaptureLink::Header CaptureLink::header_of(const CaptureRecord& record) const noexcept {
    Header header;
    const std::byte* at = record.bytes.data();
    const auto there = [&](std::uint32_t bytes) {
        header.bytes = bytes;
        return record.bytes.size() >= bytes;
    };
    const auto cooked = [&](std::size_t type, std::size_t hardware, std::size_t address, unsigned length) {
        if (has_ethertype(big(at + hardware))) header.type = big(at + type);
        if (length == header.source.size()) std::copy_n(at + address, header.source.size(), header.source.begin());
    };
    if (link_ == link_sll) {
        if (there(16)) cooked(14, 2, 6, big(at + 4));
    } else if (link_ == link_sll2) {
        if (there(20)) cooked(0, 8, 12, std::to_integer<unsigned>(at[11]));
    } else if (link_ == link_null || link_ == link_loop) {
        if (there(4)) header.type = type_by_family(at);
    } else if (!record.bytes.empty()) {
        header.type = type_by_version(*at);
    }
    return header;
}

void CaptureLink::to_ethernet(CaptureRecord& record) noexcept {
    if (link_ == link_ethernet) return;
    const Header header = header_of(record);
    record.block = nullptr;
    if (record.bytes.size() < header.bytes) {
        record.bytes = {};
        return;
    }
    const std::span<const std::byte> payload = record.bytes.subspan(header.bytes);
    const std::size_t bytes = std::min<std::size_t>(payload.size(), frame_bytes_max - ethernet_bytes);
    std::byte* frame = frame_.get();
    std::fill_n(frame, 6, std::byte{0});  // whom it was for is not told, and nobody asks
    std::ranges::copy(header.source, frame + 6);
    frame[12] = std::byte(header.type >> 8U);
    frame[13] = std::byte(header.type & 0xffU);
    std::copy_n(payload.begin(), bytes, frame + ethernet_bytes);
    record.bytes = {frame, ethernet_bytes + bytes};
    // A length that no packet has, but a damaged file may, does not become a short one.
    constexpr std::uint64_t longest = std::numeric_limits<std::uint32_t>::max();
    const std::uint64_t wire = std::uint64_t{record.wire_bytes} - header.bytes + ethernet_bytes;
    record.wire_bytes = static_cast<std::uint32_t>(std::min(wire, longest));
}

}  // namespace weir::store

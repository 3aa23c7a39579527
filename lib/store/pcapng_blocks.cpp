// pcapng blocks. See pcapng_blocks.hpp.
#include "store/pcapng_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace weir::store {

namespace {

// Block types and option codes of the draft; a reader tells the byte order from the magic.
constexpr std::uint32_t section_block = 0x0a0d0d0a;
constexpr std::uint32_t interface_block = 1;
constexpr std::uint32_t statistics_block = 5;
constexpr std::uint32_t packet_block = 6;
constexpr std::uint32_t byte_order_magic = 0x1a2b3c4d;
constexpr std::uint16_t link_ethernet = 1;

constexpr std::uint16_t opt_end = 0;
constexpr std::uint16_t opt_comment = 1;
constexpr std::uint16_t shb_hardware = 2;
constexpr std::uint16_t shb_os = 3;
constexpr std::uint16_t shb_userappl = 4;
constexpr std::uint16_t if_name = 2;
constexpr std::uint16_t if_description = 3;
constexpr std::uint16_t if_mac_address = 6;
constexpr std::uint16_t if_speed = 8;
constexpr std::uint16_t if_tsresol = 9;
constexpr std::uint16_t if_hardware = 15;
constexpr std::uint16_t epb_flags = 2;
constexpr std::uint16_t epb_dropcount = 4;
constexpr std::uint16_t epb_queue = 6;
constexpr std::uint16_t isb_starttime = 2;
constexpr std::uint16_t isb_endtime = 3;
constexpr std::uint16_t isb_ifrecv = 4;
constexpr std::uint16_t isb_ifdrop = 5;
constexpr std::uint16_t isb_filteraccept = 6;
constexpr std::uint16_t isb_osdrop = 7;
constexpr std::uint16_t isb_usrdeliv = 8;

constexpr std::uint8_t nanoseconds = 9;  // if_tsresol: a power of ten
constexpr std::uint32_t inbound = 1;     // epb_flags, bits 0 and 1
constexpr std::size_t frame_bytes = 12;  // a block's type and its length, before and after
constexpr std::size_t packet_head_bytes = 20;

constexpr std::size_t padded(std::size_t bytes) noexcept {
    return (bytes + 3) & ~std::size_t{3};
}

std::string_view cut(std::string_view text) noexcept {
    if (text.size() <= pcapng_text_bytes_max) return text;
    std::size_t end = pcapng_text_bytes_max;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // not inside a UTF-8 character
    return text.substr(0, end);
}

/// Puts values one after the other.
class Cursor {
public:
    explicit Cursor(std::byte* at) noexcept : at_(at) {}

    template <class T>
    void put(T value) noexcept requires std::is_trivially_copyable_v<T> {
        std::memcpy(at_, &value, sizeof value);
        at_ += sizeof value;
    }
    /// With zeros after it up to a multiple of four bytes.
    void put_bytes(const void* bytes, std::size_t count) noexcept {
        if (count > 0) std::memcpy(at_, bytes, count);
        std::memset(at_ + count, 0, padded(count) - count);
        at_ += padded(count);
    }
    void option(std::uint16_t code, const void* bytes, std::size_t count) noexcept {
        put(code);
        put(static_cast<std::uint16_t>(count));
        put_bytes(bytes, count);
    }
    void text(std::uint16_t code, std::string_view text) noexcept {
        const std::string_view shown = cut(text);
        if (!shown.empty()) option(code, shown.data(), shown.size());
    }
    template <class T>
    void number(std::uint16_t code, T value) noexcept {
        option(code, &value, sizeof value);
    }
    /// Two halves, the upper one first, as the draft has times.
    void time(core::TimeNs time_ns) noexcept {
        const auto value = static_cast<std::uint64_t>(std::max<core::TimeNs>(time_ns, 0));
        put(static_cast<std::uint32_t>(value >> 32U));
        put(static_cast<std::uint32_t>(value));
    }
    void time(std::uint16_t code, core::TimeNs time_ns) noexcept {
        put(code);
        put(std::uint16_t{8});
        time(time_ns);
    }

private:
    std::byte* at_;
};

std::size_t text_bytes(std::string_view text) noexcept {
    return text.empty() ? 0 : 4 + padded(cut(text).size());
}

/// Appends a block of so many body bytes, a multiple of four, that `fill` puts there.
template <class Fill>
void append(std::vector<std::byte>& out, std::uint32_t type, std::size_t body_bytes, Fill fill) {
    const std::size_t before = out.size();
    const std::size_t bytes = frame_bytes + body_bytes;
    out.resize(before + bytes);
    Cursor cursor(out.data() + before);
    cursor.put(type);
    cursor.put(static_cast<std::uint32_t>(bytes));
    fill(cursor);
    cursor.put(static_cast<std::uint32_t>(bytes));
}

}  // namespace

void append_block(std::vector<std::byte>& out, const PcapngSection& section) {
    std::size_t bytes =
        16 + text_bytes(section.hardware) + text_bytes(section.os) + text_bytes(section.application) + 4;
    for (const std::string& comment : section.comments) bytes += text_bytes(comment);
    append(out, section_block, bytes, [&](Cursor& to) {
        to.put(byte_order_magic);
        to.put(std::uint16_t{1});  // version 1.0
        to.put(std::uint16_t{0});
        to.put(std::int64_t{-1});  // how long the section is: not known yet
        for (const std::string& comment : section.comments) to.text(opt_comment, comment);
        to.text(shb_hardware, section.hardware);
        to.text(shb_os, section.os);
        to.text(shb_userappl, section.application);
        to.option(opt_end, nullptr, 0);
    });
}

void append_block(std::vector<std::byte>& out, const PcapngInterface& interface) {
    const std::size_t bytes = 8 + text_bytes(interface.name) + text_bytes(interface.description) +
                              text_bytes(interface.hardware) + (interface.mac ? 12 : 0) +
                              (interface.bits_per_second > 0 ? 12 : 0) + 8 + 4;
    append(out, interface_block, bytes, [&](Cursor& to) {
        to.put(link_ethernet);
        to.put(std::uint16_t{0});
        to.put(interface.snap_bytes);
        to.text(if_name, interface.name);
        to.text(if_description, interface.description);
        if (interface.mac) to.option(if_mac_address, interface.mac->data(), interface.mac->size());
        if (interface.bits_per_second > 0) to.number(if_speed, interface.bits_per_second);
        to.option(if_tsresol, &nanoseconds, 1);
        to.text(if_hardware, interface.hardware);
        to.option(opt_end, nullptr, 0);
    });
}

void append_block(std::vector<std::byte>& out, const PcapngStatistics& statistics) {
    const std::pair<std::uint16_t, std::optional<std::uint64_t>> numbers[] = {
        {isb_ifrecv, statistics.received},       {isb_ifdrop, statistics.device_dropped},
        {isb_filteraccept, statistics.accepted}, {isb_osdrop, statistics.capture_dropped},
        {isb_usrdeliv, statistics.delivered},
    };
    std::size_t bytes = 12 + (statistics.start_ns ? 12 : 0) + (statistics.end_ns ? 12 : 0) + 4;
    for (const auto& [code, value] : numbers) bytes += value ? 12 : 0;
    for (const std::string& comment : statistics.comments) bytes += text_bytes(comment);
    append(out, statistics_block, bytes, [&](Cursor& to) {
        to.put(statistics.interface);
        to.time(statistics.time_ns);
        for (const std::string& comment : statistics.comments) to.text(opt_comment, comment);
        if (statistics.start_ns) to.time(isb_starttime, *statistics.start_ns);
        if (statistics.end_ns) to.time(isb_endtime, *statistics.end_ns);
        for (const auto& [code, value] : numbers)
            if (value) to.number(code, *value);
        to.option(opt_end, nullptr, 0);
    });
}

std::size_t block_bytes(const PcapngPacket& packet) noexcept {
    std::size_t bytes = frame_bytes + packet_head_bytes + padded(packet.bytes.size()) + 8 + 4;
    if (packet.dropped > 0) bytes += 12;
    if (packet.queue) bytes += 8;
    for (const std::string& comment : packet.comments) bytes += text_bytes(comment);
    return bytes;
}

void write_block(std::byte* out, const PcapngPacket& packet) noexcept {
    const auto bytes = static_cast<std::uint32_t>(block_bytes(packet));
    Cursor to(out);
    to.put(packet_block);
    to.put(bytes);
    to.put(packet.interface);
    to.time(packet.time_ns);
    to.put(static_cast<std::uint32_t>(packet.bytes.size()));
    to.put(packet.wire_bytes);
    to.put_bytes(packet.bytes.data(), packet.bytes.size());
    for (const std::string& comment : packet.comments) to.text(opt_comment, comment);
    to.number(epb_flags, inbound);
    if (packet.dropped > 0) to.number(epb_dropcount, packet.dropped);
    if (packet.queue) to.number(epb_queue, *packet.queue);
    to.option(opt_end, nullptr, 0);
    to.put(bytes);
}

}  // namespace weir::store

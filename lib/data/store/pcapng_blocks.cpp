// pcapng blocks. See pcapng_blocks.hpp.
#include "store/pcapng_blocks.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "store/capture/pcapng_format.hpp"

namespace weir::store {

namespace {

constexpr std::uint16_t link_type = 1;  // Ethernet

constexpr std::uint8_t nanoseconds = 9;  // pcapng::if_tsresol: a power of ten
constexpr std::uint32_t inbound = 1;     // pcapng::epb_flags, bits 0 and 1

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
        std::memset(at_ + count, 0, pcapng::filled(count) - count);
        at_ += pcapng::filled(count);
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
    return text.empty() ? 0 : 4 + pcapng::filled(cut(text).size());
}

/// Appends a block of so many body bytes, a multiple of four, that `fill` puts there.
template <class Fill>
void append(std::vector<std::byte>& out, std::uint32_t type, std::size_t body_bytes, Fill fill) {
    const std::size_t before = out.size();
    const std::size_t bytes = pcapng::frame_bytes + body_bytes;
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
    append(out, pcapng::section_block, bytes, [&](Cursor& to) {
        to.put(pcapng::byte_order_magic);
        to.put(std::uint16_t{1});  // version 1.0
        to.put(std::uint16_t{0});
        to.put(std::int64_t{-1});  // how long the section is: not known yet
        for (const std::string& comment : section.comments) to.text(pcapng::opt_comment, comment);
        to.text(pcapng::shb_hardware, section.hardware);
        to.text(pcapng::shb_os, section.os);
        to.text(pcapng::shb_userappl, section.application);
        to.option(pcapng::opt_end, nullptr, 0);
    });
}

void append_block(std::vector<std::byte>& out, const PcapngInterface& interface) {
    const std::size_t bytes = 8 + text_bytes(interface.name) + text_bytes(interface.description) +
                              text_bytes(interface.hardware) + (interface.mac ? 12 : 0) +
                              (interface.bits_per_second > 0 ? 12 : 0) + 8 + 4;
    append(out, pcapng::interface_block, bytes, [&](Cursor& to) {
        to.put(link_type);
        to.put(std::uint16_t{0});
        to.put(interface.snap_bytes);
        to.text(pcapng::if_name, interface.name);
        to.text(pcapng::if_description, interface.description);
        if (interface.mac) to.option(pcapng::if_mac_address, interface.mac->data(), interface.mac->size());
        if (interface.bits_per_second > 0) to.number(pcapng::if_speed, interface.bits_per_second);
        to.option(pcapng::if_tsresol, &nanoseconds, 1);
        to.text(pcapng::if_hardware, interface.hardware);
        to.option(pcapng::opt_end, nullptr, 0);
    });
}

void append_block(std::vector<std::byte>& out, const PcapngStatistics& statistics) {
    const std::pair<std::uint16_t, std::optional<std::uint64_t>> numbers[] = {
        {pcapng::isb_ifrecv, statistics.received},       {pcapng::isb_ifdrop, statistics.device_dropped},
        {pcapng::isb_filteraccept, statistics.accepted}, {pcapng::isb_osdrop, statistics.capture_dropped},
        {pcapng::isb_usrdeliv, statistics.delivered},
    };
    std::size_t bytes = 12 + (statistics.start_ns ? 12 : 0) + (statistics.end_ns ? 12 : 0) + 4;
    for (const auto& [code, value] : numbers) bytes += value ? 12 : 0;
    for (const std::string& comment : statistics.comments) bytes += text_bytes(comment);
    append(out, pcapng::statistics_block, bytes, [&](Cursor& to) {
        to.put(statistics.interface);
        to.time(statistics.time_ns);
        for (const std::string& comment : statistics.comments) to.text(pcapng::opt_comment, comment);
        if (statistics.start_ns) to.time(pcapng::isb_starttime, *statistics.start_ns);
        if (statistics.end_ns) to.time(pcapng::isb_endtime, *statistics.end_ns);
        for (const auto& [code, value] : numbers)
            if (value) to.number(code, *value);
        to.option(pcapng::opt_end, nullptr, 0);
    });
}

std::size_t block_bytes(const PcapngPacket& packet) noexcept {
    std::size_t bytes = pcapng::frame_bytes + pcapng::packet_head_bytes + pcapng::filled(packet.bytes.size()) + 8 + 4;
    if (packet.dropped > 0) bytes += 12;
    if (packet.queue) bytes += 8;
    for (const std::string& comment : packet.comments) bytes += text_bytes(comment);
    return bytes;
}

void write_block(std::byte* out, const PcapngPacket& packet) noexcept {
    const auto bytes = static_cast<std::uint32_t>(block_bytes(packet));
    Cursor to(out);
    to.put(pcapng::packet_block);
    to.put(bytes);
    to.put(packet.interface);
    to.time(packet.time_ns);
    to.put(static_cast<std::uint32_t>(packet.bytes.size()));
    to.put(packet.wire_bytes);
    to.put_bytes(packet.bytes.data(), packet.bytes.size());
    for (const std::string& comment : packet.comments) to.text(pcapng::opt_comment, comment);
    to.number(pcapng::epb_flags, inbound);
    if (packet.dropped > 0) to.number(pcapng::epb_dropcount, packet.dropped);
    if (packet.queue) to.number(pcapng::epb_queue, *packet.queue);
    to.option(pcapng::opt_end, nullptr, 0);
    to.put(bytes);
}

}  // namespace weir::store

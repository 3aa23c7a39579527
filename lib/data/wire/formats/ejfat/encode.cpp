// The EJFAT encoder and the format's options.
#include "wire/encode.hpp"
#include "wire/formats/ejfat/ejfat.hpp"

namespace weir::wire {

FormatContext Ejfat::make_context(const FormatOptions& options) {
    return {.header_bytes = re_header_bytes,
            .header_read_bytes = lb_header_bytes + re_header_bytes,
            .message_bytes_max = options.message_bytes_max != 0 ? options.message_bytes_max : message_bytes_max_default,
            .carries_source = true};
}

std::size_t write_ejfat(const EjfatHeader& header, std::span<const std::byte> payload,
                        std::span<std::byte> out) noexcept {
    const std::size_t lb_bytes = header.lb_version != 0 ? Ejfat::lb_header_bytes : 0;
    const std::size_t bytes = lb_bytes + Ejfat::re_header_bytes + payload.size();
    if (out.size() < bytes) return 0;
    std::byte* at = out.data();
    if (lb_bytes != 0) {
        store_be(at, Ejfat::lb_magic);
        at[2] = static_cast<std::byte>(header.lb_version);
        at[3] = std::byte{1};
        // Version 3 repeats the low bits of the tick as slot select; version 2 has reserved zeroes there.
        store_be(at + 4, header.lb_version == 3 ? static_cast<std::uint16_t>(header.tick) : std::uint16_t{0});
        store_be(at + 6, header.entropy);
        store_be(at + 8, header.tick);
        at += lb_bytes;
    }
    store_be(at, static_cast<std::uint16_t>(std::uint32_t{header.re_version} << 12U));
    store_be(at + 2, header.data_id);
    store_be(at + 4, header.offset);
    store_be(at + 8, header.total);
    store_be(at + 12, header.event);
    if (!payload.empty()) std::memcpy(at + Ejfat::re_header_bytes, payload.data(), payload.size());
    return bytes;
}

}  // namespace weir::wire

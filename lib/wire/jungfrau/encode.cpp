// The JUNGFRAU encoder and the format's options.
#include "wire/encode.hpp"
#include "core/error.hpp"
#include "wire/jungfrau/jungfrau.hpp"

namespace weir::wire {

FormatContext Jungfrau::make_context(const FormatOptions& options) {
    if (options.interfaces != 1 && options.interfaces != 2)
        throw core::UsageError("interfaces = " + std::to_string(options.interfaces) +
                               ": a JUNGFRAU module has 1 or 2 UDP interfaces");
    const std::uint32_t packets = packets_per_module / static_cast<std::uint32_t>(options.interfaces);
    return {.header_bytes = header_bytes,
            .header_read_bytes = header_bytes,
            .payload_bytes = payload_bytes,
            .packets_per_message = packets,
            .message_bytes = packets * payload_bytes,
            .message_bytes_max = packets * payload_bytes,
            .carries_source = true};
}

std::size_t write_jungfrau(const JungfrauHeader& header, std::span<const std::byte> payload,
                           std::span<std::byte> out) noexcept {
    const std::size_t bytes = Jungfrau::header_bytes + payload.size();
    if (out.size() < bytes) return 0;
    std::byte* at = out.data();
    std::memset(at, 0, Jungfrau::header_bytes);
    store_le(at, header.frame_number);
    store_le(at + 8, header.exposure_100ns);
    store_le(at + 12, header.packet_number);
    store_le(at + 16, header.bunch_id);
    store_le(at + 24, header.timestamp_100ns);
    store_le(at + 32, header.module_id);
    store_le(at + 34, header.row);
    store_le(at + 36, header.column);
    store_le(at + 40, header.daq_info);
    at[46] = static_cast<std::byte>(header.detector_type);
    at[47] = static_cast<std::byte>(header.version);
    if (!payload.empty()) std::memcpy(at + Jungfrau::header_bytes, payload.data(), payload.size());
    return bytes;
}

}  // namespace weir::wire

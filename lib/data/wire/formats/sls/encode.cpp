// The encoder of PSI's detectors: all of them have the same header.
#include "wire/encode.hpp"
#include "wire/formats/sls/sls.hpp"

namespace weir::wire {

std::size_t write_sls(const SlsHeader& header, std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
    const std::size_t bytes = Sls::header_bytes + payload.size();
    if (out.size() < bytes) return 0;
    std::byte* at = out.data();
    std::memset(at, 0, Sls::header_bytes);
    store_le(at, header.frame_number);
    store_le(at + 8, header.exposure_100ns);
    store_le(at + 12, header.packet_number);
    store_le(at + 16, header.bunch_id);
    store_le(at + 24, header.timestamp_100ns);
    store_le(at + 32, header.module_id);
    store_le(at + 34, header.row);
    store_le(at + 36, header.column);
    store_le(at + 40, header.daq_info);
    store_le(at + 44, header.round_robin);
    at[46] = static_cast<std::byte>(header.detector_type);
    at[47] = static_cast<std::byte>(header.version);
    if (!payload.empty()) std::memcpy(at + Sls::header_bytes, payload.data(), payload.size());
    return bytes;
}

}  // namespace weir::wire

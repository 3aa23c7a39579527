// The ESS encoder and the format's options.
#include "wire/encode.hpp"
#include "wire/formats/ess/ess.hpp"

namespace weir::wire {

FormatContext Ess::make_context(const FormatOptions& options) {
    return {.header_bytes = header_bytes_v0,
            .header_read_bytes = header_bytes_v1,
            .packets_per_message = options.ess.packets_per_pulse,
            .message_bytes_max = options.message_bytes_max != 0 ? options.message_bytes_max : message_bytes_max_default,
            .carries_source = true,
            .sequence_bits = sequence_bits,
            .in_sequence = options.ess.packets_per_pulse != 1};
}

std::size_t write_ess(const EssHeader& header, std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
    const std::size_t header_bytes = header.version == 0 ? Ess::header_bytes_v0 : Ess::header_bytes_v1;
    const std::size_t bytes = header_bytes + payload.size();
    if (out.size() < bytes) return 0;
    std::byte* at = out.data();
    at[0] = std::byte{0};
    at[1] = static_cast<std::byte>(header.version);
    store_le(at + 2, Ess::magic | std::uint32_t{header.type} << 24U);
    store_le(at + 6, static_cast<std::uint16_t>(bytes));
    at[8] = static_cast<std::byte>(header.output_queue);
    at[9] = static_cast<std::byte>(header.time_source);
    store_le(at + 10, header.pulse_seconds);
    store_le(at + 14, header.pulse_ticks);
    store_le(at + 18, header.previous_seconds);
    store_le(at + 22, header.previous_ticks);
    store_le(at + 26, header.sequence);
    if (header.version != 0) store_le(at + 30, std::uint16_t{0});
    if (!payload.empty()) std::memcpy(at + header_bytes, payload.data(), payload.size());
    return bytes;
}

}  // namespace weir::wire

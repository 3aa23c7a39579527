// The DUNE encoder and the format's options.
#include "wire/encode.hpp"
#include "wire/formats/dune/dune.hpp"

namespace weir::wire {

FormatContext Dune::make_context(const FormatOptions& options) {
    return {.header_bytes = header_bytes,
            .header_read_bytes = header_bytes,
            .message_bytes_max = options.message_bytes_max != 0 ? options.message_bytes_max : message_bytes_max_default,
            .carries_source = true,
            .sequence_bits = sequence_bits};
}

std::uint32_t dune_source(const DuneHeader& header) noexcept {
    return (header.detector & 0x3fU) | (header.crate & 0x3ffU) << 6U | (header.slot & 0xfU) << 16U |
           (header.stream & 0xffU) << 20U;
}

std::size_t write_dune(const DuneHeader& header, std::span<const std::byte> payload,
                       std::span<std::byte> out) noexcept {
    const std::size_t bytes = Dune::header_bytes + payload.size();
    if (out.size() < bytes) return 0;
    const std::uint64_t words = header.block_length.value_or(payload.size() / Dune::word_bytes) & 0xfffU;
    const std::uint64_t sequence = header.sequence & 0xfffU;
    store_le(out.data(),
             (header.version & 0x3fU) | std::uint64_t{dune_source(header)} << 6U | sequence << 40U | words << 52U);
    store_le(out.data() + 8, header.timestamp);
    if (!payload.empty()) std::memcpy(out.data() + Dune::header_bytes, payload.data(), payload.size());
    return bytes;
}

}  // namespace weir::wire

// EIGER: half modules with two UDP ports, each a tile of 512 x 256 pixels of 4 to 32 bits, in packets of 4096 bytes
// (over 10 Gb/s) or 1024 (over 1 Gb/s). ../sls/sls.hpp decodes it.
#pragma once

#include <string_view>

#include "wire/formats/sls/sls.hpp"

namespace weir::wire {

struct Eiger {
    static constexpr std::string_view name = "eiger";
    static constexpr std::uint32_t rows = 256;  ///< of a port
    static constexpr std::uint32_t columns = 512;
    static constexpr std::uint32_t payload_bytes_10g = 4096;
    static constexpr std::uint32_t payload_bytes_1g = 1024;
    static constexpr std::uint8_t detector_type = 1;
    static constexpr bool zero_is_a_frame = false;  ///< the detector's own receiver drops frame 0

    static FormatContext make_context(const FormatOptions& options);
    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        return Sls::decode<Eiger>(context, datagram, out);
    }
};

/// FormatEntry::image_places (places.cpp).
std::vector<ImagePlace> eiger_places(std::span<const std::span<const std::byte>> headers);

}  // namespace weir::wire

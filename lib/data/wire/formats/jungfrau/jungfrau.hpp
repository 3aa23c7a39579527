// JUNGFRAU: 8192 bytes of pixels in every datagram, 4 rows of 1024 pixels of 16 bits. ../sls/sls.hpp decodes it.
#pragma once

#include <string_view>

#include "wire/formats/sls/sls.hpp"

namespace weir::wire {

struct Jungfrau {
    static constexpr std::string_view name = "jungfrau";
    static constexpr std::uint32_t header_bytes = Sls::header_bytes;
    static constexpr std::uint32_t rows = 512;  ///< of a module; shared evenly by its interfaces
    static constexpr std::uint32_t row_bytes = 2048;
    static constexpr std::uint32_t payload_bytes = 8192;
    static constexpr std::uint32_t packets_per_module = rows * row_bytes / payload_bytes;
    static constexpr std::uint32_t rows_step = 8;  ///< a partial readout has a multiple of these
    static constexpr std::uint8_t detector_type = 3;
    static constexpr bool zero_is_a_frame = true;  ///< counted from 1 by default, but any start can be set

    static FormatContext make_context(const FormatOptions& options);
    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        return Sls::decode<Jungfrau>(context, datagram, out);
    }
};

}  // namespace weir::wire

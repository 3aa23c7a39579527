// MOENCH: 6400 bytes of pixels in every datagram, 8 rows of 400 pixels of 16 bits. ../sls/sls.hpp decodes it.
#pragma once

#include <string_view>

#include "wire/formats/sls/sls.hpp"

namespace weir::wire {

struct Moench {
    static constexpr std::string_view name = "moench";
    static constexpr std::uint32_t rows = 400;  ///< of a module; shared evenly by its interfaces
    static constexpr std::uint32_t row_bytes = 800;
    static constexpr std::uint32_t payload_bytes = 6400;
    static constexpr std::uint32_t packets_per_module = rows * row_bytes / payload_bytes;
    static constexpr std::uint32_t rows_step = 16;  ///< a partial readout has a multiple of these
    static constexpr std::uint8_t detector_type = 5;
    static constexpr bool zero_is_a_frame = true;

    static FormatContext make_context(const FormatOptions& options);
    [[nodiscard]] static Verdict decode(const FormatContext& context, const Datagram& datagram,
                                        Fragment& out) noexcept {
        return Sls::decode<Moench>(context, datagram, out);
    }
};

}  // namespace weir::wire

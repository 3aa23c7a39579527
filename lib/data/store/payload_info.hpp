// What the payload of a run's events is, where it is not what was received: the member `payload` of the run's start and
// of its manifest (docs/reference/EVENT_FILE.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reduce/pixels/pixel_type.hpp"
#include "store/run_reader.hpp"

namespace weir::store {

struct PayloadInfo {
    Content content = Content::received;
    // With content `pixels`:
    reduce::PixelType type = reduce::PixelType::f32;
    std::string unit;           ///< "kev", "photon"; empty if it is not said
    std::uint32_t columns = 0;  ///< of a row of a source
    // With content `mep`:
    bool fragment_types = true;  ///< fragments came with a type each

    /// Bytes of a row.
    [[nodiscard]] std::uint64_t row_bytes() const noexcept { return columns * reduce::bytes_of(type); }
};

/// What the run says of itself; content `received` where it says nothing that can be understood.
[[nodiscard]] PayloadInfo payload_of(const RunReader& run);

/// Pixels of any type as floats: markers become NaN and infinity. As many as `bytes` has whole pixels.
[[nodiscard]] std::vector<float> energies_of(reduce::PixelType type, std::span<const std::byte> bytes);

}  // namespace weir::store

// `jungfrau` with at = "fragment": a packet's pixels become energies on the rx lcore, while its headers are in cache
// and before it is part of anything, in the place where they lie. Only for types of two bytes, which are as long as raw
// pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/counters.hpp"
#include "reduce/chain/jungfrau_counter.hpp"
#include "reduce/chain/pixel_source.hpp"
#include "reduce/chain/raw_pixels.hpp"
#include "reduce/pixels/calibration.hpp"
#include "reduce/pixels/pixel_type.hpp"
#include "wire/fragment.hpp"

namespace weir::reduce {

/// What a PixelChain::Config says, too: both have to know the same.
struct FragmentConverterConfig {
    std::shared_ptr<const Calibration> calibration;
    PixelType output = PixelType::u16;
    std::vector<PixelSource> sources;  ///< by source id
    wire::DeclaredField storage_cell;
};

class FragmentConverter {
public:
    explicit FragmentConverter(const FragmentConverterConfig& config) : config_(config) {}

    /// The payload of `fragment`, in place. It is whole pixels, and so are its offset and length: formats of pixels see
    /// to it.
    void convert(std::uint32_t source, const wire::Fragment& fragment) noexcept;
    /// The same for a payload that lies in several parts, which may end inside of a pixel.
    void convert(std::uint32_t source, const wire::Fragment& fragment,
                 std::span<const std::span<std::byte>> parts) noexcept;

    /// Cycles only: workers count the rest.
    [[nodiscard]] const core::Tally<JungfrauCounter>& tally() const noexcept { return tally_; }

private:
    static constexpr std::size_t chunk_pixels = RawPixels::chunk_pixels;

    /// `pixels` from `first` of the source's message on, to `out`; `raw` may be the same place.
    void convert_chunk(std::uint32_t source, const wire::Fragment& fragment, std::size_t first, const std::byte* raw,
                       std::size_t pixels, std::byte* out) noexcept;

    FragmentConverterConfig config_;
    core::Tally<JungfrauCounter> tally_;
    alignas(64) std::array<std::uint16_t, chunk_pixels> raw_;
    alignas(64) std::array<float, chunk_pixels> energy_;
    std::array<std::byte, 2 * chunk_pixels> joined_;
};

}  // namespace weir::reduce

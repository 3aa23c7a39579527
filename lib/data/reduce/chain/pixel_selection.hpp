// Which events and which pixels a chain keeps: the reducers `veto` and `sparse`, on energies as they are converted,
// chunk by chunk. Both compare energies before they are rounded to the type of `output`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/counters.hpp"
#include "reduce/chain/raw_pixels.hpp"
#include "reduce/pixels/pixel_type.hpp"
#include "reduce/reducer_counters.hpp"
#include "reduce/sparse/noise_thresholds.hpp"
#include "reduce/sparse/sparse_counter.hpp"
#include "reduce/sparse/sparse_piece.hpp"
#include "reduce/veto/veto.hpp"
#include "reduce/veto/veto_counter.hpp"

namespace weir::reduce {

/// What is known of an event after its last pixel.
struct PixelResult {
    bool keep = true;
    std::uint8_t veto = 0;           ///< as the event file has it: 0 not asked, 1 passed, 2 kept as a control
    std::uint32_t pixels_above = 0;  ///< the veto's threshold; without a veto, that of `sparse`
    std::uint32_t peaks = 0;
};

/// The `sparse` reducer's: a pixel that is kept is above all that are there.
struct SparseConfig {
    std::optional<float> threshold;                ///< in the unit of the energies
    std::shared_ptr<const NoiseThresholds> noise;  ///< of each pixel; `threshold` is in it
    std::optional<float> sigma;                    ///< times the noise that take() is given
};

/// The noise of pixels as it is now, for `sigma` without a file: RMS in G0 in ADU, and energy per ADU. Null where it is
/// not known.
struct PixelNoise {
    const float* rms = nullptr;
    const float* factor = nullptr;
};

class PixelSelection {
public:
    struct Config {
        std::optional<VetoOptions> veto;
        std::optional<SparseConfig> sparse;
    };
    struct Piece {
        std::size_t bytes = 0;
        bool sparse = false;
    };

    /// For pieces of up to `piece_rows` rows, written as `type`.
    PixelSelection(const Config& config, PixelType type, std::uint32_t columns, std::uint32_t piece_rows);

    /// Says something about an event that is known only after its last pixel.
    [[nodiscard]] bool concludes() const noexcept { return veto_.has_value() || sparse_.has_value(); }
    /// Pieces come from write_piece().
    [[nodiscard]] bool makes_pieces() const noexcept { return sparse_.has_value(); }

    void begin_event() noexcept;
    /// The next energies are of this module and storage cell from pixel `first_pixel` on. Rows of a module that follow
    /// each other are looked at together; peaks do not reach over any other border.
    void begin_source(std::uint32_t module, std::uint32_t cell, std::size_t first_pixel) noexcept;
    void begin_piece() noexcept;
    /// The next energies of the piece, at most a chunk.
    void take(std::span<const float> energy, const PixelNoise& noise = {}) noexcept;
    /// The same for pixels of which nothing came: all are NaN.
    void take_missing(std::span<const float> energy) noexcept;
    /// The piece, whole rows, sparse if that is shorter; `out` has room for it dense and is aligned to 4 bytes.
    [[nodiscard]] Piece write_piece(std::byte* out) noexcept;
    [[nodiscard]] PixelResult end_event(std::uint64_t number, bool complete) noexcept;

    /// In the order of the chain.
    [[nodiscard]] std::vector<ReducerCounters> counters() const;
    /// Cycles spent here so far.
    [[nodiscard]] std::uint64_t cycles() const noexcept { return cycles_; }

private:
    void keep_pixels(std::span<const float> energy, const PixelNoise& noise) noexcept;
    void count(Verdict verdict) noexcept;

    std::optional<Veto> veto_;
    std::optional<SparsePiece> sparse_;
    SparseConfig sparse_config_;
    core::Tally<VetoCounter> veto_tally_;
    core::Tally<SparseCounter> sparse_tally_;
    std::uint64_t cycles_ = 0;

    bool in_module_ = false;
    std::uint32_t module_ = 0;
    std::uint32_t cell_ = 0;
    std::size_t at_ = 0;             ///< pixel of the module that is next
    std::uint32_t kept_pixels_ = 0;  ///< of the event, by `sparse`
    alignas(64) std::array<float, RawPixels::chunk_pixels> thresholds_;
};

}  // namespace weir::reduce

// The reducers of a run of JUNGFRAU modules, on one worker lcore: raw pixels to energies and what is done with those,
// in one pass, chunk by chunk (RawPixels::chunk_pixels), so that energies never leave the first-level cache. A chunk
// goes
//
//   raw pixels → [pedestal] → jungfrau → [veto] → [sparse] or the type of `output` → piece → [pack, zstd] → room
//
// docs/reference/reduce/ has a page for each. No allocation, lock, exception or clock after construction.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "assemble/event.hpp"
#include "core/counters.hpp"
#include "reduce/chain/jungfrau_counter.hpp"
#include "reduce/chain/piece_store.hpp"
#include "reduce/chain/pixel_selection.hpp"
#include "reduce/chain/pixel_source.hpp"
#include "reduce/chain/raw_pixels.hpp"
#include "reduce/pedestal/pedestal_view.hpp"
#include "reduce/pixels/calibration.hpp"
#include "reduce/pixels/pixel_type.hpp"
#include "reduce/reducer_counters.hpp"
#include "wire/format.hpp"

namespace weir::reduce {

class PixelChain {
public:
    struct Config {
        std::shared_ptr<const Calibration> calibration;
        PixelType output = PixelType::f32;
        std::vector<PixelSource> sources;  ///< by source id
        wire::DeclaredField storage_cell;  ///< in the detector header; asked if the calibration has several cells
        std::uint32_t refs_max = 4096;     ///< references that one message can have
        /// Payload has become energies of `output` on the way (FragmentConverter): neither veto nor sparse then.
        bool converted = false;
        PixelSelection::Config selection;  ///< which events and pixels are kept; default all
        /// Live pedestals, instead of those of the calibration: of the event in hand. Null: there are none.
        const PedestalView* pedestals = nullptr;
    };

    PixelChain(const Config& config, std::unique_ptr<PieceCodec> codec);

    /// Whether an event's fate, or what is said of it, is known only at its end: then nothing of it may leave before.
    [[nodiscard]] bool concludes() const noexcept { return selection_.concludes(); }
    /// Whether every message has the size of its source's pixels. Where not, the event is counted as refused.
    [[nodiscard]] bool accepts(const assemble::Event& event) noexcept;

    // For each event: begin_event; for each source that it lists begin_source and next_piece until its pixels are
    // through, in order; end_event.
    void begin_event(const assemble::Event& event) noexcept;
    /// `message` is null where nothing came: all its pixels are missing.
    void begin_source(std::uint32_t source, const assemble::Message* message) noexcept;
    /// The next `pixels` of the source, whole rows, at most piece_pixels(), stored in `room`, which has
    /// bound(pixels). Decoded they are decoded_bytes(pixels).
    [[nodiscard]] StoredPiece next_piece(std::size_t pixels, std::span<std::byte> room) noexcept;
    [[nodiscard]] PixelResult end_event() noexcept;

    [[nodiscard]] const PixelSource& source(std::uint32_t id) const noexcept { return config_.sources[id]; }
    [[nodiscard]] std::size_t piece_pixels() const noexcept { return piece_bytes / bytes_of(config_.output); }
    [[nodiscard]] std::size_t decoded_bytes(std::size_t pixels) const noexcept {
        return pixels * bytes_of(config_.output);
    }
    [[nodiscard]] std::size_t bound(std::size_t pixels) const noexcept { return store_.bound(decoded_bytes(pixels)); }
    /// Of its reducers, in the order of the chain.
    [[nodiscard]] std::vector<ReducerCounters> counters() const;

private:
    void convert(std::size_t pixels, std::byte* out) noexcept;
    void gather_converted(std::size_t pixels, std::byte* out) noexcept;
    /// The next energies, at most a chunk.
    void convert_chunk(std::span<float> energy) noexcept;
    void fetch_next(const PixelCalibration& values, std::size_t pixels) const noexcept;
    [[nodiscard]] PixelCalibration calibration(PixelNoise& noise) const noexcept;

    Config config_;
    PieceStore store_;
    PixelSelection selection_;
    RawPixels raw_;
    core::Tally<JungfrauCounter> tally_;
    std::vector<std::byte> piece_;  ///< decoded, on its way to the codec
    alignas(64) std::array<float, RawPixels::chunk_pixels> energy_;

    // of the event in hand
    std::uint64_t number_ = 0;
    bool complete_ = true;

    // of the source in hand
    bool usable_ = false;  ///< something came, and there is a calibration for it
    std::uint32_t module_ = 0;
    std::uint32_t cell_ = 0;
    std::size_t at_ = 0;           ///< pixel of the module that is next
    std::uint64_t bad_ = 0;        ///< pixels of the piece in hand that are NaN,
    std::uint64_t saturated_ = 0;  ///< or infinite
};

}  // namespace weir::reduce

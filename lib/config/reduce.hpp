// [[reduce]] tables: one struct of options per kind, and what a kind makes of what. A new kind is a struct, an
// alternative in ReduceOptions, and a line in the table of reduce.cpp, in the same place of the order.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/pedestal_options.hpp"
#include "options/place.hpp"
#include "reduce/mfp/multi_event.hpp"
#include "reduce/pack/codec.hpp"
#include "reduce/pack/packer.hpp"
#include "reduce/pixels/calibration.hpp"
#include "reduce/pixels/pixel_type.hpp"
#include "reduce/veto/veto.hpp"
#include "wire/format.hpp"

namespace weir::pipeline {

using options::Place;

struct ZstdOptions {
    std::int32_t level = 1;  ///< 1..19, or -7..-1 (faster)

    bool operator==(const ZstdOptions&) const = default;
};

/// docs/reference/reduce/jungfrau.md. `calibration.modules` is not read: it follows from the streams.
struct JungfrauOptions {
    reduce::CalibrationConfig calibration;
    reduce::PixelType output = reduce::PixelType::f32;
    /// Where pixels are converted: whole events by the work lcores, or each packet by the rx lcore that it arrives at.
    enum class At : std::uint8_t { event, fragment };
    At at = At::event;
    /// Where the detector header has the storage cell, asked only with more than one: bits 11..8 of detSpec3
    /// (slsDetectorPackage, docs/src/udpheader.rst, "DAQ info").
    wire::DeclaredField storage_cell{.offset = 40, .bytes = 4, .mask = 0xf00, .shift = 8};

    bool operator==(const JungfrauOptions&) const = default;
};

/// docs/reference/reduce/pack.md.
struct PackOptions {
    reduce::pack::Codec codec = reduce::pack::Codec::bitshuffle_lz4;
    std::int32_t level = 1;           ///< within levels(codec); 0 where there are none
    std::uint32_t element_bytes = 0;  ///< 1, 2, 4 or 8; 0 where the codec does not ask. Set after reading
    bool is_signed = false;           ///< of the elements; follows from the chain

    bool operator==(const PackOptions&) const = default;
};

/// docs/reference/reduce/sparse.md. At least one of the two.
struct SparseOptions {
    std::optional<double> threshold;         ///< a pixel that is kept is above it, in the unit of the energies,
    std::optional<double> sigma;             ///< and above this times its noise
    std::vector<std::filesystem::path> rms;  ///< noise in ADU; empty: that of the reducer `pedestal`

    bool operator==(const SparseOptions&) const = default;
};

/// docs/reference/reduce/mfp.md.
struct MfpOptions {
    reduce::MfpLayout layout;
    reduce::MepOrder order = reduce::MepOrder::sources;
    std::vector<std::uint32_t> source_ids;  ///< in the packets; empty: 0, 1, 2, ...
    std::uint16_t version = 0;              ///< of the packets' content
    std::vector<std::uint32_t> versions;    ///< the same source by source; empty: `version` for all
    std::uint32_t fragments_max = 16384;    ///< the largest packing factor

    bool operator==(const MfpOptions&) const = default;
};

/// In the order of the table of kinds.
using ReduceOptions = std::variant<ZstdOptions, PackOptions, JungfrauOptions, reduce::VetoOptions, SparseOptions,
                                   MfpOptions, PedestalOptions>;

struct ReduceConfig {
    ReduceOptions options;
    Place place;

    template <class Options>
    [[nodiscard]] const Options* as() const noexcept {
        return std::get_if<Options>(&options);
    }
    /// As in the configuration: "jungfrau".
    [[nodiscard]] std::string_view kind() const noexcept;
    bool operator==(const ReduceConfig&) const = default;
};

/// The options of the reducer of this kind, if the chain has one; there is at most one of each kind.
template <class Options>
[[nodiscard]] const Options* find_reducer(std::span<const ReduceConfig> chain) noexcept {
    for (const ReduceConfig& reducer : chain)
        if (const Options* options = reducer.as<Options>()) return options;
    return nullptr;
}

/// What passes from one reducer to the next.
enum class ReduceData : std::uint8_t {
    bytes,       ///< as received
    raw_pixels,  ///< as received, and they are JUNGFRAU pixels
    mep,         ///< multi-event packets
    energies,    ///< of pixels
    sparse,      ///< pieces of which only some pixels are kept
    packed,      ///< compressed pieces
};
inline constexpr std::array<std::string_view, 6> reduce_data_names{"bytes as received",   "raw JUNGFRAU pixels",
                                                                   "multi-event packets", "energies",
                                                                   "sparse pieces",       "compressed pieces"};

/// What is wrong with a chain: with which of its tables, and in the words of an error.
struct ChainError {
    std::size_t table = 0;
    std::string found;
    std::string accepted;
};

/// Checks that each reducer can take what the one before it gives. `input` is what the streams send: raw_pixels if
/// they are all JUNGFRAU modules.
[[nodiscard]] std::optional<ChainError> check_chain(std::span<const ReduceConfig> chain, ReduceData input);

/// How pieces are packed, by "pack" or by "zstd"; nothing if the chain has neither.
[[nodiscard]] std::optional<reduce::pack::PackOptions> packing(std::span<const ReduceConfig> chain);

}  // namespace weir::pipeline

// [[reduce]] tables: one struct of options per kind, and what a kind makes of what. Each kind is a file of its own in
// reducers/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "options/held.hpp"
#include "options/place.hpp"
#include "reduce/chain/piece_store.hpp"
#include "reduce/pack/packer.hpp"

namespace weir::config {

using options::Place;

struct ReduceConfig {
    options::Held options;  ///< of the kind, which they tell
    Place place;

    template <class Options>
    [[nodiscard]] const Options* as() const noexcept {
        return options.get_if<Options>();
    }
    /// As in the configuration: "jungfrau".
    [[nodiscard]] std::string_view kind() const;
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

/// How pieces are packed; nothing if no reducer of the chain compresses.
[[nodiscard]] std::optional<reduce::pack::PackOptions> packing(std::span<const ReduceConfig> chain);
/// What does it, or null.
[[nodiscard]] std::unique_ptr<reduce::PieceCodec> make_piece_codec(std::span<const ReduceConfig> chain);

}  // namespace weir::config

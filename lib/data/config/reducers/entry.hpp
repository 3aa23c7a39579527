// What is known of a kind of reducer. Each makes its entry in a file of its own beside this.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "config/parts.hpp"
#include "options/kind.hpp"
#include "reduce/chain/piece_store.hpp"
#include "reduce/pack/packer.hpp"

namespace weir::config::detail {

/// A set of ReduceData.
using DataSet = std::uint8_t;
template <class... Data>
constexpr DataSet set_of(Data... data) {
    return static_cast<DataSet>(((1U << static_cast<unsigned>(data)) | ...));
}
inline constexpr DataSet any_data =
    set_of(ReduceData::bytes, ReduceData::raw_pixels, ReduceData::mep, ReduceData::energies, ReduceData::sparse);

/// Of energies that are compared with, in whatever unit the calibration has.
inline constexpr double energy_max = 1e9;

struct ReducerEntry {
    options::Kind kind;
    DataSet takes;                      ///< never ReduceData::packed: what compresses is the last
    std::optional<ReduceData> gives{};  ///< nothing: what it took
    /// Of a kind that compresses: how. What does it is the codec of that name, or `codec` makes it.
    reduce::pack::PackOptions (*packing)(const options::Held& options) = nullptr;
    std::unique_ptr<reduce::PieceCodec> (*codec)(const options::Held& options) = nullptr;
    /// Looks at the whole run, or completes options that follow from it; if the chain has one of this kind or not.
    /// Throws core::UsageError.
    void (*check)(RunConfig& run) = nullptr;
    void (*warn)(RunConfig& run) = nullptr;
};

/// All kinds, in the order of messages.
std::span<const ReducerEntry> reducer_entries();
const ReducerEntry& entry_of(const ReduceConfig& reducer);

}  // namespace weir::config::detail

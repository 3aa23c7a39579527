// What the configuration has to know of a kind of reducer. Private to config*.cpp.
#pragma once

#include <span>

#include "config/parts.hpp"
#include "config/printer.hpp"

namespace weir::pipeline::detail {

/// A set of ReduceData.
using DataSet = std::uint8_t;
template <class... Data>
constexpr DataSet set_of(Data... data) {
    return static_cast<DataSet>(((1U << static_cast<unsigned>(data)) | ...));
}
inline constexpr DataSet any_data =
    set_of(ReduceData::bytes, ReduceData::raw_pixels, ReduceData::mep, ReduceData::energies, ReduceData::sparse);

struct ReducerEntry {
    std::string_view name;
    DataSet takes;                           ///< never ReduceData::packed: what compresses is the last
    std::optional<ReduceData> gives;         ///< nothing: what it took
    std::string_view wants_behind;           ///< a kind without which it does nothing, anywhere after it; or empty
    std::span<const std::string_view> keys;  ///< all but `kind`
    /// All keys but `kind`; `allow` has been called, `finish` is called afterwards.
    ReduceOptions (*read)(TableReader&);
    /// All lines but `kind`.
    void (*print)(Printer&, const ReduceOptions&);
    /// All keys but `kind`.
    nlohmann::json (*json)(const ReduceOptions&);
};

extern const ReducerEntry zstd_entry;      // config_reduce.cpp
extern const ReducerEntry pack_entry;      // config_pack.cpp
extern const ReducerEntry jungfrau_entry;  // config_jungfrau.cpp
extern const ReducerEntry veto_entry;      // config_veto.cpp
extern const ReducerEntry sparse_entry;    // config_sparse.cpp
extern const ReducerEntry mfp_entry;       // config_mfp.cpp

/// Throws if `sparse` does not know where to take the noise from.
void check_sparse(const RunConfig& run);
extern const ReducerEntry pedestal_entry;  // config_pedestal.cpp

/// What "pack" packs follows from what stands before it: completes its options, or refuses them.
void resolve_packing(RunConfig& run);

/// Throws where pixels are converted too early for another reducer.
void check_place_of_conversion(const RunConfig& run);

/// Warns of gains that have another sign than a JUNGFRAU's.
void warn_of_gains(RunConfig& run);

/// A path in the configuration: relative ones start at the configuration's folder, and the result is absolute, so that
/// what --print-config shows means the same from everywhere. Nothing is opened.
std::filesystem::path config_path(const TableReader& table, std::string_view text);

/// A file name, or a list of them, in `node`, which is what `key` has or a part of it.
std::vector<std::filesystem::path> read_files(const TableReader& table, std::string_view key, const toml::node& node);
/// As it is written: "\"a\"", or "[\"a\", \"b\"]".
std::string files_text(const std::vector<std::filesystem::path>& files);
nlohmann::json files_json(const std::vector<std::filesystem::path>& files);

}  // namespace weir::pipeline::detail

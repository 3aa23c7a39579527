// What the configuration has to know of a kind of reducer.
#pragma once

#include <span>

#include "config/parts.hpp"
#include "options/kind.hpp"

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
    options::Kind<ReduceOptions> options;
    DataSet takes;                    ///< never ReduceData::packed: what compresses is the last
    std::optional<ReduceData> gives;  ///< nothing: what it took
};

options::OptionTable<PackOptions> pack_options();
options::OptionTable<JungfrauOptions> jungfrau_options();
options::OptionTable<reduce::VetoOptions> veto_options();
options::OptionTable<SparseOptions> sparse_options();
options::OptionTable<MfpOptions> mfp_options();
options::OptionTable<PedestalOptions> pedestal_options();

/// Throws if `sparse` does not know where to take the noise from.
void check_sparse(const RunConfig& run);

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
/// For reports; null if there are none.
nlohmann::json files_json(const std::vector<std::filesystem::path>& files);

/// As they are written: one, or a list of them.
std::string files_text(const nlohmann::json& files);

/// A key that takes one file, or a list of them.
template <class T>
options::Option<T>& add_files(options::OptionTable<T>& out, std::string_view key, std::string kind,
                              std::vector<std::filesystem::path> T::*member, std::string_view meaning) {
    return out.add(key, std::move(kind), meaning)
        .reads([key = std::string(key), member](TableReader& table, T& into) {
            into.*member = read_files(table, key, *table.get(key));
        })
        .shows([member](const T& from) { return files_json(from.*member); })
        .written(files_text);
}

}  // namespace weir::pipeline::detail

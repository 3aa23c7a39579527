// The `nexus` table of the hdf5 sink: what the operator knows of an experiment. Also of a command line.
#pragma once

#include <string>
#include <vector>

#include "options/option.hpp"
#include "store/hdf5/nexus_fields.hpp"

namespace weir::config {

/// From "KEY=VALUE" as in the table, texts without quotes, and, for keys not among them, from what a run has `recorded`
/// of its own table (null: nothing). Throws core::UsageError, whose line is the position in `given`.
[[nodiscard]] store::hdf5::Nexus nexus_of(const nlohmann::json& recorded, const std::vector<std::string>& given);

namespace detail {

[[nodiscard]] options::OptionTable<store::hdf5::Nexus> nexus_options();

}  // namespace detail

}  // namespace weir::config

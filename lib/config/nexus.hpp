// The `nexus` table of the hdf5 sink: what the operator knows of an experiment. Also of a command line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "store/hdf5/nexus_fields.hpp"

namespace weir::pipeline {

/// From "KEY=VALUE" as in the table, texts without quotes, and, for keys not among them, from what a run has `recorded`
/// of its own table (nexus_json; null: nothing). Throws core::UsageError, whose line is the position in `given`.
[[nodiscard]] store::hdf5::Nexus nexus_of(const nlohmann::json& recorded, const std::vector<std::string>& given);

namespace detail {

class TableReader;

[[nodiscard]] store::hdf5::Nexus read_nexus(TableReader& table);
/// "{ instrument = …, … }"; empty if nothing is set.
[[nodiscard]] std::string nexus_text(const store::hdf5::Nexus& nexus);
[[nodiscard]] nlohmann::json nexus_json(const store::hdf5::Nexus& nexus);

}  // namespace detail

}  // namespace weir::pipeline

// Finds what killed runs have left under hidden names where a path template leads to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace weir::store {

/// The final names of everything that has a hidden name and that the template makes with some number and date, in
/// order; captures that are numbered within a run too. Empty where the template has no {run}: its one name is in use.
/// What cannot be listed is passed over.
[[nodiscard]] std::vector<std::filesystem::path> find_leftovers(const std::string& path_template,
                                                                const std::string& name, const std::string& node = {});

}  // namespace weir::store

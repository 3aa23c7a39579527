// What the benchmark programs of our own have in common around their laps: how they end, and where their numbers go.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace weir::bench {

/// Runs the program `name`. Its status: what `run` returns; 2 after a core::UsageError and 1 after any other exception,
/// which is said on standard error.
[[nodiscard]] int run_program(const char* name, int (*run)(int argc, char** argv), int argc, char** argv);

/// Writes the report, unless `path` is empty. Throws core::RunError where it cannot.
void save_report(const std::string& path, const nlohmann::json& report);

}  // namespace weir::bench

// A whole run, from a checked configuration to a closed run directory and its report: what `weir run` and `weir replay`
// have in common. Runs on the control thread; owns signals, the progress line and the ledger.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "observe/progress.hpp"
#include "observe/verdict.hpp"
#include "run/cluster_part.hpp"
#include "stages/built_in_device.hpp"
#include "stages/capture_feeder.hpp"

namespace weir::observe {
class RunObserver;
}  // namespace weir::observe

namespace weir::run {

struct RunOptions {
    config::RunConfig config;
    std::string out;     ///< --out: exact path of the sink, instead of the configuration's
    std::string report;  ///< --report: where the JSON report goes
    /// --require-lossless: what a run must be to exit with 0.
    enum class Require : std::uint8_t { nothing, lossless, not_lossy };
    Require require = Require::nothing;
    observe::Expectation expected;            ///< --expect-events, --sent
    bool allow_empty = false;                 ///< --allow-empty: that nothing came is no failure
    bool quiet = false;                       ///< no summary, and no progress unless it is asked for
    std::string telemetry;                    ///< --telemetry: DPDK's telemetry answers under this name; empty: off
    observe::ProgressOption progress;         ///< --progress
    bool print_config = false;                ///< print the effective configuration and the plan, then stop
    std::string version;                      ///< of the program, for the report
    std::optional<std::uint32_t> run_number;  ///< --run-number: of the run; nothing: as its paths' directories count
    std::string comment;                      ///< of whoever started it, for the report and the manifest
    /// Shows the run to others; null: nobody does.
    observe::RunObserver* observer = nullptr;
    /// --node: which node of a cluster this is; `config` is then its view (ClusterPart::view).
    std::optional<ClusterPart> cluster;
    stages::MakeBuiltInDevice make_built_in{};  ///< makes the simulated detector of `device = "sim,..."`
    // run
    bool force = false;  ///< --force: start although the host would surely lose data
    std::optional<double> duration_s;
    std::optional<std::uint64_t> events;
    /// What whoever set the two calls them; a run that ends by one says so.
    std::string_view duration_name = "--duration";
    std::string_view events_name = "--events";
    std::optional<double> idle_exit_s;
    bool keep_privileges = false;  ///< --keep-privileges: capabilities are not given up once it runs
    // replay
    std::optional<stages::CaptureFeeder::Config> capture;
    std::string answers;             ///< --answers: a capture of what weir would have sent back; empty: none
    std::vector<std::string> ports;  ///< --port: whose streams the captures are for; one for all, or one for each
};

/// Returns the exit status: 0, 1 (the run failed) or 3 (it worked, but --require-lossless did not hold). Throws
/// core::UsageError and core::RunError. EAL can be started once per process, so this can be called once, unless there
/// is a port::StandingEal.
int execute_run(RunOptions options);

}  // namespace weir::run

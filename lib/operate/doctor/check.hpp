// The table of checks: what each looks at, in a sentence, and a pure function that judges it. From the table follow
// `weir doctor --list`, the page docs/guides/DOCTOR.md, and what a run asks before it starts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "doctor/finding.hpp"
#include "doctor/host_facts.hpp"
#include "doctor/sizing.hpp"
#include "plan/plan.hpp"
#include "stages/work_stage.hpp"

namespace weir::doctor {

/// The run that the host is judged for.
struct PlannedRun {
    const config::RunConfig* config = nullptr;
    const plan::Plan* plan = nullptr;
    std::span<const stages::SourceGeometry> geometry{};  ///< by source
    std::span<const std::uint32_t> header_bytes{};       ///< by stream: of its format, in front of the payload
};

struct CheckInput {
    const HostFacts& host;
    const PlannedRun* run = nullptr;  ///< null: no configuration is there
    Load load{};                      ///< what is expected; zeros: not said
};

/// What has to be done before a check can be judged.
enum class Needs : std::uint8_t {
    files,    ///< nothing but reading
    devices,  ///< devices are opened
    disk,     ///< something is written
};

struct Check {
    std::string_view name;
    std::string_view group;
    std::string_view looks_at;  ///< one sentence, for people
    /// What a run asks before it starts, and refuses to start for: errors of it are certain, and it is quick.
    bool at_start = false;
    /// Empty: it has nothing to say of such a run.
    std::vector<Finding> (*judge)(const CheckInput&) = nullptr;
    Needs needs = Needs::files;
};

/// All checks, by group.
[[nodiscard]] std::vector<Check> checks();

/// Of the checks whose name is in `only` (empty: all), errors first.
[[nodiscard]] std::vector<Finding> judge(const CheckInput& subject, const std::vector<std::string>& only = {});
/// Errors of the checks that a run asks before it starts.
[[nodiscard]] std::vector<Finding> judge_start(const CheckInput& subject);

/// The table as Markdown, for the documentation.
[[nodiscard]] std::string checks_markdown();

// One group each; checks() puts them together.
[[nodiscard]] std::vector<Check> memory_checks();
[[nodiscard]] std::vector<Check> pci_checks();
[[nodiscard]] std::vector<Check> interface_checks();
[[nodiscard]] std::vector<Check> port_checks();
[[nodiscard]] std::vector<Check> cpu_checks();
[[nodiscard]] std::vector<Check> power_checks();
[[nodiscard]] std::vector<Check> clock_checks();
[[nodiscard]] std::vector<Check> disk_checks();
[[nodiscard]] std::vector<Check> load_checks();

}  // namespace weir::doctor

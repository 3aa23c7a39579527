// What a run says about its ports and its clock: at the start in words, in the report as JSON.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

/// One line per port: what the device was told, and what weir does without.
[[nodiscard]] std::string ports_text(const pipeline::Pipeline& pipeline);

/// [{"port", "device", "driver", "mac", "link", "offloads", "timestamps", ...}, ...]: the keys of
/// docs/reference/REPORT.md.
[[nodiscard]] nlohmann::json ports_json(const pipeline::Pipeline& pipeline);

/// {"source", "error_ns", ...} of live input; null in a replay.
[[nodiscard]] nlohmann::json clock_json(const pipeline::Pipeline& pipeline);

/// What was wrong with clocks, in sentences for the end of a run.
[[nodiscard]] std::vector<std::string> clock_warnings(const pipeline::Pipeline& pipeline);

/// What became of the kernel's interfaces since the start, in sentences for the end of a run.
[[nodiscard]] std::vector<std::string> interface_warnings(const pipeline::Pipeline& pipeline);

/// Waits until each port whose configuration says so has its link, as long as it says, or until `stop` says true.
/// `say` is told what is waited for. Returns what did not come, in sentences.
[[nodiscard]] std::vector<std::string> wait_for_links(const pipeline::Pipeline& pipeline,
                                                      const std::function<bool()>& stop,
                                                      const std::function<void(const std::string&)>& say);

}  // namespace weir::observe

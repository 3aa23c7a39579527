// The run report beside the ledger: the file it goes to, and what it says about the machine and the plan.
#pragma once

#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/plan.hpp"

namespace weir::observe {

/// As the kernel calls it, or "unknown".
[[nodiscard]] std::string cpu_model();
/// Host, kernel, processor, DPDK, and `version` of weir.
[[nodiscard]] nlohmann::json machine_json(const std::string& version, const plan::Plan& plan);
[[nodiscard]] nlohmann::json plan_json(const plan::Plan& plan);

/// The report is opened before anything runs: a path that cannot be written is found then, not at the end. A run that
/// does not get as far as a report leaves no file, rather than an empty one.
class ReportFile {
public:
    /// `path` may be empty: no report. Throws core::RunError.
    explicit ReportFile(const std::string& path);
    ~ReportFile();
    ReportFile(const ReportFile&) = delete;
    ReportFile& operator=(const ReportFile&) = delete;

    /// Throws core::RunError.
    void write(const nlohmann::json& report);

private:
    std::string path_;
    std::FILE* file_ = nullptr;
    bool written_ = false;
};

}  // namespace weir::observe

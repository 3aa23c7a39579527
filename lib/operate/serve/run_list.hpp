// The last runs of a service, in short: for the page, newest first.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "run/controlled_run.hpp"

namespace weir::serve {

class RunList {
public:
    static constexpr std::size_t runs_max = 50;

    struct Run {
        std::uint64_t number = 0;
        std::vector<std::filesystem::path> paths;
        core::TimeNs started_ns = 0;  ///< UNIX time
        core::TimeNs ended_ns = 0;
        std::string comment;
    };

    /// What has become of a run.
    void add(const Run& run, const run::ControlledRun::Result& result);
    /// As in the document: "runs".
    [[nodiscard]] nlohmann::json json() const;
    /// The newest; null if there is none.
    [[nodiscard]] nlohmann::json latest() const { return runs_.empty() ? nlohmann::json() : runs_.front(); }
    /// The newest as a line of the run log; `trouble`: what went wrong with it, or with keeping its report.
    [[nodiscard]] nlohmann::json log_line(const std::string& trouble) const;

private:
    std::deque<nlohmann::json> runs_;
};

}  // namespace weir::serve

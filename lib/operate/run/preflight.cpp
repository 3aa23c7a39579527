#include "run/preflight.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "doctor/examine.hpp"

namespace weir::run {

void check_host(const config::RunConfig& config, const std::vector<stages::StreamRuntime>& streams,
                const std::vector<stages::SourceGeometry>& geometry, const plan::Plan& plan, bool force) {
    std::string text;
    for (const doctor::Finding& finding : doctor::reasons_not_to_start(config, streams, geometry, plan)) {
        const std::string about = finding.about.empty() ? "" : finding.about + ": ";
        const std::string reason = fmt::format("{}{} (wanted: {}): {}{}", about, finding.found, finding.wanted,
                                               finding.why, finding.mend.empty() ? "" : ". Mend: " + finding.mend);
        if (force)
            core::print_stderr("warning: {}\n", reason);
        else
            text += fmt::format("\n  {}: {}", finding.check, reason);
    }
    if (!text.empty())
        throw core::RunError(fmt::format(
            "the run would surely lose data (weir doctor says more; --force starts it all the same):{}", text));
}

}  // namespace weir::run

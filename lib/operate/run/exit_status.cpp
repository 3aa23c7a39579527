#include "run/exit_status.hpp"

#include "core/print_stderr.hpp"

namespace weir::run {

int exit_status(const RunOptions& options, const observe::Verdict& verdict) {
    if (!verdict.came && !options.allow_empty) {
        core::print_stderr("weir: nothing came for any stream ({}); if that is as it should be: --allow-empty\n",
                           verdict.evidence.front());
        return 1;
    }
    if (options.require == RunOptions::Require::nothing || verdict.lossless == observe::Lossless::yes) return 0;
    const bool accepted =
        verdict.lossless == observe::Lossless::unknown && options.require == RunOptions::Require::not_lossy;
    core::print_stderr("weir: {}--require-lossless: {} ({})\n", accepted ? "warning: " : "",
                       verdict.lossless == observe::Lossless::no ? "the run was not lossless"
                                                                 : "whether the run was lossless is not known",
                       verdict.evidence.front());
    return accepted ? 0 : 3;
}

}  // namespace weir::run

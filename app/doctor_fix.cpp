#include "doctor_fix.hpp"

#include <fmt/format.h>

#include <iostream>
#include <string>

#include "doctor/mend.hpp"

namespace weir::app {

namespace {

bool says_yes() {
    std::cout << "do it? [y/N] " << std::flush;
    std::string answer;
    if (!std::getline(std::cin, answer)) std::cout << "\n";
    return answer == "y" || answer == "Y" || answer == "yes";
}

/// Stops at the first step that fails: the next ones would build on it.
bool carry_out_all(const doctor::Finding& finding, const std::filesystem::path& root) {
    for (const doctor::Step& step : finding.fix)
        if (const std::string failure = carry_out(step, root); !failure.empty()) {
            std::cout << "  failed: " << failure << "\n";
            return false;
        }
    std::cout << "  done\n";
    return true;
}

}  // namespace

std::size_t fix_findings(const std::vector<doctor::Finding>& findings, const std::filesystem::path& root, bool ask) {
    std::size_t count = 0;
    for (const doctor::Finding& finding : findings) {
        if (finding.status != doctor::Status::error && finding.status != doctor::Status::warning) continue;
        const std::string about = finding.about.empty() ? "" : fmt::format(" ({})", finding.about);
        if (finding.fix.empty()) {
            if (!finding.mend.empty())
                std::cout << fmt::format("{}{}: by hand: {}\n", finding.check, about, finding.mend);
            continue;
        }
        std::cout << fmt::format("{}{}: {}\n", finding.check, about, finding.found);
        for (const doctor::Step& step : finding.fix) std::cout << "  " << step.shell() << "\n";
        if (ask && !says_yes()) continue;
        if (carry_out_all(finding, root)) ++count;
    }
    return count;
}

}  // namespace weir::app

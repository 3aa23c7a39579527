#include "doctor_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "terminal.hpp"

namespace weir::app {

namespace {

using doctor::Finding;
using doctor::Status;

constexpr std::size_t label_columns = 10;

/// "  why     ...", as many lines as it takes.
std::string labelled(std::string_view label, std::string_view text, std::size_t columns) {
    if (text.empty()) return {};
    return wrapped(fmt::format("  {:<8}{}", label, text), columns, label_columns - 2) + "\n";
}

/// Commands are not broken: they are to be copied.
std::string mend_text(const Finding& finding, std::size_t columns) {
    constexpr std::size_t steps_max = 4;
    if (finding.mend.empty()) return {};
    if (finding.fix.empty()) return labelled("mend", finding.mend, columns);
    std::string text;
    for (std::size_t i = 0; i < finding.fix.size() && i < steps_max; ++i)
        text += fmt::format("  {:<8}{}\n", i == 0 ? "mend" : "", finding.fix[i].shell());
    if (finding.fix.size() > steps_max)
        text += fmt::format("  {:<8}and {} more (--json has all)\n", "", finding.fix.size() - steps_max);
    if (!finding.undone_by.empty()) text += labelled("", fmt::format("(undone by {})", finding.undone_by), columns);
    return text;
}

std::string headline(const Finding& finding) {
    std::string text = fmt::format("{:<8} {}", name_of(finding.status), finding.check);
    if (!finding.about.empty()) text += fmt::format(" ({})", finding.about);
    if (finding.status == Status::warning && finding.sure != doctor::Sure::certain)
        text += fmt::format(", {}", name_of(finding.sure));
    return text;
}

std::string with_details(const Finding& finding, std::size_t columns) {
    return wrapped(headline(finding), columns) + "\n" + labelled("found", finding.found, columns) +
           labelled("wanted", finding.wanted, columns) + labelled("why", finding.why, columns) +
           mend_text(finding, columns) + "\n";
}

}  // namespace

std::string findings_text(const std::vector<Finding>& findings, std::size_t columns) {
    std::string text;
    for (const Finding& finding : findings) {
        if (finding.status == Status::error || finding.status == Status::warning) {
            text += with_details(finding, columns);
        } else {
            const std::string& what = finding.status == Status::unknown ? finding.why : finding.found;
            text += wrapped(fmt::format("{}: {}", headline(finding), what), columns, label_columns - 1) + "\n";
        }
    }
    return text.ends_with("\n\n") ? text : text + "\n";
}

std::string summary_text(const std::vector<Finding>& findings) {
    const auto count = [&](Status status) { return std::ranges::count(findings, status, &Finding::status); };
    const auto errors = count(Status::error);
    const auto several = [](auto number, const char* what) {
        return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
    };
    return fmt::format("{}, {}, {} not known, {} fine{}\n", several(errors, "error"),
                       several(count(Status::warning), "warning"), count(Status::unknown), count(Status::ok),
                       errors > 0 ? ": a run would surely lose data, or not start" : "");
}

}  // namespace weir::app

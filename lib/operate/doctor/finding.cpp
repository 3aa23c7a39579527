#include "doctor/finding.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace weir::doctor {

namespace {

/// A word of a command as a shell takes it.
std::string shell_word(const std::string& word) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,+@%";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return quoted + "'";
}

}  // namespace

std::string_view name_of(Status status) noexcept {
    switch (status) {
        case Status::error:
            return "error";
        case Status::warning:
            return "warning";
        case Status::unknown:
            return "unknown";
        case Status::ok:
            break;
    }
    return "ok";
}

std::string_view name_of(Sure sure) noexcept {
    switch (sure) {
        case Sure::certain:
            return "certain";
        case Sure::likely:
            return "likely";
        case Sure::possible:
            break;
    }
    return "possible";
}

std::string Step::shell() const {
    if (!file.empty()) return "echo " + shell_word(text) + " > " + shell_word(file);
    std::string line;
    for (const std::string& word : program) line += (line.empty() ? "" : " ") + shell_word(word);
    return line;
}

Step write_to(std::string file, std::string text) {
    return {.file = std::move(file), .text = std::move(text)};
}

Step execute(std::vector<std::string> program) {
    return {.program = std::move(program)};
}

std::string shell_text(const std::vector<Step>& steps) {
    std::string line;
    for (const Step& step : steps) line += (line.empty() ? "" : "; ") + step.shell();
    return line;
}

Finding with_fix(Finding finding, std::vector<Step> steps, std::string undone_by) {
    finding.mend = shell_text(steps);
    finding.fix = std::move(steps);
    finding.undone_by = std::move(undone_by);
    return finding;
}

void sort_by_status(std::vector<Finding>& findings) {
    std::ranges::stable_sort(findings, {}, &Finding::status);
}

bool any_error(const std::vector<Finding>& findings) noexcept {
    return std::ranges::find(findings, Status::error, &Finding::status) != findings.end();
}

nlohmann::json findings_json(const std::vector<Finding>& findings) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding& finding : findings)
        list.push_back({{"check", finding.check},
                        {"status", name_of(finding.status)},
                        {"found", finding.found},
                        {"wanted", finding.wanted},
                        {"why", finding.why},
                        {"mend", finding.mend},
                        {"about", finding.about},
                        {"sure", name_of(finding.sure)},
                        {"fix", !finding.fix.empty()}});
    return {{"findings", std::move(list)}};
}

}  // namespace weir::doctor

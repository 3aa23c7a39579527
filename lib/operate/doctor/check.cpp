#include "doctor/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weir::doctor {

std::vector<Check> checks() {
    std::vector<Check> all;
    for (const auto group : {memory_checks, pci_checks, interface_checks, port_checks, cpu_checks, power_checks,
                             clock_checks, disk_checks, load_checks}) {
        const std::vector<Check> some = group();
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

std::vector<Finding> judge(const CheckInput& subject, const std::vector<std::string>& only) {
    std::vector<Finding> findings;
    for (const Check& check : checks()) {
        if (!only.empty() && std::ranges::find(only, check.name) == only.end()) continue;
        for (Finding& finding : check.judge(subject)) {
            finding.check = check.name;
            findings.push_back(std::move(finding));
        }
    }
    sort_by_status(findings);
    return findings;
}

std::vector<Finding> judge_start(const CheckInput& subject) {
    std::vector<std::string> names;
    for (const Check& check : checks())
        if (check.at_start) names.emplace_back(check.name);
    std::vector<Finding> findings = judge(subject, names);
    std::erase_if(findings, [](const Finding& finding) { return finding.status != Status::error; });
    return findings;
}

std::string checks_markdown() {
    std::string text = "| check | group | looks at | a run refuses |\n|---|---|---|---|\n";
    for (const Check& check : checks())
        text += fmt::format("| `{}` | {} | {} | {} |\n", check.name, check.group, check.looks_at,
                            check.at_start ? "yes" : "");
    return text;
}

}  // namespace weir::doctor

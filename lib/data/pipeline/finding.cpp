#include "pipeline/finding.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace weir::pipeline {

std::string findings_text(const std::vector<Finding>& findings) {
    std::string text;
    for (const Finding& finding : findings) {
        const std::string packets =
            finding.packets > 0 ? fmt::format("{}{}", finding.about ? "about " : "", finding.packets) : "?";
        text += fmt::format("{:<10}{}: {}\n{:10}(read {}; weir explain {})\n",
                            finding.loss       ? "lost"
                            : finding.possible ? "lost?"
                                               : "remark",
                            packets, finding.sentence, "", finding.page, finding.counter);
    }
    return text;
}

nlohmann::json findings_json(const std::vector<Finding>& findings) {
    nlohmann::json list = nlohmann::json::array();
    for (const Finding& finding : findings) {
        list.push_back({{"counter", finding.counter},
                        {"packets", finding.packets},
                        {"loss", finding.loss},
                        {"possible", finding.possible},
                        {"sentence", finding.sentence},
                        {"page", finding.page}});
        if (finding.about) list.back()["about"] = true;
    }
    return list;
}

}  // namespace weir::pipeline

// The account of `weir replay --to`: as JSON, and in a few lines for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "resend/resender.hpp"

namespace weir::app {

/// What was asked for, in the words of the command line.
struct WireRequest {
    std::string to;
    std::string pace;
    std::vector<std::string> rewrite;
};

[[nodiscard]] nlohmann::json wire_report(const resend::Resender& resender, const resend::Resender::Config& config,
                                         const WireRequest& request);
void print_wire_summary(const nlohmann::json& report);

}  // namespace weir::app

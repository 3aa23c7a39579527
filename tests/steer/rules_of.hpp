// Rules as testpmd would have them.
#pragma once

#include <string>
#include <vector>

#include "steer/rule_parser.hpp"

namespace weir::steer {

inline std::vector<FlowRule> rules_of(const std::string& text) {
    return parse_rules(text, "test.flow");
}

}  // namespace weir::steer

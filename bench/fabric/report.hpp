// The turns of a case, as medians with their quartiles.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conductor.hpp"

namespace weir::fabric::bench {

/// One size of parts: by mode, by turn.
struct Case {
    std::uint64_t part_bytes = 0;
    std::array<std::vector<Measured>, modes> turns;
};

struct Quartiles {
    double low = 0;
    double median = 0;
    double high = 0;
};

/// `network`: what UCX has made of the transports.
void print_head(const Options& options, const std::string& transports, const std::string& network);
void print_case(const Case& one);
/// From which size on event building has so much of N-to-N.
void print_verdict(const std::vector<Case>& cases);
[[nodiscard]] nlohmann::json json_of(const Case& one, const std::string& transports);

}  // namespace weir::fabric::bench

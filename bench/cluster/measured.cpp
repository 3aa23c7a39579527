#include "measured.hpp"

#include <algorithm>
#include <cstdio>

namespace weir::cluster::bench {

void print(const std::vector<Measured>& all) {
    double sum = 0;
    double worst = 1e9;
    double best = 0;
    Measured total;
    std::size_t takers = 0;
    for (const Measured& node : all) {
        total.blocks += node.blocks;
        total.incomplete += node.incomplete;
        total.messages += node.messages;
        total.held_highest = std::max(total.held_highest, node.held_highest);
        total.seconds = std::max(total.seconds, node.seconds);
        if (node.bytes == 0) continue;  // a readout node
        const double gbps = static_cast<double>(node.bytes) * 8e-9 / node.seconds;
        sum += gbps;
        worst = std::min(worst, gbps);
        best = std::max(best, gbps);
        ++takers;
    }
    std::printf(
        "{\"gbps_mean\": %.3f, \"gbps_worst\": %.3f, \"gbps_best\": %.3f, \"seconds\": %.9f, \"blocks\": %llu, "
        "\"incomplete\": %llu, \"messages\": %llu, \"held_highest\": %llu}\n",
        sum / static_cast<double>(takers), worst, best, total.seconds, static_cast<unsigned long long>(total.blocks),
        static_cast<unsigned long long>(total.incomplete), static_cast<unsigned long long>(total.messages),
        static_cast<unsigned long long>(total.held_highest));
    std::fflush(stdout);
}

}  // namespace weir::cluster::bench

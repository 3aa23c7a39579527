#include "cluster/message.hpp"

#include <algorithm>
#include <array>

namespace weir::cluster {

void add_counts(std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& more) {
    counts.resize(std::max(counts.size(), more.size()));
    for (std::size_t i = 0; i < more.size(); ++i) counts[i] += more[i];
}

std::string_view name_of(Kind kind) noexcept {
    static constexpr std::array<std::string_view, 17> names{
        "claim",    "report",    "hello", "ready",   "assign",  "request", "part",    "finished", "record",
        "recorded", "committed", "done",  "release", "settled", "step",    "reached", "expelled"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(Part part) noexcept {
    static constexpr std::array<std::string_view, 4> names{"whole", "not_held", "node_down", "late"};
    return names[static_cast<std::size_t>(part)];
}

std::string_view name_of(LossCause cause) noexcept {
    static constexpr std::array<std::string_view, loss_causes> names{"builder_down", "nothing_held", "node_down",
                                                                     "late"};
    return names[static_cast<std::size_t>(cause)];
}

}  // namespace weir::cluster

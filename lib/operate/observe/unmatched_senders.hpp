// Who sent packets that match no [[stream]], and which of them are probably this detector's: the same address, the next
// port, or a payload that a stream's decoder reads.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

struct UnmatchedSender {
    std::string what;  ///< "UDP port 50002 from 10.1.0.10"
    std::uint64_t packets = 0;
    std::string why;  ///< it is thought to be of this detector; empty: nothing speaks for it
};

struct UnmatchedSenders {
    static constexpr std::size_t listed_max = 16;
    std::vector<UnmatchedSender> list;  ///< the most frequent first; counts are upper bounds where there are more
    std::uint64_t possible_losses = 0;  ///< packets of those that are thought to be of this detector
};

/// `unsteered`: packets that matched no stream.
[[nodiscard]] UnmatchedSenders collect_unmatched(const pipeline::Pipeline& pipeline, std::uint64_t unsteered);

/// "UDP port 50002 from 10.1.0.10 (512 packets; why)", several, and how many more there are. Those that are thought to
/// be of this detector, or the others.
[[nodiscard]] std::string unmatched_text(const UnmatchedSenders& senders, bool of_detector);

/// {"packets", "possible_losses", "senders": [{"to", "packets", "why"}, ...]}
[[nodiscard]] nlohmann::json unmatched_json(const UnmatchedSenders& senders, std::uint64_t unsteered);

}  // namespace weir::observe

// What the packet sequence numbers (PSN) of RoCE queue pairs say about losses: for each queue pair how many there were
// and how many of them came, whether what did not come is a loss, and whether that is all that can have been lost.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "roce/psn_account.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

/// Of one queue pair that weir listens to or answers.
struct PsnReport {
    std::uint32_t source = 0;
    std::uint32_t qp = 0;
    roce::PsnCounts::Values counts;
    /// PSNs that did not come are packets for us that were lost. Always with RC and UC; a UD sender numbers what it
    /// sends to others, too.
    bool proven = false;
    std::string unknown_because{};  ///< empty: what the PSNs say is all that was lost between the first and the last

    [[nodiscard]] bool known() const { return unknown_because.empty(); }
    /// Packets that are known to be lost.
    [[nodiscard]] std::uint64_t lost() const { return proven ? counts.missing() : 0; }
};

/// Says of each report what follows from its counts and from those of the others.
void judge_psns(std::span<PsnReport> reports);

/// By source; only RoCE sources.
[[nodiscard]] std::vector<PsnReport> collect_psns(const pipeline::Pipeline& pipeline);

[[nodiscard]] nlohmann::json psns_json(std::span<const PsnReport> reports);
/// A line for each queue pair that has lost something or of which it is not known. Empty if there is none.
[[nodiscard]] std::string psns_text(std::span<const PsnReport> reports);

}  // namespace weir::observe

// Was something lost? Yes, no, or not known, each with what it rests on. A run is called lossless only where a loss
// would have shown.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/ledger.hpp"

namespace weir::observe {

/// What the sender is known to have sent: the ends of a run, which the data itself does not show.
struct Expectation {
    std::optional<std::uint64_t> events;
    std::string by;  ///< who says so: "--expect-events", or the file of --sent

    /// The events that `weir send` reports say were sent. Senders that number the same events count once.
    /// Throws core::UsageError.
    [[nodiscard]] static Expectation of_reports(const std::vector<std::string>& files);
};

enum class Lossless : std::uint8_t { yes, no, unknown };
[[nodiscard]] std::string_view name_of(Lossless lossless) noexcept;

struct Verdict {
    Lossless lossless = Lossless::unknown;
    std::vector<std::string> evidence;  ///< what the answer rests on
    bool came = true;                   ///< a packet came for some stream
};

[[nodiscard]] Verdict judge(const Ledger& ledger, const Expectation& expected = {});

/// "lossless  yes: ...", a line for each piece of evidence.
[[nodiscard]] std::string verdict_text(const Verdict& verdict);
/// Adds "lossless" and "evidence".
void put_verdict(nlohmann::json& report, const Verdict& verdict);

}  // namespace weir::observe

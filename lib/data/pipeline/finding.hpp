// One sentence of the end of a run: what was lost or is worth a look, why, and where to read on.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace weir::pipeline {

struct Finding {
    std::string counter;        ///< for `weir explain`
    std::uint64_t packets = 0;  ///< lost by it, as far as known; 0: cannot be said
    bool loss = true;           ///< false: worth a look, but no data of this detector is known to be lost
    std::string sentence;
    std::string page;       ///< where to read on, with the section
    bool possible = false;  ///< data of this detector may have been lost; `loss` is false then
    bool about = false;     ///< `packets` is a guess
};

/// "lost ..." or "remark ...", with where to read on; empty if there are none.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings);
/// [{"counter", "packets", "loss", "possible", "sentence", "page"}, ...], with "about": true where the number is a
/// guess
[[nodiscard]] nlohmann::json findings_json(const std::vector<Finding>& findings);

}  // namespace weir::pipeline

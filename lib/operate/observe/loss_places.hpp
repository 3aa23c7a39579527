// Where packets were lost: on the way, in the card, in the kernel, or in weir; each with what shows it. A pure function
// of the account.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "observe/ledger.hpp"

namespace weir::observe {

struct LossPlace {
    std::string_view place;  ///< "way", "nic", "kernel", "weir"
    std::string_view title;  ///< for people: "on the way"
    /// Lost there. No packet is in two places. Where not all can be known it is what is known at least; nothing:
    /// not even that, or nothing is known and nothing was seen to be lost.
    std::optional<std::uint64_t> packets;
    std::string evidence;  ///< a sentence, without a full stop
};

/// On the way is what no sequence has and nobody had; in the card or the kernel what a device says that it dropped for
/// want of room in its queue; in weir what was there and found no place, no buffer, or was in an event that is not
/// kept.
[[nodiscard]] std::array<LossPlace, 4> loss_places(const Ledger& ledger);

/// [{"place", "title", "packets": N | null, "evidence"}, ...]
[[nodiscard]] nlohmann::json loss_places_json(const std::array<LossPlace, 4>& places);

}  // namespace weir::observe

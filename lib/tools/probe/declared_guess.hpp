// A header that nobody has described, guessed from what its bytes do: which never change, which count events, which
// count packets within one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/format_marks.hpp"

namespace weir::probe {

struct DeclaredGuess {
    wire::DeclaredSpec spec;
    std::vector<std::string> evidence;
    std::vector<std::string> doubts;
};

/// Packets of one sender to one place, in the order in which they came.
using FlowPackets = std::vector<wire::SampledPacket>;

/// Looks at the packets of one sender, in the order in which they came. Nothing if no bytes count, or there are too few
/// packets to tell: then `why` says which. `others`: flows that may be of the same detector; those that count along
/// show which bytes are the sender's own, and no part of a counter or a mark.
[[nodiscard]] std::optional<DeclaredGuess> guess_declared(std::span<const wire::SampledPacket> packets,
                                                          std::string& why, std::span<const FlowPackets> others = {});

}  // namespace weir::probe

// A header that nobody has described, guessed from what its bytes do: which never change, which count events, which
// count packets within one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "wire/recognition.hpp"

namespace weir::probe {

struct DeclaredGuess {
    wire::DeclaredSpec spec;
    std::vector<std::string> evidence;
    std::vector<std::string> doubts;
};

/// Looks at the packets of one sender, in the order in which they came. Nothing if no bytes count, or there are too few
/// packets to tell: then `why` says which.
[[nodiscard]] std::optional<DeclaredGuess> guess_declared(std::span<const wire::SampledPacket> packets,
                                                          std::string& why);

}  // namespace weir::probe

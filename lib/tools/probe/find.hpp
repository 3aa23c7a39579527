// From a sample of packets to what was found in it.
#pragma once

#include <vector>

#include "probe/findings.hpp"
#include "probe/packet_sample.hpp"

namespace weir::probe {

/// `declared`: formats that the user has described ([[format]]), tried after weir's own. Never throws for what is in
/// the packets.
[[nodiscard]] Findings find(const PacketSample& sample, const std::vector<wire::DeclaredSpec>& declared);

}  // namespace weir::probe

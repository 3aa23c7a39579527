// What `weir probe` proposes it has tried: the sample goes through the steering, the decoders and the assembly of a run
// with that configuration, on this thread and without devices.
#pragma once

#include <string>

#include "probe/findings.hpp"
#include "probe/packet_sample.hpp"

namespace weir::app {

/// Throws core::UsageError if `toml` is no configuration.
[[nodiscard]] probe::Trial try_proposal(const std::string& toml, const probe::PacketSample& sample);

/// The configuration for what was found, after it was tried: findings.trial says what came out. Streams that it cannot
/// have, or with which nothing would be complete, are left out of `findings`. Empty if none remains. `device`: as
/// probe::propose.
[[nodiscard]] std::string propose_tried(probe::Findings& findings, const probe::PacketSample& sample,
                                        const std::string& device);

}  // namespace weir::app

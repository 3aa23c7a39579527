// Which setting of a stream would fit what its detector sends, from the bytes that are missing in every message.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "assemble/message.hpp"
#include "config/run_config.hpp"

namespace weir::observe {

/// "`rows = 256`"; empty where none is known that would make such messages whole. `missing` is sorted, and not empty.
[[nodiscard]] std::string fitting_setting(const config::RunConfig& config, const config::StreamConfig& stream,
                                          std::span<const assemble::ByteRange> missing);

}  // namespace weir::observe

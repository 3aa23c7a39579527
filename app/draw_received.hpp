// An event as received, drawn into a PNG: for `weir inspect` and `weir probe`.
#pragma once

#include <optional>
#include <string>

#include "store/received_image.hpp"

namespace weir::app {

/// Returns what was drawn, in a few words. Throws core::RunError.
std::string draw_received(const store::RunReader& run, const store::EventInfo& event, const store::ReceivedShape& shape,
                          std::optional<std::uint32_t> only, const std::string& file);

}  // namespace weir::app

// Addresses of senders, as text.
#pragma once

#include <string>

#include "stages/rx/other_senders.hpp"
#include "stages/rx/rx_notes.hpp"

namespace weir::observe {

[[nodiscard]] std::string address_text(const stages::SenderAddress& address);
[[nodiscard]] std::string address_text(const stages::HostAddress& address);

}  // namespace weir::observe

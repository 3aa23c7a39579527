// The kernel's table of who has which IPv4 address on the networks that it is on.
#pragma once

#include <cstdint>
#include <string>

namespace weir::simulate {

/// "10.1.0.2"
[[nodiscard]] std::string ip_text(std::uint32_t ip);

/// Whether the kernel is asking for the address by ARP, and has no answer yet. Until then it keeps a few packets and
/// drops the others without a word.
[[nodiscard]] bool is_asked_for(std::uint32_t ip);

}  // namespace weir::simulate

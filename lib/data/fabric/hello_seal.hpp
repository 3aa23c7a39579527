// The seal of a hello: an HMAC-SHA-256 (RFC 2104) over it and the UCX address that comes with it. UCX 1.13 believes an
// address and ends the process, by an assertion, if it is malformed; what an address means only UCX knows. So none is
// given to UCX that is not, to the byte, what a node with the same secret has sent.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace weir::fabric {

using HelloSeal = std::array<std::byte, 32>;

/// Without a secret (an empty one) it shows damage; with one, also who has no right to speak.
/// Throws core::RunError if libcrypto cannot be loaded.
[[nodiscard]] HelloSeal seal_of(std::span<const std::byte> bytes, std::string_view secret);

/// Takes as long whatever is the same of them.
[[nodiscard]] bool is_same_seal(std::span<const std::byte, sizeof(HelloSeal)> left, const HelloSeal& right) noexcept;

}  // namespace weir::fabric

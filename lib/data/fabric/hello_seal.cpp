#include "fabric/hello_seal.hpp"

#include <algorithm>

#include "core/sha256.hpp"

namespace weir::fabric {

namespace {

constexpr std::size_t hmac_block_bytes = 64;

std::array<std::byte, hmac_block_bytes> hmac_key(std::string_view secret) {
    std::array<std::byte, hmac_block_bytes> key{};
    const auto bytes = std::as_bytes(std::span(secret));
    if (bytes.size() > key.size()) {
        core::Sha256 sha;
        sha.update(bytes);
        std::ranges::copy(sha.digest(), key.begin());
    } else {
        std::ranges::copy(bytes, key.begin());
    }
    return key;
}

HelloSeal hmac_round(std::array<std::byte, hmac_block_bytes> key, std::byte pad, std::span<const std::byte> bytes) {
    for (std::byte& byte : key) byte ^= pad;
    core::Sha256 sha;
    sha.update(key);
    sha.update(bytes);
    return sha.digest();
}

}  // namespace

HelloSeal seal_of(std::span<const std::byte> bytes, std::string_view secret) {
    const auto key = hmac_key(secret);
    return hmac_round(key, std::byte{0x5c}, hmac_round(key, std::byte{0x36}, bytes));
}

bool is_same_seal(std::span<const std::byte, sizeof(HelloSeal)> left, const HelloSeal& right) noexcept {
    std::byte different{};
    for (std::size_t i = 0; i < right.size(); ++i) different |= left[i] ^ right[i];
    return different == std::byte{};
}

}  // namespace weir::fabric

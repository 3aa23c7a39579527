// SHA-256 over bytes that come in pieces. libcrypto does the work.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace weir::core {

class Sha256 {
public:
    /// Throws core::RunError if libcrypto cannot be loaded.
    Sha256();
    ~Sha256();
    Sha256(const Sha256&) = delete;
    Sha256& operator=(const Sha256&) = delete;
    /// Begins a new digest.
    void reset();
    void update(std::span<const std::byte> bytes);
    /// The digest of what came since reset().
    std::array<std::byte, 32> digest();
    /// The same as 64 lower-case hexadecimal digits.
    std::string hex();

private:
    struct Context;
    std::unique_ptr<Context> context_;
};

}  // namespace weir::core

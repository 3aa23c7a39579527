// SHA-256 by libcrypto. See sha256.hpp.
#include "store/sha256.hpp"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <array>

#include "core/error.hpp"

namespace weir::store {

struct Sha256::Context {
    EVP_MD_CTX* evp = EVP_MD_CTX_new();
    Context() = default;
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
    reset();
}
Sha256::~Sha256() = default;

void Sha256::reset() {
    if (context_->evp == nullptr || EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) != 1)
        throw core::RunError("libcrypto has no SHA-256");
}

void Sha256::update(std::span<const std::byte> bytes) {
    EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size());
}

std::string Sha256::hex() {
    std::array<unsigned char, 32> digest{};
    unsigned int bytes = 0;
    EVP_DigestFinal_ex(context_->evp, digest.data(), &bytes);
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
}

}  // namespace weir::store

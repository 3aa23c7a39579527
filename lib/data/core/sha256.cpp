// SHA-256 by libcrypto. See sha256.hpp.
#include "core/sha256.hpp"

#include <fmt/core.h>
#include <openssl/evp.h>

#include "core/error.hpp"
#include "core/loaded_library.hpp"

namespace weir::core {

namespace {

struct CryptoLibrary {
    core::LoadedLibrary library{"libcrypto", "libcrypto.so.3", "libssl3"};
    WEIR_LIBRARY_FUNCTION(EVP_DigestFinal_ex);
    WEIR_LIBRARY_FUNCTION(EVP_DigestInit_ex);
    WEIR_LIBRARY_FUNCTION(EVP_DigestUpdate);
    WEIR_LIBRARY_FUNCTION(EVP_MD_CTX_free);
    WEIR_LIBRARY_FUNCTION(EVP_MD_CTX_new);
    WEIR_LIBRARY_FUNCTION(EVP_sha256);
};

const CryptoLibrary& crypto() {
    static const CryptoLibrary functions;
    return functions;
}

}  // namespace

struct Sha256::Context {
    EVP_MD_CTX* evp = crypto().EVP_MD_CTX_new();
    Context() = default;
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() { crypto().EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
    reset();
}
Sha256::~Sha256() = default;

void Sha256::reset() {
    if (context_->evp == nullptr || crypto().EVP_DigestInit_ex(context_->evp, crypto().EVP_sha256(), nullptr) != 1)
        throw RunError("libcrypto has no SHA-256");
}

void Sha256::update(std::span<const std::byte> bytes) {
    crypto().EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size());
}

std::array<std::byte, 32> Sha256::digest() {
    std::array<std::byte, 32> digest{};
    crypto().EVP_DigestFinal_ex(context_->evp, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
    return digest;
}

std::string Sha256::hex() {
    std::string text;
    for (const std::byte byte : digest()) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

}  // namespace weir::core

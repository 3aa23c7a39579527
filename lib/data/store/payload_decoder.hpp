// Decodes the bodies of payload blocks, whatever their encoding. Made for arbitrary bytes: a decoder writes nothing
// beyond what the block says that it decodes to, and that is bounded by the format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "store/format.hpp"

namespace weir::store {

class PayloadDecoder {
public:
    PayloadDecoder();
    ~PayloadDecoder();
    PayloadDecoder(const PayloadDecoder&) = delete;
    PayloadDecoder& operator=(const PayloadDecoder&) = delete;

    /// The `header.raw_bytes` that `body` decodes to (valid until the next call), or nothing if it does not decode to
    /// exactly so many, or the encoding is not one that `header.version` has.
    std::optional<std::span<const std::byte>> decode(const BlockHeader& header, std::span<const std::byte> body);
    /// The CSR piece that a sparse body holds, not expanded (valid until the next call); nothing as above.
    std::optional<std::span<const std::byte>> decode_sparse(const BlockHeader& header, std::span<const std::byte> body);
    /// After decode() of a sparse body: how long its CSR piece is. Else 0.
    [[nodiscard]] std::size_t sparse_bytes() const noexcept { return sparse_bytes_; }

private:
    struct Unpacker;
    /// What the codec of `body` gives, if that is exactly `bytes`.
    std::optional<std::span<const std::byte>> unpack(const BlockHeader& header, std::span<const std::byte> body,
                                                     std::size_t bytes);

    std::unique_ptr<Unpacker> unpacker_;
    std::vector<std::byte> decoded_;
    std::vector<std::byte> expanded_;
    std::size_t sparse_bytes_ = 0;
};

}  // namespace weir::store

// Decodes payload blocks. See payload_decoder.hpp.
#include "store/payload_decoder.hpp"

#include "reduce/pack/unpacker.hpp"
#include "reduce/sparse/csr_piece.hpp"

namespace weir::store {

namespace {

using reduce::pack::Codec;

static_assert(codecs == reduce::pack::codec_names.size());
static_assert(static_cast<std::uint8_t>(Encoding::bits) == static_cast<std::uint8_t>(Codec::bits));

bool element_size_is_good(const BlockHeader& header) {
    const unsigned bytes = header.element_bytes;
    if (!has_elements(header.encoding)) return bytes == 0;
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

bool is_of_version(const BlockHeader& header) {
    if (header.version < format_version_reduced && header.encoding > Encoding::zstd) return false;
    return is_known(header.encoding) && element_size_is_good(header);
}

}  // namespace

struct PayloadDecoder::Unpacker {
    reduce::pack::Unpacker unpacker;
};

PayloadDecoder::PayloadDecoder() = default;
PayloadDecoder::~PayloadDecoder() = default;

std::optional<std::span<const std::byte>> PayloadDecoder::unpack(const BlockHeader& header,
                                                                 std::span<const std::byte> body, std::size_t bytes) {
    const auto codec = static_cast<Codec>(codec_of(header.encoding));
    if (codec == Codec::raw) {
        if (body.size() != bytes) return {};
        return body;
    }
    if (!unpacker_) unpacker_ = std::make_unique<Unpacker>();  // when the first block needs it
    // `bytes` is bounded by the format (body_bytes_max), so this allocation is too.
    if (decoded_.size() < bytes) decoded_.resize(bytes);
    const std::span<std::byte> out = std::span(decoded_).first(bytes);
    if (!unpacker_->unpacker.unpack(codec, header.element_bytes, body, out).empty()) return {};
    return out;
}

std::optional<std::span<const std::byte>> PayloadDecoder::decode(const BlockHeader& header,
                                                                 std::span<const std::byte> body) {
    sparse_bytes_ = 0;
    if (!is_of_version(header) || header.raw_bytes > body_bytes_max) return {};
    if (!is_sparse(header.encoding)) return unpack(header, body, header.raw_bytes);
    const auto piece = decode_sparse(header, body);
    if (!piece) return {};
    if (expanded_.size() < header.raw_bytes) expanded_.resize(header.raw_bytes);
    const std::span<std::byte> out = std::span(expanded_).first(header.raw_bytes);
    if (!reduce::expand_csr(*piece, out).empty()) return {};
    sparse_bytes_ = piece->size();
    return out;
}

std::optional<std::span<const std::byte>> PayloadDecoder::decode_sparse(const BlockHeader& header,
                                                                        std::span<const std::byte> body) {
    if (!is_of_version(header) || !is_sparse(header.encoding) || header.raw_bytes > body_bytes_max) return {};
    const auto codec = static_cast<Codec>(codec_of(header.encoding));
    const std::optional<std::uint64_t> bytes =
        codec == Codec::raw ? body.size() : reduce::pack::decoded_bytes(codec, body);
    // A CSR piece that is not shorter than what it expands to is stored as it is.
    if (!bytes || *bytes >= header.raw_bytes) return {};
    return unpack(header, body, *bytes);
}

}  // namespace weir::store

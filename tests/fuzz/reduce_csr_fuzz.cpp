// libFuzzer target: any bytes as a sparse piece. The first byte chooses; with its low bit set the header is made right
// first, so that what lies after it is reached too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "reduce/sparse/csr_piece.hpp"

namespace {

using namespace weir::reduce;

/// A header whose arrays fill the piece, as far as its own numbers allow.
void repair(std::span<std::byte> piece) {
    CsrHeader header;
    std::memcpy(&header, piece.data(), sizeof header);
    header.magic = csr_magic;
    header.type = static_cast<PixelType>(static_cast<unsigned>(header.type) % 4);
    header.reserved = 0;
    for (std::uint32_t& word : header.reserved_too) word = 0;
    header.columns = static_cast<std::uint16_t>(1 + header.columns % 300);
    header.rows %= 40;
    header.bad_runs %= 8;
    const std::uint64_t fixed = csr_bytes(header.type, header.rows, 0, header.bad_runs);
    if (fixed <= piece.size())
        header.count = static_cast<std::uint32_t>((piece.size() - fixed) / (bytes_of(header.type) + 2));
    std::memcpy(piece.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    // Exactly as large as the input, so that a read beyond its end is seen.
    const std::size_t bytes = size - 1;
    const auto copy = std::make_unique<std::byte[]>(bytes);
    if (bytes > 0) std::memcpy(copy.get(), data + 1, bytes);
    const std::span<std::byte> piece(copy.get(), bytes);
    std::size_t dense_bytes = data[0];
    if (bytes >= sizeof(CsrHeader)) {
        if ((data[0] & 1U) != 0) repair(piece);
        CsrHeader header;
        std::memcpy(&header, piece.data(), sizeof header);
        const std::uint64_t pixels = std::uint64_t{header.rows} * header.columns;
        if (pixels <= 1U << 20U && header.type <= PixelType::u16) dense_bytes = pixels * bytes_of(header.type);
    }
    const auto dense = std::make_unique<std::byte[]>(dense_bytes);
    if (expand_csr(piece, {dense.get(), dense_bytes}).empty() && bytes < sizeof(CsrHeader)) std::abort();
    return 0;
}

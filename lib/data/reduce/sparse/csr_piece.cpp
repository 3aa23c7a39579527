#include "reduce/sparse/csr_piece.hpp"

#include <algorithm>
#include <cstring>

namespace weir::reduce {

namespace {

/// Values at any address.
template <class T>
class Values {
public:
    Values() = default;
    explicit Values(const std::byte* first) : first_(first) {}
    [[nodiscard]] T operator[](std::size_t i) const noexcept {
        T value;
        std::memcpy(&value, first_ + i * sizeof(T), sizeof value);
        return value;
    }
    [[nodiscard]] const std::byte* at(std::size_t i) const noexcept { return first_ + i * sizeof(T); }

private:
    const std::byte* first_ = nullptr;
};

struct Arrays {
    Values<std::uint32_t> pointers;
    Values<BadRun> runs;
    const std::byte* values = nullptr;
    Values<std::uint16_t> columns;
};

Arrays arrays_of(const CsrHeader& header, const std::byte* piece) noexcept {
    Arrays arrays;
    const std::byte* at = piece + sizeof(CsrHeader);
    arrays.pointers = Values<std::uint32_t>(at);
    at += 4 * (std::size_t{header.rows} + 1);
    arrays.runs = Values<BadRun>(at);
    at += sizeof(BadRun) * header.bad_runs;
    arrays.values = at;
    arrays.columns = Values<std::uint16_t>(at + header.count * bytes_of(header.type));
    return arrays;
}

std::string_view check_header(const CsrHeader& header, std::size_t piece_bytes, std::size_t dense_bytes) noexcept {
    if (header.magic != csr_magic) return "no CSR piece: wrong magic";
    if (header.type > PixelType::u16) return "CSR piece: unknown type of values";
    if (header.reserved != 0 || std::ranges::any_of(header.reserved_too, [](auto word) { return word != 0; }))
        return "CSR piece: reserved bytes are not zero";
    if (header.columns == 0) return "CSR piece: no columns";
    const std::uint64_t pixels = std::uint64_t{header.rows} * header.columns;
    if (pixels * bytes_of(header.type) != dense_bytes) return "CSR piece: rows and columns are not the decoded size";
    if (csr_bytes(header.type, header.rows, header.count, header.bad_runs) != piece_bytes)
        return "CSR piece: its length is not that of its arrays";
    return {};
}

std::string_view fill_bad(const CsrHeader& header, const Arrays& arrays, std::span<std::byte> dense) noexcept {
    const std::size_t pixels = std::size_t{header.rows} * header.columns;
    const std::size_t size = bytes_of(header.type);
    const std::uint32_t marker = bad_pixel_bits(header.type);
    std::size_t end = 0;
    for (std::uint32_t i = 0; i < header.bad_runs; ++i) {
        const BadRun run = arrays.runs[i];
        const bool touches = i > 0 && run.first <= end;
        if (run.pixels == 0 || touches) return "CSR piece: runs of bad pixels are out of order";
        if (run.first > pixels || run.pixels > pixels - run.first) return "CSR piece: a run of bad pixels ends outside";
        end = std::size_t{run.first} + run.pixels;
        for (std::size_t k = run.first; k < end; ++k) std::memcpy(dense.data() + k * size, &marker, size);
    }
    return {};
}

template <std::size_t size>
std::string_view place_values(const CsrHeader& header, const Arrays& arrays, std::byte* dense) noexcept {
    std::uint32_t k = 0;
    std::uint32_t run = 0;
    BadRun bad{~0U, 0};
    if (header.bad_runs > 0) bad = arrays.runs[0];
    for (std::size_t row = 0; row < header.rows; ++row) {
        const std::uint32_t end = arrays.pointers[row + 1];
        if (end < k || end > header.count) return "CSR piece: row pointers are out of order";
        std::size_t next_column = 0;
        for (; k < end; ++k) {
            const std::size_t column = arrays.columns[k];
            if (column < next_column || column >= header.columns) return "CSR piece: columns are out of order";
            next_column = column + 1;
            const std::size_t pixel = row * header.columns + column;
            while (run < header.bad_runs && pixel >= std::size_t{bad.first} + bad.pixels)
                if (++run < header.bad_runs) bad = arrays.runs[run];
            if (run < header.bad_runs && pixel >= bad.first) return "CSR piece: a pixel is kept and bad";
            std::memcpy(dense + pixel * size, arrays.values + std::size_t{k} * size, size);
        }
    }
    return k == header.count ? std::string_view{} : "CSR piece: row pointers do not end at the last value";
}

}  // namespace

std::string_view expand_csr(std::span<const std::byte> piece, std::span<std::byte> dense) noexcept {
    CsrHeader header;
    if (piece.size() < sizeof header) return "CSR piece: shorter than its header";
    std::memcpy(&header, piece.data(), sizeof header);
    if (const auto fault = check_header(header, piece.size(), dense.size()); !fault.empty()) return fault;
    const Arrays arrays = arrays_of(header, piece.data());
    if (arrays.pointers[0] != 0) return "CSR piece: row pointers do not begin at 0";
    std::ranges::fill(dense, std::byte{0});
    if (const auto fault = fill_bad(header, arrays, dense); !fault.empty()) return fault;
    return header.type == PixelType::f32 ? place_values<4>(header, arrays, dense.data())
                                         : place_values<2>(header, arrays, dense.data());
}

}  // namespace weir::reduce

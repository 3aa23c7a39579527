// What a sparse piece must be, said in the plainest way: from energies to dense pixels and to the bytes of a piece.
#pragma once

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "reduce/sparse/csr_piece.hpp"
#include "reduce/sparse/sparse_piece.hpp"

namespace weir::reduce {

using Bytes = std::vector<std::byte>;

template <class T>
void append(Bytes& bytes, T value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
}

inline Bytes pixel_of(PixelType type, float energy) {
    Bytes out(bytes_of(type));
    write_pixels(type, {&energy, 1}, out.data());
    return out;
}

/// Every pixel as `type`, 0 where it is not above its threshold.
inline Bytes dense_pixels(PixelType type, const std::vector<float>& energy, const std::vector<float>& thresholds) {
    Bytes out;
    for (std::size_t i = 0; i < energy.size(); ++i) {
        const bool none = energy[i] <= thresholds[i];
        const Bytes pixel = none ? Bytes(bytes_of(type)) : pixel_of(type, energy[i]);
        out.insert(out.end(), pixel.begin(), pixel.end());
    }
    return out;
}

/// The piece as the specification has it.
inline Bytes csr_piece(PixelType type, std::uint16_t columns, const std::vector<float>& energy,
                       const std::vector<float>& thresholds) {
    Bytes pointers;
    Bytes runs;
    Bytes values;
    Bytes places;
    CsrHeader header;
    header.type = type;
    header.columns = columns;
    header.rows = static_cast<std::uint32_t>(energy.size() / columns);
    append(pointers, std::uint32_t{0});
    BadRun run;
    for (std::size_t i = 0; i <= energy.size(); ++i) {
        if (i < energy.size() && std::isnan(energy[i])) {
            if (run.pixels++ == 0) run.first = static_cast<std::uint32_t>(i);
        } else if (run.pixels > 0) {
            append(runs, run);
            ++header.bad_runs;
            run = {};
        }
        if (i < energy.size() && energy[i] > thresholds[i]) {
            const Bytes pixel = pixel_of(type, energy[i]);
            values.insert(values.end(), pixel.begin(), pixel.end());
            append(places, static_cast<std::uint16_t>(i % columns));
            ++header.count;
        }
        if (i < energy.size() && i % columns == columns - 1U) append(pointers, header.count);
    }
    Bytes out;
    append(out, header);
    for (const Bytes* part : {&pointers, &runs, &values, &places}) out.insert(out.end(), part->begin(), part->end());
    return out;
}

}  // namespace weir::reduce

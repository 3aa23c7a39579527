#include "reduce/chain/fragment_converter.hpp"

#include <x86intrin.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "reduce/pixels/write_pixels.hpp"

namespace weir::reduce {

namespace {

constexpr std::size_t word = sizeof(std::uint16_t);

}  // namespace

void FragmentConverter::convert_chunk(std::uint32_t source, const wire::Fragment& fragment, std::size_t first,
                                      const std::byte* raw, std::size_t pixels, std::byte* out) noexcept {
    const std::span<const std::byte> header{fragment.header, fragment.header_bytes};
    const PixelSource& from = config_.sources[source];
    const std::span<float> energy = std::span(energy_).first(pixels);
    if (const auto cell = cell_of(header, config_.storage_cell, config_.calibration->storage_cells())) {
        // Packets of a capture lie where the file has them, which may be an odd address.
        const auto* words = reinterpret_cast<const std::uint16_t*>(raw);
        if (reinterpret_cast<std::uintptr_t>(raw) % alignof(std::uint16_t) != 0) {
            std::memcpy(raw_.data(), raw, pixels * word);
            words = raw_.data();
        }
        reduce::convert({words, pixels},
                        config_.calibration->of(from.module, first_pixel_of(from, header) + first, *cell), energy);
    } else {
        std::ranges::fill(energy, std::numeric_limits<float>::quiet_NaN());
    }
    write_pixels(config_.output, energy, out);
}

void FragmentConverter::convert(std::uint32_t source, const wire::Fragment& fragment) noexcept {
    const std::uint64_t begin = __rdtsc();
    // The buffer is ours, and nobody else looks at it before this lcore says so.
    auto* const payload = const_cast<std::byte*>(fragment.payload);
    const std::size_t pixels = fragment.bytes / word;
    for (std::size_t done = 0; done < pixels;) {
        const std::size_t chunk = std::min(pixels - done, chunk_pixels);
        std::byte* const at = payload + done * word;
        convert_chunk(source, fragment, fragment.offset / word + done, at, chunk, at);
        done += chunk;
    }
    tally_.add(JungfrauCounter::cycles, __rdtsc() - begin);
}

void FragmentConverter::convert(std::uint32_t source, const wire::Fragment& fragment,
                                std::span<const std::span<std::byte>> parts) noexcept {
    const std::uint64_t begin = __rdtsc();
    std::size_t part = 0;
    std::size_t inside = 0;
    // Both ways over the same bytes, from the same place.
    const auto move = [&](std::size_t bytes, bool back) {
        std::size_t p = part;
        std::size_t i = inside;
        for (std::size_t done = 0; done < bytes;) {
            const std::size_t some = std::min(parts[p].size() - i, bytes - done);
            std::byte* const there = parts[p].data() + i;
            std::memcpy(back ? there : joined_.data() + done, back ? joined_.data() + done : there, some);
            done += some;
            i += some;
            if (i == parts[p].size()) {
                ++p;
                i = 0;
            }
        }
        if (!back) return;
        part = p;
        inside = i;
    };
    const std::size_t pixels = fragment.bytes / word;
    for (std::size_t done = 0; done < pixels;) {
        const std::size_t chunk = std::min(pixels - done, chunk_pixels);
        move(chunk * word, false);
        convert_chunk(source, fragment, fragment.offset / word + done, joined_.data(), chunk, joined_.data());
        move(chunk * word, true);
        done += chunk;
    }
    tally_.add(JungfrauCounter::cycles, __rdtsc() - begin);
}

}  // namespace weir::reduce

#include "reduce/pixels/write_pixels.hpp"

#include <algorithm>
#include <cstring>

namespace weir::reduce {

namespace {

/// By way of a scratch, because `out` may be unaligned for the type.
template <class Out>
void write(std::span<const float> energy, std::byte* out,
           void (*convert)(std::span<const float>, std::span<Out>) noexcept) noexcept {
    std::array<Out, 256> scratch;
    for (std::size_t at = 0; at < energy.size();) {
        const std::size_t count = std::min(scratch.size(), energy.size() - at);
        convert(energy.subspan(at, count), std::span(scratch).first(count));
        std::memcpy(out + at * sizeof(Out), scratch.data(), count * sizeof(Out));
        at += count;
    }
}

}  // namespace

void write_pixels(PixelType type, std::span<const float> energy, std::byte* out) noexcept {
    const bool aligned = reinterpret_cast<std::uintptr_t>(out) % 2 == 0;
    switch (type) {
        case PixelType::f32:
            if (!energy.empty()) std::memcpy(out, energy.data(), energy.size_bytes());
            return;
        case PixelType::f16:
            if (aligned) return to_f16(energy, {reinterpret_cast<std::uint16_t*>(out), energy.size()});
            return write<std::uint16_t>(energy, out, &to_f16);
        case PixelType::i16:
            if (aligned) return to_i16(energy, {reinterpret_cast<std::int16_t*>(out), energy.size()});
            return write<std::int16_t>(energy, out, &to_i16);
        case PixelType::u16:
            if (aligned) return to_u16(energy, {reinterpret_cast<std::uint16_t*>(out), energy.size()});
            return write<std::uint16_t>(energy, out, &to_u16);
    }
}

}  // namespace weir::reduce

// Compiled once for each instruction set that Highway knows, by including itself (foreach_target.h).
#include "reduce/pixels/pixels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/pixels/pixels.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace weir::reduce::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::Rebind<std::uint16_t, Floats>;
using Wide = hn::RebindToUnsigned<Floats>;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <class V>
HWY_INLINE V energy_in(const V adc, const float* pedestal, const float* factor) {
    const Floats d;
    return hn::Mul(hn::Sub(adc, hn::LoadU(d, pedestal)), hn::LoadU(d, factor));
}

HWY_INLINE hn::Vec<Floats> adc_of(const hn::Vec<Wide> word) {
    return hn::ConvertTo(Floats(), hn::BitCast(hn::RebindToSigned<Floats>(), hn::And(word, hn::Set(Wide(), 0x3fff))));
}

/// How many of the vectors so far had something in each lane. A mask is -1 in each lane where it is true.
using Lanes = hn::RebindToSigned<Floats>;
HWY_INLINE hn::Vec<Lanes> count_in(const hn::Vec<Lanes> count, const hn::Mask<Floats> mask) {
    return hn::Sub(count, hn::VecFromMask(Lanes(), hn::RebindMask(Lanes(), mask)));
}

/// A vector of pixels as if all were in the first gain. True: not all are.
HWY_INLINE bool convert_first(const std::uint16_t* raw, const PixelCalibration& c, std::size_t at, float* to,
                              hn::Vec<Lanes>& bad, hn::Vec<Lanes>& saturated) {
    const Floats d;
    const auto word = hn::PromoteTo(Wide(), hn::LoadU(Words(), raw));
    const auto energy = energy_in(adc_of(word), c.pedestal[0] + at, c.factor[0] + at);
    const auto no_number = hn::IsNaN(energy);
    // Whatever the maps have, there is one NaN.
    hn::StoreU(hn::IfThenElse(no_number, hn::Set(d, nan), energy), d, to);
    bad = count_in(bad, no_number);
    saturated = count_in(saturated, hn::Eq(energy, hn::Set(d, infinity)));
    return !hn::AllFalse(Wide(), hn::Gt(word, hn::Set(Wide(), 0x3fff)));
}

/// What convert_first() left wrong: pixels in other gains, and words that are no measurement. They are counted anew.
HWY_INLINE void convert_others(const std::uint16_t* raw, const PixelCalibration& c, std::size_t at, float* to,
                               SpecialPixels& special) {
    const Floats d;
    const Wide w;
    const auto word = hn::PromoteTo(w, hn::LoadU(Words(), raw));
    const auto gain = hn::ShiftRight<14>(word);
    const auto adc = adc_of(word);
    auto energy = hn::LoadU(d, to);
    const auto count_special = [&special, d](const hn::Vec<Floats> value, std::uint32_t times) HWY_ATTR {
        special.bad += times * static_cast<std::uint32_t>(hn::CountTrue(d, hn::IsNaN(value)));
        special.saturated += times * static_cast<std::uint32_t>(hn::CountTrue(d, hn::Eq(value, hn::Set(d, infinity))));
    };
    constexpr std::uint32_t less_once = ~std::uint32_t{0};
    count_special(energy, less_once);
    const auto in_second = hn::RebindMask(d, hn::Eq(gain, hn::Set(w, 1)));
    const auto in_third = hn::RebindMask(d, hn::Eq(gain, hn::Set(w, 3)));
    const auto never = hn::RebindMask(d, hn::Eq(gain, hn::Set(w, 2)));
    energy = hn::IfThenElse(in_second, energy_in(adc, c.pedestal[1] + at, c.factor[1] + at), energy);
    if (!hn::AllFalse(d, in_third))
        energy = hn::IfThenElse(in_third, energy_in(adc, c.pedestal[2] + at, c.factor[2] + at), energy);
    const auto error = hn::Or(hn::Eq(word, hn::Set(w, raw_error)), hn::Eq(word, hn::Set(w, raw_gain1_error)));
    energy = hn::IfThenElse(hn::Or(never, hn::RebindMask(d, error)), hn::Set(d, nan), energy);
    energy = hn::IfThenElse(hn::RebindMask(d, hn::Eq(word, hn::Set(w, raw_saturated))), hn::Set(d, infinity), energy);
    hn::StoreU(hn::IfThenElse(hn::IsNaN(energy), hn::Set(d, nan), energy), d, to);
    count_special(energy, 1);
}

/// Whole vectors, `count` of them, at most as many as vectors_at_once.
///
/// Nearly all pixels are in the first gain nearly always: the maps of the others are read only where a pixel needs
/// them. Those places are noted first and seen to afterwards, because a branch for each would be mispredicted as often
/// as it is taken, and would then wait for memory with nothing else to do. Their maps are asked for soon after, so that
/// they come while the rest is converted.
constexpr std::size_t vectors_at_once = 256;
HWY_INLINE void convert_vectors(const std::uint16_t* raw, const PixelCalibration& c, std::size_t first,
                                std::size_t count, float* energy, SpecialPixels& special) {
    const std::size_t lanes = hn::Lanes(Floats());
    std::uint32_t others[vectors_at_once];
    std::size_t found = 0;
    const PixelCalibration maps = c;  // not reread for fear that `energy` lies in it
    const auto fetch = [&](std::size_t at) HWY_ATTR {
        hwy::Prefetch(maps.pedestal[1] + at);
        hwy::Prefetch(maps.factor[1] + at);
    };
    auto bad = hn::Zero(Lanes());
    auto saturated = hn::Zero(Lanes());
    constexpr std::size_t fetched_at_once = 32;
    for (std::size_t k = 0; k < count;) {
        std::size_t fetched = found;
        for (const std::size_t end = std::min(k + fetched_at_once, count); k < end; ++k) {
            const std::size_t at = first + k * lanes;
            others[found] = static_cast<std::uint32_t>(at);
            found += convert_first(raw + at, maps, at, energy + at, bad, saturated) ? 1 : 0;
        }
        for (; fetched < found; ++fetched) fetch(others[fetched]);
    }
    special.bad += static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(Lanes(), bad)));
    special.saturated += static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(Lanes(), saturated)));
    for (std::size_t n = 0; n < found; ++n)
        convert_others(raw + others[n], maps, others[n], energy + others[n], special);
}

SpecialPixels Convert(std::span<const std::uint16_t> raw, const PixelCalibration& calibration,
                      std::span<float> energy) {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    const std::size_t whole = raw.size() / lanes;
    SpecialPixels special;
    for (std::size_t done = 0; done < whole; done += vectors_at_once)
        convert_vectors(raw.data(), calibration, done * lanes, std::min(vectors_at_once, whole - done), energy.data(),
                        special);
    const std::size_t i = whole * lanes;
    if (i == raw.size()) return special;
    // The rest, with copies of what belongs to it.
    alignas(64) std::uint16_t words[hn::MaxLanes(Floats())] = {};
    alignas(64) float maps[6][hn::MaxLanes(Floats())] = {};
    alignas(64) float out[hn::MaxLanes(Floats())];
    PixelCalibration rest;
    for (std::size_t gain = 0; gain < 3; ++gain) {
        rest.pedestal[gain] = maps[gain];
        rest.factor[gain] = maps[3 + gain];
        for (std::size_t k = i; k < raw.size(); ++k) {
            maps[gain][k - i] = calibration.pedestal[gain][k];
            maps[3 + gain][k - i] = calibration.factor[gain][k];
        }
    }
    for (std::size_t k = i; k < raw.size(); ++k) words[k - i] = raw[k];
    convert_vectors(words, rest, 0, 1, out, special);
    for (std::size_t k = i; k < raw.size(); ++k) energy[k] = out[k - i];
    return special;
}

/// `one` of every vector of energies, and of a padded copy of the last few.
template <class Out, class One>
HWY_INLINE void each_vector(std::span<const float> energy, std::span<Out> out, const One one) {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= energy.size(); i += lanes) one(hn::LoadU(d, energy.data() + i), out.data() + i);
    if (i == energy.size()) return;
    alignas(64) float in[hn::MaxLanes(Floats())] = {};
    alignas(64) Out rest[hn::MaxLanes(Floats())];
    for (std::size_t k = i; k < energy.size(); ++k) in[k - i] = energy[k];
    one(hn::Load(d, in), rest);
    for (std::size_t k = i; k < energy.size(); ++k) out[k] = rest[k - i];
}

/// Half precision by integer arithmetic, so that it does not depend on what the instruction set has.
void ToF16(std::span<const float> energy, std::span<std::uint16_t> out) {
    const Wide w;
    const Floats d;
    each_vector(energy, out, [w, d](const hn::Vec<Floats> value, std::uint16_t* to) HWY_ATTR {
        const auto bits = hn::BitCast(w, value);
        const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(w, 0x8000));
        const auto magnitude = hn::And(bits, hn::Set(w, 0x7fffffff));
        // Normal: exponent from bias 127 to 15, half of the last place added, one less where that must be even.
        const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(w, 1));
        const auto normal =
            hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, hn::Set(w, 112U << 23U)), hn::Add(odd, hn::Set(w, 0xfff))));
        // Subnormal: adding 0.5 leaves the mantissa in the last bits, rounded by the addition.
        const auto half = hn::Set(d, 0.5F);
        const auto small = hn::Sub(hn::BitCast(w, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(w, half));
        auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(w, 113U << 23U)), small, normal);
        result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(w, 0x477fefff)), hn::Set(w, 0x7c00), result);
        result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(w, 0x7f800000)), hn::Set(w, 0x7e00), result);
        const auto words = hn::Or(sign, result);
        hn::StoreU(hn::DemoteTo(Words(), hn::BitCast(hn::RebindToSigned<Floats>(), words)), Words(), to);
    });
}

template <class Out>
HWY_INLINE void round_to(std::span<const float> energy, std::span<Out> out, float lowest, float highest, int bad,
                         int saturated) {
    const Floats d;
    const hn::RebindToSigned<Floats> s;
    each_vector(energy, out, [=](const hn::Vec<Floats> value, Out* to) HWY_ATTR {
        const auto clamped = hn::Min(hn::Max(value, hn::Set(d, lowest)), hn::Set(d, highest));
        auto whole = hn::NearestInt(clamped);
        whole = hn::IfThenElse(hn::RebindMask(s, hn::IsNaN(value)), hn::Set(s, bad), whole);
        whole = hn::IfThenElse(hn::RebindMask(s, hn::Eq(value, hn::Set(d, infinity))), hn::Set(s, saturated), whole);
        const hn::Rebind<Out, Floats> narrow;
        hn::StoreU(hn::DemoteTo(narrow, whole), narrow, to);
    });
}

void ToI16(std::span<const float> energy, std::span<std::int16_t> out) {
    round_to(energy, out, -32767, 32766, i16_bad, i16_saturated);
}

void ToU16(std::span<const float> energy, std::span<std::uint16_t> out) {
    round_to(energy, out, 0, 65533, u16_bad, u16_saturated);
}

std::uint32_t CountAbove(std::span<const float> energy, float threshold) {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    const auto limit = hn::Set(d, threshold);
    std::size_t count = 0;
    std::size_t i = 0;
    for (; i + lanes <= energy.size(); i += lanes)
        count += hn::CountTrue(d, hn::Gt(hn::LoadU(d, energy.data() + i), limit));
    for (; i < energy.size(); ++i) count += energy[i] > threshold ? 1 : 0;
    return static_cast<std::uint32_t>(count);
}

/// `limit(i)` is the threshold of the vector at i, `limit_of(i)` that of pixel i.
///
/// Marks and not the pixels themselves: where few pixels are above, storing compressed vectors costs several times as
/// much as these masks, and on some processors (Zen 4) a compressing store to memory costs a hundred cycles.
template <class Limit, class LimitOf>
HWY_INLINE std::uint32_t mark_with(std::span<const float> energy, const Limit limit, const LimitOf limit_of,
                                   std::span<std::uint64_t> marks) {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    std::uint32_t count = 0;
    std::size_t i = 0;
    for (; i + 64 <= energy.size(); i += 64) {
        std::uint64_t word = 0;
        for (std::size_t k = 0; k < 64; k += lanes) {
            const auto above = hn::Not(hn::Le(hn::LoadU(d, energy.data() + i + k), limit(i + k)));
            // As many bytes as are written, so that they can stay in a register.
            using Part = std::conditional_t<(hn::MaxLanes(Floats()) > 8), std::uint16_t, std::uint8_t>;
            static_assert(hn::MaxLanes(Floats()) <= 16);
            std::uint8_t bytes[8] = {};
            hn::StoreMaskBits(d, above, bytes);
            Part part = 0;
            std::memcpy(&part, bytes, sizeof part);
            word |= std::uint64_t{part} << k;
        }
        marks[i / 64] = word;
        count += static_cast<std::uint32_t>(std::popcount(word));
    }
    if (i == energy.size()) return count;
    marks[i / 64] = 0;
    for (; i < energy.size(); ++i) {
        if (energy[i] <= limit_of(i)) continue;
        marks[i / 64] |= std::uint64_t{1} << (i % 64);
        ++count;
    }
    return count;
}

std::uint32_t MarkAbove(std::span<const float> energy, float threshold, std::span<std::uint64_t> marks) {
    const auto limit = hn::Set(Floats(), threshold);
    return mark_with(
        energy, [limit](std::size_t) HWY_ATTR { return limit; }, [threshold](std::size_t) { return threshold; }, marks);
}

std::uint32_t MarkAboveEach(std::span<const float> energy, std::span<const float> thresholds,
                            std::span<std::uint64_t> marks) {
    const Floats d;
    return mark_with(
        energy, [=](std::size_t i) HWY_ATTR { return hn::LoadU(d, thresholds.data() + i); },
        [=](std::size_t i) { return thresholds[i]; }, marks);
}

}  // namespace weir::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::reduce {

HWY_EXPORT(Convert);
HWY_EXPORT(ToF16);
HWY_EXPORT(ToI16);
HWY_EXPORT(ToU16);
HWY_EXPORT(CountAbove);
HWY_EXPORT(MarkAbove);
HWY_EXPORT(MarkAboveEach);

SpecialPixels convert(std::span<const std::uint16_t> raw, const PixelCalibration& calibration,
                      std::span<float> energy) noexcept {
    return HWY_DYNAMIC_DISPATCH(Convert)(raw, calibration, energy);
}

void to_f16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept {
    HWY_DYNAMIC_DISPATCH(ToF16)(energy, out);
}

void to_i16(std::span<const float> energy, std::span<std::int16_t> out) noexcept {
    HWY_DYNAMIC_DISPATCH(ToI16)(energy, out);
}

void to_u16(std::span<const float> energy, std::span<std::uint16_t> out) noexcept {
    HWY_DYNAMIC_DISPATCH(ToU16)(energy, out);
}

std::uint32_t count_above(std::span<const float> energy, float threshold) noexcept {
    return HWY_DYNAMIC_DISPATCH(CountAbove)(energy, threshold);
}

std::uint32_t mark_above(std::span<const float> energy, float threshold, std::span<std::uint64_t> marks) noexcept {
    return HWY_DYNAMIC_DISPATCH(MarkAbove)(energy, threshold, marks);
}

std::uint32_t mark_above(std::span<const float> energy, std::span<const float> thresholds,
                         std::span<std::uint64_t> marks) noexcept {
    return HWY_DYNAMIC_DISPATCH(MarkAboveEach)(energy, thresholds, marks);
}

}  // namespace weir::reduce
#endif

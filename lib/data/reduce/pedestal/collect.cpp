// Compiled once for each instruction set that Highway knows, by including itself (foreach_target.h).
#include "reduce/pedestal/collect.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/pedestal/collect.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cstddef>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace weir::reduce::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::Rebind<std::uint16_t, Floats>;
using Wide = hn::RebindToUnsigned<Floats>;
using Half = hn::Half<Wide>;
using Squares = hn::RepartitionToWide<Wide>;

/// Counters of one lane each, added up at the end.
struct LaneCounts {
    hn::Vec<Wide> taken;
    hn::Vec<Wide> outliers;
    hn::Vec<Wide> other_gain;
    hn::Vec<Wide> missing;
};

/// A vector's worth of pixels, where they begin.
struct PixelsAt {
    const float* mean;
    const float* rms;
    std::uint32_t* sum;
    std::uint64_t* squares;
    std::uint16_t* count;
};

/// One vector of pixels of each frame, `raw[frame] + at`; sums stay in registers meanwhile. True lanes of a mask are
/// all ones, so subtracting it counts.
HWY_INLINE void collect_vector(std::span<const std::uint16_t* const> raw, std::size_t at, const PixelsAt& to,
                               float outlier, std::uint16_t gain_bits, LaneCounts& lanes) {
    const Floats d;
    const Wide w;
    const Words words;
    const Half half;
    const Squares q;
    const std::size_t lanes_half = hn::Lanes(q);
    const auto middle = hn::LoadU(d, to.mean);
    const auto limit = hn::Mul(hn::LoadU(d, to.rms), hn::Set(d, outlier));
    const auto known = hn::Not(hn::RebindMask(w, hn::IsNaN(middle)));
    auto sum = hn::LoadU(w, to.sum);
    auto low = hn::LoadU(q, to.squares);
    auto high = hn::LoadU(q, to.squares + lanes_half);
    auto count = hn::Zero(w);
    for (const std::uint16_t* frame : raw) {
        const auto word = hn::PromoteTo(w, hn::LoadU(words, frame + at));
        const auto adc = hn::And(word, hn::Set(w, 0x3fff));
        const auto missing = hn::And(known, hn::Eq(word, hn::Set(w, 0xffff)));
        const auto there = hn::AndNot(missing, known);
        const auto special = hn::Or(hn::Eq(word, hn::Set(w, 0x4000)), hn::Eq(word, hn::Set(w, 0xc000)));
        const auto right = hn::AndNot(special, hn::Eq(hn::And(word, hn::Set(w, 0xc000)), hn::Set(w, gain_bits)));
        const auto judged = hn::And(there, right);
        const auto value = hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<Floats>(), adc));
        const auto far = hn::RebindMask(w, hn::Gt(hn::Abs(hn::Sub(value, middle)), limit));
        const auto taken = hn::AndNot(far, judged);
        const auto add = hn::IfThenElseZero(taken, adc);
        sum = hn::Add(sum, add);
        const auto square = hn::Mul(add, add);  // 28 bits
        low = hn::Add(low, hn::PromoteTo(q, hn::LowerHalf(half, square)));
        high = hn::Add(high, hn::PromoteTo(q, hn::UpperHalf(half, square)));
        count = hn::Sub(count, hn::VecFromMask(w, taken));
        lanes.outliers = hn::Sub(lanes.outliers, hn::VecFromMask(w, hn::And(judged, far)));
        lanes.other_gain = hn::Sub(lanes.other_gain, hn::VecFromMask(w, hn::AndNot(right, there)));
        lanes.missing = hn::Sub(lanes.missing, hn::VecFromMask(w, missing));
    }
    lanes.taken = hn::Add(lanes.taken, count);
    hn::StoreU(sum, w, to.sum);
    hn::StoreU(low, q, to.squares);
    hn::StoreU(high, q, to.squares + lanes_half);
    const auto narrow = hn::DemoteTo(words, hn::BitCast(hn::RebindToSigned<Wide>(), count));
    hn::StoreU(hn::Add(hn::LoadU(words, to.count), narrow), words, to.count);
}

HWY_INLINE std::uint64_t total(const hn::Vec<Wide> lanes) {
    return hn::GetLane(hn::SumOfLanes(Wide(), lanes));
}

PedestalCounts Collect(std::span<const std::uint16_t* const> frames, const PedestalJudge& judge, PedestalSums sums) {
    constexpr std::size_t lanes_max = hn::MaxLanes(Floats());
    const std::size_t lanes = hn::Lanes(Floats());
    const std::size_t pixels = sums.sum.size();
    const auto zero = hn::Zero(Wide());
    LaneCounts counts{zero, zero, zero, zero};
    std::size_t i = 0;
    for (; i + lanes <= pixels; i += lanes)
        collect_vector(frames, i,
                       {judge.mean.data() + i, judge.rms.data() + i, sums.sum.data() + i, sums.squares.data() + i,
                        sums.count.data() + i},
                       judge.outlier, judge.gain_bits, counts);
    const std::size_t rest = pixels - i;
    for (std::size_t f = 0; rest > 0 && f < frames.size(); ++f) {
        // The last few, in padded copies: what pads is bad, so it counts nowhere.
        alignas(64) std::uint16_t words[lanes_max] = {};
        alignas(64) float mean[lanes_max];
        alignas(64) float rms[lanes_max] = {};
        alignas(64) std::uint32_t sum[lanes_max] = {};
        alignas(64) std::uint64_t squares[lanes_max] = {};
        alignas(64) std::uint16_t count[lanes_max] = {};
        for (float& value : mean) value = std::numeric_limits<float>::quiet_NaN();
        for (std::size_t k = 0; k < rest; ++k) {
            words[k] = frames[f][i + k];
            mean[k] = judge.mean[i + k];
            rms[k] = judge.rms[i + k];
        }
        const std::uint16_t* const one = words;
        collect_vector({&one, 1}, 0, {mean, rms, sum, squares, count}, judge.outlier, judge.gain_bits, counts);
        for (std::size_t k = 0; k < rest; ++k) {
            sums.sum[i + k] += sum[k];
            sums.squares[i + k] += squares[k];
            sums.count[i + k] = static_cast<std::uint16_t>(sums.count[i + k] + count[k]);
        }
    }
    return {total(counts.taken), total(counts.outliers), total(counts.other_gain), total(counts.missing)};
}

}  // namespace weir::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::reduce {

HWY_EXPORT(Collect);

PedestalCounts collect(std::span<const std::uint16_t* const> frames, const PedestalJudge& judge,
                       PedestalSums sums) noexcept {
    return HWY_DYNAMIC_DISPATCH(Collect)(frames, judge, sums);
}

}  // namespace weir::reduce
#endif

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

/// One vector of pixels: true lanes of a mask are all ones, so subtracting it counts.
HWY_INLINE void collect_vector(const std::uint16_t* raw, const float* mean, const float* rms, float outlier,
                               std::uint16_t gain_bits, std::uint32_t* sum, std::uint64_t* squares,
                               std::uint16_t* count, LaneCounts& lanes) {
    const Floats d;
    const Wide w;
    const Words words;
    const Half half;
    const Squares q;
    const auto word = hn::PromoteTo(w, hn::LoadU(words, raw));
    const auto adc = hn::And(word, hn::Set(w, 0x3fff));
    const auto middle = hn::LoadU(d, mean);
    const auto known = hn::Not(hn::RebindMask(w, hn::IsNaN(middle)));
    const auto missing = hn::And(known, hn::Eq(word, hn::Set(w, 0xffff)));
    const auto there = hn::AndNot(missing, known);
    const auto special = hn::Or(hn::Eq(word, hn::Set(w, 0x4000)), hn::Eq(word, hn::Set(w, 0xc000)));
    const auto right = hn::AndNot(special, hn::Eq(hn::And(word, hn::Set(w, 0xc000)), hn::Set(w, gain_bits)));
    const auto judged = hn::And(there, right);
    const auto value = hn::ConvertTo(d, hn::BitCast(hn::RebindToSigned<Floats>(), adc));
    const auto away = hn::Abs(hn::Sub(value, middle));
    const auto far = hn::RebindMask(w, hn::Gt(away, hn::Mul(hn::LoadU(d, rms), hn::Set(d, outlier))));
    const auto taken = hn::AndNot(far, judged);

    const auto add = hn::IfThenElseZero(taken, adc);
    hn::StoreU(hn::Add(hn::LoadU(w, sum), add), w, sum);
    const auto square = hn::Mul(add, add);  // 28 bits
    const std::size_t lanes_half = hn::Lanes(q);
    hn::StoreU(hn::Add(hn::LoadU(q, squares), hn::PromoteTo(q, hn::LowerHalf(half, square))), q, squares);
    hn::StoreU(hn::Add(hn::LoadU(q, squares + lanes_half), hn::PromoteTo(q, hn::UpperHalf(half, square))), q,
               squares + lanes_half);
    const auto ones = hn::IfThenElseZero(taken, hn::Set(w, 1));
    const auto narrow = hn::DemoteTo(words, hn::BitCast(hn::RebindToSigned<Wide>(), ones));
    hn::StoreU(hn::Add(hn::LoadU(words, count), narrow), words, count);

    lanes.taken = hn::Sub(lanes.taken, hn::VecFromMask(w, taken));
    lanes.outliers = hn::Sub(lanes.outliers, hn::VecFromMask(w, hn::And(judged, far)));
    lanes.other_gain = hn::Sub(lanes.other_gain, hn::VecFromMask(w, hn::AndNot(right, there)));
    lanes.missing = hn::Sub(lanes.missing, hn::VecFromMask(w, missing));
}

HWY_INLINE std::uint64_t total(const hn::Vec<Wide> lanes) {
    return hn::GetLane(hn::SumOfLanes(Wide(), lanes));
}

PedestalCounts Collect(std::span<const std::uint16_t> raw, const PedestalJudge& judge, PedestalSums sums) {
    constexpr std::size_t lanes_max = hn::MaxLanes(Floats());
    const std::size_t lanes = hn::Lanes(Floats());
    const auto zero = hn::Zero(Wide());
    LaneCounts counts{zero, zero, zero, zero};
    std::size_t i = 0;
    for (; i + lanes <= raw.size(); i += lanes)
        collect_vector(raw.data() + i, judge.mean.data() + i, judge.rms.data() + i, judge.outlier, judge.gain_bits,
                       sums.sum.data() + i, sums.squares.data() + i, sums.count.data() + i, counts);
    if (i < raw.size()) {
        // The last few, in padded copies: what pads is bad, so it counts nowhere.
        alignas(64) std::uint16_t words[lanes_max] = {};
        alignas(64) float mean[lanes_max];
        alignas(64) float rms[lanes_max] = {};
        alignas(64) std::uint32_t sum[lanes_max] = {};
        alignas(64) std::uint64_t squares[lanes_max] = {};
        alignas(64) std::uint16_t count[lanes_max] = {};
        for (float& value : mean) value = std::numeric_limits<float>::quiet_NaN();
        const std::size_t rest = raw.size() - i;
        for (std::size_t k = 0; k < rest; ++k) {
            words[k] = raw[i + k];
            mean[k] = judge.mean[i + k];
            rms[k] = judge.rms[i + k];
        }
        collect_vector(words, mean, rms, judge.outlier, judge.gain_bits, sum, squares, count, counts);
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

PedestalCounts collect(std::span<const std::uint16_t> raw, const PedestalJudge& judge, PedestalSums sums) noexcept {
    return HWY_DYNAMIC_DISPATCH(Collect)(raw, judge, sums);
}

}  // namespace weir::reduce
#endif

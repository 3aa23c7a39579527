#include "collect_reference.hpp"

#include <cmath>

namespace weir::reduce::reference {

PedestalCounts collect(std::span<const std::uint16_t> raw, const PedestalJudge& judge, PedestalSums sums) noexcept {
    PedestalCounts counts;
    for (std::size_t i = 0; i < raw.size(); ++i) {
        if (std::isnan(judge.mean[i])) continue;
        const std::uint16_t word = raw[i];
        if (word == 0xffff) {
            ++counts.missing;
            continue;
        }
        if (word == 0x4000 || word == 0xc000 || (word & 0xc000U) != judge.gain_bits) {
            ++counts.other_gain;
            continue;
        }
        const std::uint32_t adc = word & 0x3fffU;
        const float limit = judge.rms[i] * judge.outlier;
        if (std::fabs(static_cast<float>(adc) - judge.mean[i]) > limit) {
            ++counts.outliers;
            continue;
        }
        sums.sum[i] += adc;
        sums.squares[i] += std::uint64_t{adc} * adc;
        ++sums.count[i];
        ++counts.taken;
    }
    return counts;
}

}  // namespace weir::reduce::reference

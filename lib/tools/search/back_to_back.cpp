#include "search/back_to_back.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace weir::search {

BackToBack::BackToBack(std::uint64_t most, std::uint64_t within, int repeats)
    : most_(most), within_(within), repeats_(repeats) {
    core::require(within > 0 && within <= most, "back-to-back: a burst needs frames, and an exactness not above them");
    core::require(repeats > 0, "back-to-back: at least one repeat");
    begin();
}

void BackToBack::begin() noexcept {
    whole_ = 0;
    cut_ = most_ + 1;
    tried_most_ = false;
}

std::optional<std::uint64_t> BackToBack::next() const noexcept {
    if (bursts_.size() == static_cast<std::size_t>(repeats_)) return std::nullopt;
    return tried_most_ ? whole_ + (cut_ - whole_) / 2 : most_;
}

void BackToBack::add(bool whole) {
    const auto burst = next();
    if (!burst) return;
    tried_most_ = true;
    if (whole)
        whole_ = std::max(whole_, *burst);
    else
        cut_ = std::min(cut_, *burst);
    if (whole_ == most_) reached_most_ = true;
    if (whole_ != most_ && cut_ - whole_ > within_) return;
    bursts_.push_back(whole_);
    begin();
}

double BackToBack::mean() const noexcept {
    if (bursts_.empty()) return 0;
    return std::accumulate(bursts_.begin(), bursts_.end(), 0.0) / static_cast<double>(bursts_.size());
}

BufferTime buffer_time(double mean_burst, double highest_rate, double throughput) noexcept {
    if (!(highest_rate > 0)) return {};
    const double implied = mean_burst / highest_rate;
    return {implied, implied * std::max(0.0, 1 - throughput / highest_rate)};
}

}  // namespace weir::search

#include "reduce/chain/pixel_selection.hpp"

#include <x86intrin.h>

#include <cassert>

namespace weir::reduce {

namespace {

/// Adds the time of its life to a counter, and to `all`.
template <class E>
class Cycles {
public:
    Cycles(core::Tally<E>& tally, std::uint64_t& all) noexcept : tally_(tally), all_(all), begin_(__rdtsc()) {}
    ~Cycles() {
        const std::uint64_t spent = __rdtsc() - begin_;
        tally_.add(E::cycles, spent);
        all_ += spent;
    }
    Cycles(const Cycles&) = delete;
    Cycles& operator=(const Cycles&) = delete;

private:
    core::Tally<E>& tally_;
    std::uint64_t& all_;
    std::uint64_t begin_;
};

}  // namespace

PixelSelection::PixelSelection(const Config& config, PixelType type, std::uint32_t columns, std::uint32_t piece_rows) {
    if (config.veto) veto_.emplace(*config.veto, columns);
    if (!config.sparse) return;
    sparse_config_ = *config.sparse;
    sparse_.emplace(type, columns, piece_rows);
}

void PixelSelection::begin_event() noexcept {
    in_module_ = false;
    kept_pixels_ = 0;
    if (veto_) veto_->begin_event();
}

void PixelSelection::begin_source(std::uint32_t module, std::uint32_t cell, std::size_t first_pixel) noexcept {
    const bool goes_on = in_module_ && module == module_ && first_pixel == at_;
    module_ = module;
    cell_ = cell;
    at_ = first_pixel;
    if (!veto_ || goes_on) return;
    if (in_module_) veto_->end_module();
    veto_->begin_module();
    in_module_ = true;
}

void PixelSelection::begin_piece() noexcept {
    if (sparse_) sparse_->begin();
}

void PixelSelection::keep_pixels(std::span<const float> energy, const PixelNoise& noise) noexcept {
    if (sparse_config_.noise != nullptr)
        return sparse_->append(energy, sparse_config_.noise->of(module_, cell_, at_, energy.size()));
    if (!sparse_config_.sigma) return sparse_->append(energy, *sparse_config_.threshold);
    assert(energy.size() <= thresholds_.size());
    const std::span<float> thresholds = std::span(thresholds_).first(energy.size());
    noise_thresholds(noise.rms, noise.factor, *sparse_config_.sigma, sparse_config_.threshold.value_or(0), thresholds);
    sparse_->append(energy, thresholds);
}

void PixelSelection::take(std::span<const float> energy, const PixelNoise& noise) noexcept {
    if (veto_) {
        const Cycles<VetoCounter> time(veto_tally_, cycles_);
        veto_->add(energy);
    }
    if (sparse_) {
        const Cycles<SparseCounter> time(sparse_tally_, cycles_);
        keep_pixels(energy, noise);
    }
    at_ += energy.size();
}

void PixelSelection::take_missing(std::span<const float> energy) noexcept {
    if (veto_) veto_->add(energy);
    if (sparse_) sparse_->append_bad(energy.size());
    at_ += energy.size();
}

PixelSelection::Piece PixelSelection::write_piece(std::byte* out) noexcept {
    const Cycles<SparseCounter> time(sparse_tally_, cycles_);
    const std::size_t dense_bytes = sparse_->dense_bytes();
    const bool sparse = sparse_->ends_with_row() && sparse_->sparse_bytes() < dense_bytes;
    const std::size_t bytes = sparse ? sparse_->sparse_bytes() : dense_bytes;
    if (sparse)
        sparse_->write_sparse(out);
    else
        sparse_->write_dense(out);
    kept_pixels_ += static_cast<std::uint32_t>(sparse_->kept());
    sparse_tally_.add(SparseCounter::pieces);
    if (!sparse) sparse_tally_.add(SparseCounter::kept_dense);
    sparse_tally_.add(SparseCounter::pixels, sparse_->pixels());
    sparse_tally_.add(SparseCounter::kept_pixels, sparse_->kept());
    sparse_tally_.add(SparseCounter::bytes_in, dense_bytes);
    sparse_tally_.add(SparseCounter::bytes_out, bytes);
    return {bytes, sparse};
}

void PixelSelection::count(Verdict verdict) noexcept {
    veto_tally_.add(VetoCounter::events);
    veto_tally_.add(VetoCounter::pixels_above, veto_->pixels_above());
    veto_tally_.add(VetoCounter::peaks, veto_->peaks());
    if (veto_->crowded()) veto_tally_.add(VetoCounter::crowded);
    if (verdict == Verdict::control) veto_tally_.add(VetoCounter::control);
    switch (veto_->reason()) {
        case VetoReason::none:
            return veto_tally_.add(verdict == Verdict::passed ? VetoCounter::passed : VetoCounter::not_asked);
        case VetoReason::many_pixels:
            return veto_tally_.add(VetoCounter::many_pixels);
        case VetoReason::many_peaks:
            return veto_tally_.add(VetoCounter::many_peaks);
        case VetoReason::few_pixels:
            return veto_tally_.add(VetoCounter::few_pixels);
        case VetoReason::few_peaks:
            return veto_tally_.add(VetoCounter::few_peaks);
    }
}

PixelResult PixelSelection::end_event(std::uint64_t number, bool complete) noexcept {
    if (!veto_) return {.pixels_above = kept_pixels_};
    const Cycles<VetoCounter> time(veto_tally_, cycles_);
    if (in_module_) veto_->end_module();
    in_module_ = false;
    const Verdict verdict = veto_->end_event(number, complete);
    count(verdict);
    return {verdict != Verdict::vetoed, static_cast<std::uint8_t>(verdict), veto_->pixels_above(), veto_->peaks()};
}

std::vector<ReducerCounters> PixelSelection::counters() const {
    std::vector<ReducerCounters> all;
    if (veto_) all.push_back(counters_of("veto", veto_counters, veto_tally_));
    if (sparse_) all.push_back(counters_of("sparse", sparse_counters, sparse_tally_));
    return all;
}

}  // namespace weir::reduce

#include "reduce/chain/pixel_chain.hpp"

#include <x86intrin.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "reduce/pixels/write_pixels.hpp"

namespace weir::reduce {

PixelChain::PixelChain(const Config& config, std::unique_ptr<PieceCodec> codec)
    : config_(config),
      store_(std::move(codec)),
      selection_(config.selection, config.output, jungfrau_columns,
                 static_cast<std::uint32_t>(piece_bytes / bytes_of(config.output) / jungfrau_columns)),
      raw_(config.refs_max, config.converted ? static_cast<std::uint16_t>(bad_pixel_bits(config.output)) : raw_error) {
    if (store_.packs()) piece_.resize(piece_bytes);
}

bool PixelChain::accepts(const assemble::Event& event) noexcept {
    for (std::size_t i = 0; i < event.messages.size(); ++i) {
        const assemble::Message* message = event.messages[i];
        if (message == nullptr || !message->total_known) continue;
        if (message->total == config_.sources[i].pixels() * sizeof(std::uint16_t)) continue;
        tally_.add(JungfrauCounter::refused_size);
        return false;
    }
    return true;
}

void PixelChain::begin_event(const assemble::Event& event) noexcept {
    number_ = event.number;
    complete_ = event.cause == assemble::EventCause::complete;
    selection_.begin_event();
}

/// Of the pixels from `at_` on, and their noise where that is followed.
PixelCalibration PixelChain::calibration(PixelNoise& noise) const noexcept {
    PixelCalibration calibration = config_.calibration->of(module_, at_, cell_);
    const PedestalView* live = config_.pedestals;
    if (live == nullptr) return calibration;
    const std::size_t first =
        (std::size_t{module_} * config_.calibration->storage_cells() + cell_) * jungfrau_pixels + at_;
    calibration.pedestal[live->gain] = live->mean + first;
    if (live->gain == 0) noise = {live->rms + first, calibration.factor[0]};
    return calibration;
}

void PixelChain::begin_source(std::uint32_t source, const assemble::Message* message) noexcept {
    const PixelSource& from = config_.sources[source];
    at_ = std::size_t{from.first_row} * jungfrau_columns;
    usable_ = false;
    module_ = from.module;
    cell_ = 0;
    tally_.add(JungfrauCounter::pixels, from.pixels());
    if (message == nullptr) {
        tally_.add(JungfrauCounter::missing_pixels, from.pixels());
    } else {
        tally_.add(JungfrauCounter::bytes_in, message->received_bytes);
        at_ = first_pixel_of(from, *message);
        const auto cell = cell_of(*message, config_.storage_cell, config_.calibration->storage_cells());
        if (!cell) tally_.add(JungfrauCounter::unknown_cell);
        usable_ = cell.has_value();
        cell_ = cell.value_or(0);
        raw_.begin(*message);
    }
    selection_.begin_source(module_, cell_, at_);
}

/// What is read of the chunk after this one, of `pixels`, while memory would have nothing to do. All of it is no
/// better.
void PixelChain::fetch_next(const PixelCalibration& values, std::size_t pixels) const noexcept {
    constexpr std::size_t most_pixels = RawPixels::chunk_pixels / 2;
    fetch_maps(values, pixels, std::min(pixels + most_pixels, jungfrau_pixels - at_));
    raw_.fetch(most_pixels);
}

void PixelChain::convert_chunk(std::span<float> energy) noexcept {
    if (usable_) {
        PixelNoise noise;
        const PixelCalibration values = calibration(noise);
        const SpecialPixels special = reduce::convert(raw_.next(energy.size()), values, energy);
        bad_ += special.bad;
        saturated_ += special.saturated;
        if (selection_.makes_pieces()) fetch_next(values, energy.size());
        selection_.take(energy, noise);
    } else {
        std::ranges::fill(energy, std::numeric_limits<float>::quiet_NaN());
        selection_.take_missing(energy);
    }
    at_ += energy.size();
}

void PixelChain::convert(std::size_t pixels, std::byte* out) noexcept {
    const std::size_t bytes = bytes_of(config_.output);
    for (std::size_t done = 0; done < pixels;) {
        const std::size_t chunk = std::min(pixels - done, RawPixels::chunk_pixels);
        // Energies that are written as they are need not be copied.
        const bool direct = config_.output == PixelType::f32 && !selection_.makes_pieces();
        float* const energy = direct ? reinterpret_cast<float*>(out + done * bytes) : energy_.data();
        convert_chunk({energy, chunk});
        if (!direct && !selection_.makes_pieces()) write_pixels(config_.output, {energy, chunk}, out + done * bytes);
        done += chunk;
    }
}

/// What an rx lcore has converted only has to be put in order.
void PixelChain::gather_converted(std::size_t pixels, std::byte* out) noexcept {
    const auto bad = static_cast<std::uint16_t>(bad_pixel_bits(config_.output));
    const std::uint16_t saturated = saturated_pixel_bits(config_.output);
    for (std::size_t done = 0; done < pixels;) {
        const std::size_t chunk = std::min(pixels - done, RawPixels::chunk_pixels);
        std::byte* const to = out + done * sizeof(std::uint16_t);
        if (usable_) {
            const std::span<const std::uint16_t> words = raw_.next(chunk);
            std::memcpy(to, words.data(), words.size_bytes());
            std::uint32_t bads = 0;
            std::uint32_t saturateds = 0;
            for (const std::uint16_t one : words) {
                bads += one == bad ? 1 : 0;
                saturateds += one == saturated ? 1 : 0;
            }
            bad_ += bads;
            saturated_ += saturateds;
        } else {
            for (std::size_t i = 0; i < chunk; ++i) std::memcpy(to + i * sizeof bad, &bad, sizeof bad);
        }
        at_ += chunk;
        done += chunk;
    }
}

StoredPiece PixelChain::next_piece(std::size_t pixels, std::span<std::byte> room) noexcept {
    const std::uint64_t begin = __rdtsc() - selection_.cycles();
    const std::uint64_t missing_before = usable_ ? raw_.missing() : 0;
    const std::size_t bytes = decoded_bytes(pixels);
    std::byte* const out = store_.packs() ? piece_.data() : room.data();
    bad_ = saturated_ = 0;
    selection_.begin_piece();
    if (config_.converted)
        gather_converted(pixels, out);
    else
        convert(pixels, out);
    // A pixel that did not come is NaN too.
    const std::uint64_t missing = usable_ ? raw_.missing() - missing_before : 0;
    tally_.add(JungfrauCounter::missing_pixels, missing);
    tally_.add(JungfrauCounter::bad_pixels, bad_ - missing);
    tally_.add(JungfrauCounter::saturated_pixels, saturated_);
    tally_.add(JungfrauCounter::bytes_out, bytes);
    tally_.add(JungfrauCounter::cycles, __rdtsc() - selection_.cycles() - begin);
    PixelSelection::Piece piece{bytes, false};
    if (selection_.makes_pieces()) piece = selection_.write_piece(out);
    StoredPiece stored{static_cast<std::uint32_t>(piece.bytes), encoding_raw, 0};
    if (store_.packs()) stored = store_.put({piece_.data(), piece.bytes}, room);
    if (piece.sparse) stored.encoding |= encoding_sparse;
    return stored;
}

PixelResult PixelChain::end_event() noexcept {
    tally_.add(JungfrauCounter::events);
    return selection_.end_event(number_, complete_);
}

std::vector<ReducerCounters> PixelChain::counters() const {
    std::vector<ReducerCounters> all{counters_of("jungfrau", jungfrau_counters, tally_)};
    for (const ReducerCounters& counters : selection_.counters()) all.push_back(counters);
    for (const ReducerCounters& counters : store_.counters()) all.push_back(counters);
    return all;
}

}  // namespace weir::reduce

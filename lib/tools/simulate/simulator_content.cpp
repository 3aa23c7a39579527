#include "simulate/simulator_content.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace weir::simulate {

namespace {

// Typical values of a module at 12.4 keV: gain factors +41.0 and -1.45 ADU/keV, pedestals 2,450-3,000 and 13,600 ADU
// (slsDetectorPackage/aare conventions; medians of real frames).
constexpr double photon_adu_g0 = 12.4 * 41.0;
constexpr double photon_adu_g1 = 12.4 * 1.45;
constexpr double pedestal_g1 = 13600;
constexpr double switch_adu = 14000;  // above this the pixel switches to the next gain
constexpr std::uint16_t gain_bits = 0xc000;
constexpr std::uint16_t gain_g1 = 0x4000;
constexpr int noise_limit = 60;  // ADU; keeps base + noise inside the 14 bits

std::uint16_t to_pixel(double pedestal, double photons) noexcept {
    const double adu = pedestal + photons * photon_adu_g0;
    if (adu < switch_adu) {
        return static_cast<std::uint16_t>(std::max(adu, 2.0 * noise_limit));
    }
    const double falling = std::max(pedestal_g1 - photons * photon_adu_g1, 2.0 * noise_limit);
    return static_cast<std::uint16_t>(gain_g1 | static_cast<std::uint16_t>(falling));
}

double pedestal_of(std::uint64_t seed, std::uint32_t row, std::uint32_t column) noexcept {
    // Chips of 256 x 256 pixels differ more from each other than the pixels of one.
    const double chip = 200 * chance(seed, (row / 256) * 4 + column / 256);
    const double pixel = 50 * chance(seed + 1, std::uint64_t{row} * DetectorImages::columns + column);
    const double slope = 0.15 * (row % 256) + 0.1 * (column % 256);
    return 2550 + chip + pixel + slope;
}

// What adds nothing to a mean of 0.02 and more, to the last bit, is not computed: for most pixels that is everything.
double decaying(double peak, double exponent) noexcept {
    constexpr double exponent_max = 60;
    return exponent > exponent_max ? 0 : peak * std::exp(-exponent);
}

// Mean number of photons at a distance from the beam: the shadow of the beam stop, the direct scatter around it, and
// rings.
double mean_photons(double radius) noexcept {
    constexpr double beam_stop_pixels = 14;
    if (radius < beam_stop_pixels) {
        return 0;
    }
    double mean = 0.02 + decaying(60, (radius - beam_stop_pixels) / 9);
    constexpr std::array<std::array<double, 3>, 4> rings{
        {{120, 3.0, 3.0}, {205, 3.5, 1.5}, {310, 4.0, 2.2}, {430, 5.0, 0.9}}};  // radius, width, peak
    for (const auto& [ring, width, peak] : rings) {
        const double distance = (radius - ring) / width;
        mean += decaying(peak, 0.5 * distance * distance);
    }
    return mean;
}

// `none`: the probability of no photon, exp(-mean).
double poisson(double mean, double none, std::uint64_t seed, std::uint64_t pixel) noexcept {
    if (mean > 12) {  // close enough to normal; twelve uniforms would do, four are enough for a picture
        double sum = -2;
        for (std::uint64_t i = 0; i < 4; ++i) {
            sum += chance(seed + i, pixel);
        }
        return std::max(0.0, std::round(mean + sum * std::sqrt(3 * mean)));
    }
    const double wanted = chance(seed, pixel);
    double term = none;
    double sum = term;
    double count = 0;
    while (sum < wanted && count < 60) {
        ++count;
        term *= mean / count;
        sum += term;
    }
    return count;
}

constexpr int stamp_half = 3;  // a spot is 7 x 7 pixels

}  // namespace

DetectorImages::DetectorImages(std::uint32_t modules, std::uint64_t seed)
    : rows_(modules * rows_per_module), variants_(std::clamp(8 / modules, 1U, 4U)), seed_(seed) {
    base_.resize(std::size_t{variants_} * rows_ * columns);
    for (std::uint32_t row = 0; row < rows_; ++row) {
        for (std::uint32_t column = 0; column < columns; ++column) {
            const double mean = mean_photons(std::hypot(row - 0.5 * rows_, column - 0.5 * columns));
            const double none = std::exp(-mean);
            const double pedestal = pedestal_of(seed, row, column);
            const std::uint64_t pixel = std::uint64_t{row} * columns + column;
            for (std::uint32_t variant = 0; variant < variants_; ++variant) {
                const double photons = poisson(mean, none, seed + 100 + 10 * variant, pixel);
                base_[(std::size_t{variant} * rows_) * columns + pixel] = to_pixel(pedestal, photons);
            }
        }
    }
    noise_.resize(noise_values + columns);
    for (std::size_t i = 0; i < noise_.size(); ++i) {
        double sum = -2;
        for (std::uint64_t k = 0; k < 4; ++k) {
            sum += chance(seed + 200 + k, i);
        }
        noise_[i] = static_cast<std::int16_t>(std::clamp(static_cast<int>(sum * 25), -noise_limit, noise_limit));
    }
    for (std::size_t i = 0; i < spots_.size(); ++i) {
        spots_[i] = {.radius = 60 + 440 * chance(seed + 300, i),
                     .angle = 6.283185307179586 * chance(seed + 301, i),
                     .peak_photons = 4 + 60 * chance(seed + 302, i)};
    }
}

void DetectorImages::place_spots(std::uint64_t event) noexcept {
    // A turn takes 720 events; the remainder keeps the angle exact for any event number.
    const double turn = 6.283185307179586 / 720 * static_cast<double>(event % 720);
    for (Spot& spot : spots_) {
        spot.row = static_cast<int>(0.5 * rows_ + spot.radius * std::sin(spot.angle + turn));
        spot.column = static_cast<int>(0.5 * columns + spot.radius * std::cos(spot.angle + turn));
    }
    spots_event_ = event;
    spots_placed_ = true;
}

void DetectorImages::render(std::uint64_t event, std::uint32_t row, std::uint32_t row_count, std::byte* out) noexcept {
    if (!spots_placed_ || spots_event_ != event) {
        place_spots(event);
    }
    const std::uint64_t event_seed = mix(seed_, event);
    const std::uint16_t* base = base_.data() + (event_seed % variants_) * rows_ * columns;
    std::array<std::uint16_t, columns> pixels;
    for (std::uint32_t y = row; y < row + row_count; ++y) {
        const std::uint16_t* base_row = base + std::size_t{y} * columns;
        const std::int16_t* noise = noise_.data() + mix(event_seed, y) % noise_values;
        for (std::uint32_t x = 0; x < columns; ++x) {
            pixels[x] = static_cast<std::uint16_t>(base_row[x] + noise[x]);
        }
        for (const Spot& spot : spots_) {
            const int dy = static_cast<int>(y) - spot.row;
            if (dy < -stamp_half || dy > stamp_half) {
                continue;
            }
            for (int dx = -stamp_half; dx <= stamp_half; ++dx) {
                const int x = spot.column + dx;
                if (x < 0 || x >= static_cast<int>(columns) || (pixels[static_cast<std::size_t>(x)] & gain_bits) != 0) {
                    continue;
                }
                auto& pixel = pixels[static_cast<std::size_t>(x)];
                pixel = to_pixel(pixel, spot.peak_photons * std::exp(-0.5 * (dx * dx + dy * dy)));
            }
        }
        std::memcpy(out, pixels.data(), sizeof pixels);
        out += sizeof pixels;
    }
}

namespace {

constexpr std::size_t pool_bytes = 4U << 20;

}  // namespace

MessageContent::MessageContent(std::uint64_t seed) : seed_(seed), pool_(pool_bytes) {
    for (std::size_t i = 0; i < pool_bytes; i += 8) {
        const std::uint64_t value = mix(seed + 400, i);
        std::memcpy(pool_.data() + i, &value, 8);
    }
}

void MessageContent::copy(std::uint64_t event, std::uint32_t source, std::uint64_t offset, std::byte* out,
                          std::size_t count) const noexcept {
    const std::uint64_t start = mix(mix(seed_, event), source);
    while (count > 0) {
        const std::size_t at = (start + offset) % pool_bytes;
        const std::size_t part = std::min(count, pool_bytes - at);
        std::memcpy(out, pool_.data() + at, part);
        out += part;
        offset += part;
        count -= part;
    }
}

}  // namespace weir::simulate

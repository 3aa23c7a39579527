#include "peak_reference.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <utility>

namespace weir::reduce::reference {

namespace {

using Pixel = std::pair<int, int>;  // row, column

struct Module {
    std::span<const float> energy;
    int rows;
    int columns;

    [[nodiscard]] float at(Pixel p) const {
        return energy[static_cast<std::size_t>(p.first) * static_cast<std::size_t>(columns) +
                      static_cast<std::size_t>(p.second)];
    }
    /// The pixels of the square around `p` that the module has, in order.
    [[nodiscard]] std::vector<Pixel> around(Pixel p, int distance) const {
        std::vector<Pixel> out;
        for (int r = std::max(0, p.first - distance); r <= std::min(rows - 1, p.first + distance); ++r)
            for (int c = std::max(0, p.second - distance); c <= std::min(columns - 1, p.second + distance); ++c)
                out.emplace_back(r, c);
        return out;
    }
};

int distance(Pixel a, Pixel b) {
    return std::max(std::abs(a.first - b.first), std::abs(a.second - b.second));
}

float sorted_median(std::vector<float> values) {
    std::ranges::sort(values);
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) * 0.5F;
}

bool is_highest(const Module& module, Pixel p, int separation) {
    return std::ranges::none_of(module.around(p, separation), [&](Pixel other) {
        if (other == p) return false;
        return other < p ? module.at(other) >= module.at(p) : module.at(other) > module.at(p);
    });
}

std::uint32_t connected(const Module& module, Pixel p, int radius, float background, float above) {
    std::set<Pixel> peak{p};
    std::deque<Pixel> next{p};
    while (!next.empty()) {
        for (const Pixel& other : module.around(next.front(), 1))
            if (distance(other, p) <= radius && module.at(other) - background > above && peak.insert(other).second)
                next.push_back(other);
        next.pop_front();
    }
    return static_cast<std::uint32_t>(peak.size());
}

}  // namespace

std::vector<Peak> find_peaks(std::span<const float> energy, std::uint32_t columns, const PeakOptions& options) {
    const Module module{energy, static_cast<int>(energy.size() / columns), static_cast<int>(columns)};
    const int radius = static_cast<int>(options.radius);
    const int outer = static_cast<int>(options.background_radius);
    const auto needed =
        static_cast<std::size_t>((2 * outer + 1) * (2 * outer + 1) - (2 * radius + 1) * (2 * radius + 1)) /
        background_part;
    std::vector<Peak> peaks;
    for (int row = 0; row < module.rows; ++row) {
        for (int column = 0; column < module.columns; ++column) {
            const Pixel p{row, column};
            const float value = module.at(p);
            if (!(value > static_cast<float>(options.threshold)) ||
                !is_highest(module, p, static_cast<int>(options.separation)))
                continue;
            std::vector<float> around;
            for (const Pixel& other : module.around(p, outer))
                if (distance(other, p) > radius && std::isfinite(module.at(other))) around.push_back(module.at(other));
            if (around.size() < needed) continue;
            const float background = sorted_median(around);
            for (float& other : around) other = std::abs(other - background);
            const float above = static_cast<float>(options.snr) * (mad_to_sigma * sorted_median(around));
            if (!(value - background > above)) continue;
            const std::uint32_t pixels = connected(module, p, radius, background, above);
            if (pixels < options.pixels_min) continue;
            peaks.push_back(
                {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column), pixels, value, background});
        }
    }
    return peaks;
}

}  // namespace weir::reduce::reference

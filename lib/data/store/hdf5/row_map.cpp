// Which rows of many files make the rows of one table. See row_map.hpp.
#include "store/hdf5/row_map.hpp"

#include <iterator>
#include <map>
#include <utility>

namespace weir::store::hdf5 {

namespace {

/// Takes the rows in order. Where a file's rows are not in the order of the table, as several workers write them, it
/// has several mappings that grow side by side.
class RowMapper {
public:
    explicit RowMapper(std::size_t stretches_max) : stretches_max_(stretches_max) {}

    void take(std::uint64_t here, const RowPlace& place) {
        if (place.file >= growing_.size()) growing_.resize(place.file + std::size_t{1});
        Growing& growing = growing_[place.file];
        const std::size_t number = mapping_for(growing, here, place);
        std::vector<RowStretch>& stretches = mappings_[number].stretches;
        if (goes_on(stretches, here, place.row))
            ++stretches.back().rows;
        else
            stretches.push_back({here, place.row, 1});
        growing.emplace(place.row + 1, number);
    }

    std::vector<RowMapping> finish() { return std::move(mappings_); }

private:
    using Growing = std::multimap<std::uint64_t, std::size_t>;

    static bool goes_on(const std::vector<RowStretch>& stretches, std::uint64_t here, std::uint64_t there) {
        if (stretches.empty()) return false;
        const RowStretch& last = stretches.back();
        return last.here + last.rows == here && last.there + last.rows == there;
    }

    /// The mapping whose last row is the closest before this one, taken out of `growing`; else a new one.
    std::size_t mapping_for(Growing& growing, std::uint64_t here, const RowPlace& place) {
        for (auto next = growing.upper_bound(place.row); next != growing.begin();) {
            const std::size_t number = std::prev(next)->second;
            next = growing.erase(std::prev(next));
            const std::vector<RowStretch>& stretches = mappings_[number].stretches;
            if (stretches.size() < stretches_max_ || goes_on(stretches, here, place.row)) return number;
            // It is full, and stays as it is.
        }
        mappings_.push_back({place.file, {}});
        return mappings_.size() - 1;
    }

    std::size_t stretches_max_;
    std::vector<RowMapping> mappings_;
    std::vector<Growing> growing_;  ///< by file: which mappings, by the row that would follow
};

}  // namespace

std::vector<RowMapping> map_rows(std::span<const RowPlace> places, std::size_t stretches_max) {
    RowMapper mapper(stretches_max);
    for (std::uint64_t here = 0; here < places.size(); ++here) mapper.take(here, places[here]);
    return mapper.finish();
}

}  // namespace weir::store::hdf5

// Which numbers have been, as stretches of consecutive ones: of what comes in order, one stretch. Bounded: of more
// stretches than that the lowest is forgotten, and everything up to its end counts as seen from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

namespace weir::stream {

class SeenNumbers {
public:
    using Number = std::pair<std::uint64_t, std::uint64_t>;  ///< epoch, and the number in it

    explicit SeenNumbers(std::size_t stretches_max = std::size_t{1} << 20) : stretches_max_(stretches_max) {}

    [[nodiscard]] bool has(Number number) const {
        if (forgotten_ && number <= *forgotten_) return true;
        auto stretch = last_by_first_.upper_bound(number);
        if (stretch == last_by_first_.begin()) return false;
        --stretch;
        return stretch->first.first == number.first && number.second <= stretch->second;
    }
    /// One that it has not.
    void add(Number number) {
        const auto [epoch, value] = number;
        auto next = last_by_first_.lower_bound(number);
        const bool joins_next =
            next != last_by_first_.end() && next->first.first == epoch && next->first.second - 1 == value;
        const std::uint64_t last = joins_next ? next->second : value;
        if (joins_next) next = last_by_first_.erase(next);
        if (next != last_by_first_.begin()) {
            const auto before = std::prev(next);
            if (before->first.first == epoch && before->second + 1 == value) {
                before->second = last;
                return;
            }
        }
        last_by_first_.emplace_hint(next, number, last);
        if (last_by_first_.size() > stretches_max_) forget_lowest();
    }

private:
    void forget_lowest() {
        const auto lowest = last_by_first_.begin();
        forgotten_ = {lowest->first.first, lowest->second};
        last_by_first_.erase(lowest);
    }

    std::size_t stretches_max_;
    std::map<Number, std::uint64_t> last_by_first_;
    std::optional<Number> forgotten_;  ///< up to which
};

}  // namespace weir::stream

// Which bytes of an image came, where the messages of its sources lie one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::store {

class ImageStretches {
public:
    struct Stretch {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;

        [[nodiscard]] std::uint64_t end() const noexcept { return offset + bytes; }
    };

    void clear() noexcept { stretches_.clear(); }
    /// In the order of their places.
    void add(std::uint64_t offset, std::uint64_t bytes) {
        if (bytes == 0) return;
        if (!stretches_.empty() && stretches_.back().end() == offset)
            stretches_.back().bytes += bytes;
        else
            stretches_.push_back({offset, bytes});
    }
    /// Without a gap in any of them.
    [[nodiscard]] const std::vector<Stretch>& all() const noexcept { return stretches_; }

    /// Calls visit(from, to) for what did not come between `begin` and `end`.
    template <class Visit>
    void for_each_gap(std::uint64_t begin, std::uint64_t end, const Visit& visit) const {
        auto stretch = std::ranges::upper_bound(stretches_, begin, {}, [](const Stretch& one) { return one.end(); });
        for (; begin < end; ++stretch) {
            const std::uint64_t next = stretch == stretches_.end() ? end : std::min(stretch->offset, end);
            if (begin < next) visit(begin, next);
            if (stretch == stretches_.end()) return;
            begin = std::max(begin, stretch->end());
        }
    }

private:
    std::vector<Stretch> stretches_;
};

}  // namespace weir::store

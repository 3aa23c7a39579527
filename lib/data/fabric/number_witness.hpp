// Which block numbers of a readout node are believed. One wrong number far ahead would take all others with it: they
// would come after it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "cluster/message.hpp"

namespace weir::fabric {

/// A number is believed if it is not far ahead of those before, if two sources have it, or if it is one of three in a
/// row that are all far ahead, as after a jump, or at the beginning.
class NumberWitness {
public:
    /// Less than that is an ordinary gap.
    static constexpr cluster::Block far_blocks = 1024;

    /// An event of that block has come.
    void saw(cluster::Block block) noexcept {
        if (believes(block)) {
            in_a_row_ = 0;
            return believe(block);
        }
        if (in_a_row_ == row_.size()) std::rotate(row_.begin(), row_.begin() + 1, row_.end()), --in_a_row_;
        row_[in_a_row_++] = block;
        if (in_a_row_ == row_.size()) believe(*std::min_element(row_.begin(), row_.end()));
    }
    /// More than one source says so.
    void believe(cluster::Block block) noexcept {
        newest_ = has_begun_ ? std::max(newest_, block) : block;
        has_begun_ = true;
    }
    [[nodiscard]] bool believes(cluster::Block block) const noexcept {
        return has_begun_ && (block <= newest_ || block - newest_ <= far_blocks);
    }

private:
    cluster::Block newest_ = 0;  ///< the highest that is believed
    bool has_begun_ = false;
    std::array<cluster::Block, 3> row_{};  ///< the last ones that are not, with none between them that is
    std::size_t in_a_row_ = 0;
};

}  // namespace weir::fabric

// Ranges of block numbers: a few of them, however long.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <vector>

#include "cluster/message.hpp"

namespace weir::cluster {

class BlockRanges {
public:
    /// From `from` up to before `to`.
    void add(Block from, Block to) {
        if (from >= to) return;
        auto at = ranges_.upper_bound(from);
        if (at != ranges_.begin() && std::prev(at)->second >= from) {
            --at;
            from = at->first;
        }
        while (at != ranges_.end() && at->first <= to) {
            to = std::max(to, at->second);
            at = ranges_.erase(at);
        }
        ranges_.emplace(from, to);
    }
    /// As list() has them.
    void add(const std::vector<Block>& list) {
        for (std::size_t i = 0; i + 1 < list.size(); i += 2) add(list[i], list[i + 1]);
    }
    /// Of the range that `block` is in; `block` itself if it is in none.
    [[nodiscard]] Block end_of(Block block) const {
        const auto after = ranges_.upper_bound(block);
        return after == ranges_.begin() ? block : std::max(block, std::prev(after)->second);
    }
    /// Of the first range after `block`, its first; if there is none, the highest number.
    [[nodiscard]] Block begin_after(Block block) const {
        const auto after = ranges_.upper_bound(block);
        return after == ranges_.end() ? ~Block{0} : after->first;
    }
    void forget_before(Block block) {
        while (!ranges_.empty() && ranges_.begin()->second <= block) ranges_.erase(ranges_.begin());
    }
    /// As list() has them, of what lies from `from` up to before `to`.
    [[nodiscard]] std::vector<Block> list(Block from, Block to) const {
        std::vector<Block> list;
        auto at = ranges_.upper_bound(from);
        if (at != ranges_.begin() && std::prev(at)->second > from) --at;
        for (; at != ranges_.end() && at->first < to; ++at)
            list.insert(list.end(), {std::max(from, at->first), std::min(to, at->second)});
        return list;
    }
    /// The first of each, and the one after its last.
    [[nodiscard]] std::vector<Block> list() const {
        std::vector<Block> list;
        for (const auto& [from, to] : ranges_) list.insert(list.end(), {from, to});
        return list;
    }
    [[nodiscard]] bool is_empty() const noexcept { return ranges_.empty(); }

private:
    std::map<Block, Block> ranges_;
};

}  // namespace weir::cluster

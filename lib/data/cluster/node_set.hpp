// A set of nodes of a cluster, as a bit each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::cluster {

/// The place of a node in the list of all nodes.
using NodeId = std::uint16_t;

class NodeSet {
public:
    void insert(NodeId node) {
        if (node / 64U >= words_.size()) words_.resize(node / 64U + 1U);
        words_[node / 64U] |= bit(node);
    }
    void erase(NodeId node) noexcept {
        if (node / 64U < words_.size()) words_[node / 64U] &= ~bit(node);
    }
    [[nodiscard]] bool contains(NodeId node) const noexcept {
        return node / 64U < words_.size() && (words_[node / 64U] & bit(node)) != 0;
    }
    [[nodiscard]] std::size_t size() const noexcept {
        std::size_t count = 0;
        for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
        return count;
    }
    /// The lowest; wants one.
    [[nodiscard]] NodeId first() const noexcept {
        std::size_t word = 0;
        while (words_[word] == 0) ++word;
        return static_cast<NodeId>(word * 64U + static_cast<unsigned>(std::countr_zero(words_[word])));
    }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] const std::vector<std::uint64_t>& words() const noexcept { return words_; }

private:
    static std::uint64_t bit(NodeId node) noexcept { return std::uint64_t{1} << (node % 64U); }
    std::vector<std::uint64_t> words_;
};

}  // namespace weir::cluster

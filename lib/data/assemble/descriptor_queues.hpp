// Descriptors on their way out of an rx lcore: one queue per shard of the builder, each in order. All memory is taken
// at construction.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "assemble/message.hpp"
#include "assemble/shard_of.hpp"

namespace weir::assemble {

class DescriptorQueues {
public:
    /// Numbers may all belong to one shard, so each queue has room for `capacity`.
    DescriptorQueues(const ShardOf& shard_of, std::size_t capacity) : shard_of_(shard_of), queues_(shard_of.shards()) {
        for (Queue& queue : queues_) queue.items.resize(capacity);
    }

    /// There must be room.
    void push(const Descriptor& descriptor) noexcept {
        assert(has_room(descriptor.number, 0));
        Queue& queue = queues_[shard_of_(descriptor.number)];
        const std::size_t place = queue.first + queue.count++;
        queue.items[place < queue.items.size() ? place : place - queue.items.size()] = descriptor;
        ++size_;
    }
    /// Whether the queue that this number goes to has more than `spare` places left.
    [[nodiscard]] bool has_room(std::uint64_t number, std::size_t spare) const noexcept {
        const Queue& queue = queues_[shard_of_(number)];
        return queue.count + spare < queue.items.size();
    }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::uint32_t shards() const noexcept { return static_cast<std::uint32_t>(queues_.size()); }
    /// The first ones; where the memory ends the others are there after these have been consumed.
    [[nodiscard]] std::span<const Descriptor> of(std::uint32_t shard) const noexcept {
        const Queue& queue = queues_[shard];
        return {queue.items.data() + queue.first, std::min(queue.count, queue.items.size() - queue.first)};
    }
    void consume(std::uint32_t shard, std::uint32_t count) noexcept {
        Queue& queue = queues_[shard];
        queue.first += count;
        queue.count -= count;
        size_ -= count;
        if (queue.first == queue.items.size() || queue.count == 0) queue.first = 0;
    }

private:
    struct Queue {  // a ring
        std::vector<Descriptor> items;
        std::size_t first = 0;
        std::size_t count = 0;
    };
    ShardOf shard_of_;
    std::vector<Queue> queues_;
    std::size_t size_ = 0;  ///< of all of them
};

}  // namespace weir::assemble

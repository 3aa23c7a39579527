// Commands on their way out of a builder: one queue per rx lcore, each in order. All memory is taken at construction.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "assemble/message.hpp"

namespace weir::assemble {

class CommandQueues {
public:
    CommandQueues(std::uint32_t rx_count, std::size_t capacity) : queues_(rx_count) {
        for (Queue& queue : queues_) queue.items.reserve(capacity);
    }
    /// What one of this size takes.
    [[nodiscard]] static std::uint64_t memory_bytes(std::uint32_t rx_count, std::size_t capacity) noexcept {
        return rx_count * capacity * sizeof(Command);
    }

    /// There must be room.
    void push(std::uint16_t rx, const Command& command) noexcept {
        std::vector<Command>& items = queues_[rx].items;
        assert(items.size() < items.capacity());
        items.push_back(command);
    }
    [[nodiscard]] std::span<const Command> of(std::uint32_t rx) const noexcept {
        const Queue& queue = queues_[rx];
        return {queue.items.data() + queue.first, queue.items.size() - queue.first};
    }
    void consume(std::uint32_t rx, std::uint32_t count) noexcept {
        Queue& queue = queues_[rx];
        queue.first += count;
        if (queue.first == queue.items.size()) {
            queue.items.clear();
            queue.first = 0;
        } else if (queue.first > queue.items.capacity() / 2) {
            queue.items.erase(queue.items.begin(), queue.items.begin() + static_cast<std::ptrdiff_t>(queue.first));
            queue.first = 0;
        }
    }

private:
    struct Queue {
        std::vector<Command> items;
        std::size_t first = 0;  ///< those before it have been taken
    };
    std::vector<Queue> queues_;
};

}  // namespace weir::assemble

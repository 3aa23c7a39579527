// The memory of a builder's events: all of it is taken at construction. One lcore uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "assemble/event.hpp"
#include "assemble/free_list.hpp"

namespace weir::assemble {

class EventPool {
public:
    EventPool(std::uint32_t size, std::uint32_t sources)
        : size_(size),
          slab_(std::make_unique<Event[]>(size)),
          messages_(std::size_t{size} * sources),
          announced_(std::size_t{size} * sources) {
        for (std::uint32_t i = size; i-- > 0;) {
            slab_[i].messages = {messages_.data() + std::size_t{i} * sources, sources};
            slab_[i].announced = {announced_.data() + std::size_t{i} * sources, sources};
            free_.push(slab_[i]);
        }
    }
    /// What one of this size takes.
    [[nodiscard]] static std::uint64_t memory_bytes(std::uint64_t size, std::uint32_t sources) noexcept {
        return size * (sizeof(Event) + sources * (sizeof(void*) + sizeof(std::uint8_t)));
    }

    /// There must be one. It is as it was when it came back.
    [[nodiscard]] Event& take() noexcept {
        ++in_use_;
        return *free_.pop();
    }
    void give_back(Event& event) noexcept {
        event.state = EventState::free;
        free_.push(event);
        --in_use_;
    }
    [[nodiscard]] bool empty() const noexcept { return free_.empty(); }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint32_t in_use() const noexcept { return in_use_; }

private:
    std::uint32_t size_;
    std::uint32_t in_use_ = 0;
    std::unique_ptr<Event[]> slab_;
    std::vector<Message*> messages_;
    std::vector<std::uint8_t> announced_;
    FreeList<Event> free_;
};

}  // namespace weir::assemble

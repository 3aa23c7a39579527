// The messages of one rx lcore: all of them are taken at construction, and used again and again.
#pragma once

#include <cstdint>
#include <memory>

#include "assemble/free_list.hpp"
#include "assemble/message.hpp"

namespace weir::assemble {

class MessagePool {
public:
    /// `owner`: the rx lcore, stamped into each.
    MessagePool(std::uint32_t size, std::uint16_t owner)
        : slab_(std::make_unique<Message[]>(size)), size_(size), free_count_(size), owner_(owner) {
        for (std::uint32_t i = size; i-- > 0;) free_.push(slab_[i]);
    }

    /// An empty message of `source` that begins now, or nullptr.
    [[nodiscard]] Message* take(std::uint32_t source, TimeNs now) noexcept {
        Message* message = free_.pop();
        if (message == nullptr) return nullptr;
        --free_count_;
        message->number = 0;
        message->epoch = 0;
        message->source = source;
        message->total = message->received_bytes = message->packets = message->slot_bytes = 0;
        message->range_count = 0;
        message->total_known = message->complete = message->of_other_sender = message->whole_before = false;
        message->origin = {};
        message->slots_refused = false;
        message->in_sequence = message->begun = message->ended = false;
        message->meta_bytes = 0;
        message->owner = owner_;
        message->first_block = nullptr;
        message->next_ref = nullptr;
        message->has_more_ranges = false;
        message->first_ns = message->last_ns = message->total_ns = now;
        message->previous = message->next = nullptr;
        return message;
    }
    void give_back(Message& message) noexcept {
        message.state = MessageState::free;
        free_.push(message);
        ++free_count_;
    }
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
    [[nodiscard]] std::uint32_t free_count() const noexcept { return free_count_; }

private:
    std::unique_ptr<Message[]> slab_;
    FreeList<Message> free_;
    std::uint32_t size_;
    std::uint32_t free_count_;
    std::uint16_t owner_;
};

}  // namespace weir::assemble

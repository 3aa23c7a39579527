// A closed event in the hands of a worker.
#pragma once

#include <span>
#include <utility>

#include "assemble/event.hpp"
#include "port/ring.hpp"

namespace weir::stages {

/// Owns the event until give_back() or the handle's end: then its messages go back to the rx lcores that opened them,
/// and the event to its builder. Both outlive the handle.
class EventHandle {
public:
    using MessageRings = std::span<port::Ring<assemble::Message*>* const>;

    EventHandle() = default;
    /// `released`: to the builder that the event came from; `recycle`: to each rx lcore.
    EventHandle(assemble::Event& event, port::Ring<assemble::Event*>& released, MessageRings recycle) noexcept
        : event_(&event), released_(&released), recycle_(recycle) {}
    ~EventHandle() { give_back(); }
    EventHandle(EventHandle&& other) noexcept { *this = std::move(other); }
    EventHandle& operator=(EventHandle&& other) noexcept {
        if (this == &other) return *this;
        give_back();
        event_ = std::exchange(other.event_, nullptr);
        released_ = other.released_;
        recycle_ = other.recycle_;
        return *this;
    }
    EventHandle(const EventHandle&) = delete;
    EventHandle& operator=(const EventHandle&) = delete;

    explicit operator bool() const noexcept { return event_ != nullptr; }
    [[nodiscard]] const assemble::Event& operator*() const noexcept { return *event_; }
    [[nodiscard]] const assemble::Event* operator->() const noexcept { return event_; }

    /// The rings have a place for every message and event that there is, so this cannot fail.
    void give_back() noexcept {
        if (event_ == nullptr) return;
        for (assemble::Message* message : event_->messages)
            if (message != nullptr) recycle_[message->owner]->push(message);
        released_->push(event_);
        event_ = nullptr;
    }

private:
    assemble::Event* event_ = nullptr;
    port::Ring<assemble::Event*>* released_ = nullptr;
    MessageRings recycle_;
};

}  // namespace weir::stages

#include "fabric/deferred_events.hpp"

#include <cstring>
#include <utility>

namespace weir::fabric {

namespace {

/// Different ones; who calls with ever new names is not to fill the memory.
constexpr std::size_t sentences_max = 1000;

}  // namespace

void DeferredEvents::say(std::string text) {
    if (said_.size() >= sentences_max || !said_.insert(text).second) return;
    queue_.emplace_back(Say{std::move(text)});
}

bool DeferredEvents::deliver() {
    const std::size_t count = queue_.size();
    for (std::size_t i = 0; i < count; ++i) {
        const auto notice = std::move(queue_.front());
        queue_.pop_front();
        std::visit([this](const auto& one) { tell(one); }, notice);
    }
    return count > 0;
}

void DeferredEvents::tell(const Own& notice) {
    if (!has_payload(notice.message)) return receiver_.received(notice.self, notice.message, {});
    const auto bytes = notice.payload.bytes;
    std::byte* const memory = receiver_.room(bytes);
    if (bytes > 0) std::memcpy(memory, memory_of(notice.payload), bytes);
    receiver_.received(notice.self, notice.message, {bytes, handle_of(memory)});
    receiver_.sent(notice.self, notice.message.block);
}

void DeferredEvents::drop() {
    for (const auto& notice : queue_) {
        const auto* const received = std::get_if<Received>(&notice);
        if (received != nullptr && has_payload(received->message))
            receiver_.give_back(memory_of(received->payload), received->payload.bytes);
    }
    queue_.clear();
}

}  // namespace weir::fabric

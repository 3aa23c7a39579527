#include "stream/message_memory.hpp"

#include <utility>

namespace weir::stream {

namespace {

/// Messages of a run differ by a few bytes: one size for all of them lets their memory go round.
constexpr std::size_t step = std::size_t{64} << 10;

}  // namespace

MessageMemory::Block MessageMemory::take(std::size_t size) {
    const std::size_t rounded = (size + step - 1) / step * step;
    {
        const std::scoped_lock lock(mutex_);
        while (!spare_.empty()) {
            Block block = std::move(spare_.back());
            spare_.pop_back();
            spare_bytes_ -= block.size;
            if (block.size >= rounded) return block;  // what is too small belongs to messages that are no more
        }
    }
    return {std::make_unique_for_overwrite<std::byte[]>(rounded), rounded};
}

void MessageMemory::give_back(Block block) noexcept {
    try {
        const std::scoped_lock lock(mutex_);
        if (spare_bytes_ + block.size > spare_max_) return;
        spare_bytes_ += block.size;
        spare_.push_back(std::move(block));
    } catch (const std::exception&) {  // no memory for the list: the block goes back to the system
    }
}

}  // namespace weir::stream

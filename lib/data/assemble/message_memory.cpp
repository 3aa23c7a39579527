#include "assemble/message_memory.hpp"

#include <algorithm>
#include <span>

#include "core/refused_memory.hpp"
#include "core/resident_memory.hpp"

namespace weir::assemble {

using wire::PacketCounter;

MessageMemory::MessageMemory(const MessageConfig& config, wire::PacketTally& packets, BufferRelease release)
    : buffers_max_(config.buffers_max),
      copied_bytes_max_(config.copies.payload_bytes_max()),
      copying_(config.copies),
      packets_(packets),
      release_(release),
      slab_(static_cast<FragmentBlock*>(std::aligned_alloc(alignof(FragmentBlock), memory_bytes(config)))),
      fresh_(slab_.get()),
      blocks_(static_cast<std::uint32_t>(blocks_of(config))),
      blocks_free_(blocks_),
      copies_(config.copies, config.touch) {
    if (slab_ == nullptr) core::refuse_memory(memory_bytes(config));
    if (config.touch) core::touch(slab_.get(), memory_bytes(config));
    to_release_.resize(release_max);
}

std::uint64_t MessageMemory::memory_bytes(const MessageConfig& config) noexcept {
    return blocks_of(config) * sizeof(FragmentBlock);
}

/// Two neighbouring blocks hold at least 32 references together (splice joins what fits into one), and each message
/// that holds a buffer or a cell has one block that is not full yet. A cell of payload of less than 128 bytes needs
/// more than one; where all are, blocks are what runs out first.
std::size_t MessageMemory::blocks_of(const MessageConfig& config) noexcept {
    const std::size_t holders = std::size_t{config.buffers_max} + config.copies.cells;
    const std::size_t messages =
        config.keeps ? config.messages_max : std::min<std::size_t>(config.messages_max, holders);
    return config.buffers_max / 16 + messages + config.copies.cells + 1;
}

FragmentBlock* MessageMemory::take_block() noexcept {
    --blocks_free_;
    FragmentBlock* block = free_.pop();
    if (block == nullptr) block = fresh_++;  // never used before: unless Config::touch, its page is touched now
    block->next = nullptr;
    block->count = block->continued = 0;
    return block;
}

void MessageMemory::join_last(Message& message) noexcept {
    FragmentBlock& block = *FragmentBlock::before(message.next_ref);
    block.continued |= std::uint32_t{1} << (message.next_ref - 1 - block.refs.data());
    --message.packets;
    packets_.subtract(PacketCounter::in_flight, 1);
}

bool MessageMemory::append(Message& message, void* buffer, const std::byte* data, std::uint32_t offset,
                           std::uint32_t bytes, TimeNs now) noexcept {
    if (!has_room(1)) return false;
    put(message, buffer, data, offset, bytes, now);
    if (buffer == nullptr) --buffers_held_;
    packets_.add(PacketCounter::in_flight);
    return true;
}

void MessageMemory::begin_block(Message& message) noexcept {
    FragmentBlock* const fresh = take_block();
    message.seal();
    (message.next_ref != nullptr ? FragmentBlock::before(message.next_ref)->next : message.first_block) = fresh;
    message.next_ref = fresh->refs.data();
}

/// Copies small payload out of its buffer: always, or once buffers are short. Returns where it went, or nullptr.
const std::byte* MessageMemory::copy_out(Message& message, void* buffer, const std::byte* data,
                                         std::uint32_t bytes) noexcept {
    if (buffer == nullptr || (bytes > copying_.at_once_bytes && buffers_held_ < copying_.above_held)) return nullptr;
    const std::byte* const copied = copies_.put(message.cells, data, bytes);
    if (copied != nullptr) give_back(buffer);
    return copied;
}

const FragmentRef* MessageMemory::find(Message& message, std::uint32_t offset, std::uint32_t bytes) noexcept {
    if (message.next_ref == nullptr) return nullptr;
    message.seal();
    const auto in = [&](const FragmentBlock& block) -> const FragmentRef* {
        const std::span refs(block.refs.data(), block.count);
        const auto at = std::ranges::find_if(
            refs, [&](const FragmentRef& ref) { return ref.offset == offset && ref.bytes == bytes; });
        return at != refs.end() ? &*at : nullptr;
    };
    const FragmentBlock* const last = FragmentBlock::before(message.next_ref);
    const FragmentRef* found = in(*last);
    for (const FragmentBlock* block = message.first_block; found == nullptr && block != last; block = block->next)
        found = in(*block);
    return found;
}

void MessageMemory::splice(Message& into, Message& from) noexcept {
    into.seal();
    from.seal();
    for (FragmentBlock* block = from.first_block; block != nullptr;) {
        FragmentBlock* next = block->next;
        block->next = nullptr;
        FragmentBlock* last = into.next_ref != nullptr ? FragmentBlock::before(into.next_ref) : nullptr;
        if (last != nullptr && last->count + block->count <= FragmentBlock::capacity) {
            // Copying a few references keeps runs of single packets from taking a block each.
            std::copy_n(block->refs.data(), block->count, last->refs.data() + last->count);
            last->continued |= block->continued << last->count;
            last->count += block->count;
            into.next_ref += block->count;
            free_.push(*block);
            ++blocks_free_;
        } else {
            (last != nullptr ? last->next : into.first_block) = block;
            into.next_ref = block->refs.data() + block->count;
        }
        block = next;
    }
    into.received_bytes += from.received_bytes;
    into.packets += from.packets;
    into.first_ns = std::min(into.first_ns, from.first_ns);
    into.last_ns = std::max(into.last_ns, from.last_ns);
    if (into.meta_bytes == 0 && from.meta_bytes > 0) {
        into.meta_bytes = from.meta_bytes;
        into.meta = from.meta;
    }
    CopyStore::join(into.cells, from.cells);
    from.cells = nullptr;
    from.first_block = nullptr;
    from.next_ref = nullptr;
    from.packets = 0;
}

void MessageMemory::release(Message& message) noexcept {
    message.seal();
    for (FragmentBlock* block = message.first_block; block != nullptr;) {
        std::uint32_t buffers = 0;
        for (std::uint32_t i = 0; i < block->count; ++i) {
            if (block->refs[i].buffer == nullptr) continue;
            give_back(block->refs[i].buffer);
            ++buffers;
        }
        buffers_held_ -= buffers;
        FragmentBlock* next = block->next;
        free_.push(*block);
        ++blocks_free_;
        block = next;
    }
    copies_.give_back(message.cells);
    message.cells = nullptr;
    message.first_block = nullptr;
    message.next_ref = nullptr;
}

void MessageMemory::end_burst() noexcept {
    if (release_count_ > 0) release_(to_release_.data(), release_count_);
    release_count_ = 0;
}

}  // namespace weir::assemble

// Messages for tests, without an assembler.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "assemble/message.hpp"

namespace weir::test {

using assemble::FragmentBlock;
using assemble::FragmentRef;
using assemble::Message;

/// A message whose fragments lie in buffers of their own, in the order in which they were added.
class MadeMessage {
public:
    /// What is added from here on, up to so many bytes, lies in one piece of memory, each fragment aligned.
    void copy_from_here(std::size_t bytes) {
        buffers_.emplace_back(bytes);
        copies_ = buffers_.back();
    }
    void add(std::uint32_t offset, const std::vector<std::byte>& bytes) {
        const std::byte* const data = place(bytes);
        if (blocks_.empty() || blocks_.back().count == FragmentBlock::capacity) {
            blocks_.emplace_back();
            if (blocks_.size() > 1) blocks_[blocks_.size() - 2].next = &blocks_.back();
            message_.first_block = &blocks_.front();
        }
        FragmentBlock& block = blocks_.back();
        FragmentRef& ref = block.refs[block.count++];
        ref.data = data;
        ref.offset = offset;
        ref.bytes = static_cast<std::uint32_t>(bytes.size());
        message_.received_bytes += ref.bytes;
        ++message_.packets;
    }
    /// As the builder does with what came after an event's end: the buffer stays, the reference is empty.
    void trim(std::uint32_t index) {
        FragmentRef& ref = blocks_[index / FragmentBlock::capacity].refs[index % FragmentBlock::capacity];
        ref.bytes = 0;
        ref.data = nullptr;
    }
    /// Says how large the whole message is; it then is complete if all of it was added.
    void declare(std::uint32_t total) {
        message_.total_known = true;
        message_.total = total;
        message_.complete = message_.received_bytes == total;
    }
    [[nodiscard]] const Message& message() const { return message_; }

private:
    const std::byte* place(const std::vector<std::byte>& bytes) {
        if (bytes.size() > copies_.size()) return buffers_.emplace_back(bytes).data();
        std::byte* const at = copies_.data();
        std::ranges::copy(bytes, at);
        copies_ = copies_.subspan(std::min<std::size_t>(
            copies_.size(), assemble::CopyCell::aligned(static_cast<std::uint32_t>(bytes.size()))));
        return at;
    }

    Message message_{};
    std::deque<FragmentBlock> blocks_;
    std::deque<std::vector<std::byte>> buffers_;
    std::span<std::byte> copies_;  ///< room that is left for them
};

}  // namespace weir::test

// Finds a message by its number. A number is unique for one source and epoch.
#pragma once

#include <cstdint>

#include "assemble/message.hpp"
#include "core/flat_table.hpp"

namespace weir::assemble {

class MessageIndex {
public:
    explicit MessageIndex(std::uint32_t messages_max) : table_(messages_max) {}
    [[nodiscard]] static std::uint64_t memory_bytes(std::uint32_t messages_max) noexcept {
        return core::FlatTable<Message*>::memory_bytes(messages_max);
    }

    [[nodiscard]] static constexpr core::NumberKey key_of(std::uint32_t source, std::uint64_t number,
                                                          std::uint32_t epoch) noexcept {
        return {number, (std::uint64_t{source} << 32U) | epoch};
    }
    /// nullptr: there is none.
    [[nodiscard]] Message* find(const core::NumberKey& key) noexcept {
        Message** found = table_.find(key);
        return found != nullptr ? *found : nullptr;
    }
    [[nodiscard]] Message* find(std::uint32_t source, std::uint64_t number, std::uint32_t epoch) noexcept {
        return find(key_of(source, number, epoch));
    }
    void prefetch(const core::NumberKey& key) const noexcept { table_.prefetch(key); }
    void insert(Message& message) noexcept { table_.insert(key_of(message), &message); }
    void erase(const Message& message) noexcept { table_.erase(key_of(message)); }
    [[nodiscard]] auto size() const noexcept { return table_.size(); }

private:
    [[nodiscard]] static constexpr core::NumberKey key_of(const Message& message) noexcept {
        return key_of(message.source, message.number, message.epoch);
    }

    core::FlatTable<Message*> table_;
};

}  // namespace weir::assemble

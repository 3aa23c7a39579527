// Finds a message by its number. A number is unique for one source and epoch.
#pragma once

#include <cstdint>

#include "assemble/message.hpp"
#include "core/pointer_table.hpp"

namespace weir::assemble {

class MessageIndex {
public:
    explicit MessageIndex(std::uint32_t messages_max) : table_(messages_max) {}
    [[nodiscard]] static std::uint64_t memory_bytes(std::uint32_t messages_max) noexcept {
        return Table::memory_bytes(messages_max);
    }

    [[nodiscard]] static constexpr core::NumberKey key_of(std::uint32_t source, std::uint64_t number,
                                                          std::uint32_t epoch) noexcept {
        return {number, (std::uint64_t{source} << 32U) | epoch};
    }
    [[nodiscard]] static constexpr core::NumberKey key_of(const Message& message) noexcept {
        return key_of(message.source, message.number, message.epoch);
    }
    /// The message of this key, if there is one, mostly; or another, or nullptr. Looks at no message.
    [[nodiscard]] Message* guess(const core::NumberKey& key) const noexcept { return table_.guess(key); }
    /// nullptr: there is none.
    [[nodiscard]] Message* find(std::uint32_t source, std::uint64_t number, std::uint32_t epoch) const noexcept {
        return table_.find(key_of(source, number, epoch));
    }
    void insert(Message& message) noexcept { table_.insert(message); }
    void erase(const Message& message) noexcept { table_.erase(message); }
    [[nodiscard]] std::size_t size() const noexcept { return table_.size(); }

private:
    struct KeyOf {
        core::NumberKey operator()(const Message& message) const noexcept { return key_of(message); }
    };
    using Table = core::PointerTable<Message, KeyOf>;

    Table table_;
};

}  // namespace weir::assemble

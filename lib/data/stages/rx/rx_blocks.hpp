// A builder of a cluster: the blocks that it is given become messages here, as if their packets had come to this lcore.
// Event by event: all messages of one, then its end; so nothing is waited for.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "assemble/message_table.hpp"
#include "fabric/block_queue.hpp"
#include "stages/rx/rx_sources.hpp"

namespace weir::stages {

/// Used by one lcore. Payload stays in the block's memory, which is lent until its messages have been recycled.
class RxBlocks {
public:
    struct Parts {
        RxSources& sources;
        assemble::MessageTable& table;
    };
    /// `queue` may be null: nothing is given. At most `blocks_max` blocks are here at once.
    RxBlocks(fabric::BlockQueue* queue, std::uint32_t blocks_max, Parts parts);

    struct Taken {
        std::size_t work = 0;
        std::uint64_t packets = 0;
        std::uint64_t bytes = 0;
        core::TimeNs newest_ns = core::never;  ///< of the messages that were taken; never: there were none
    };
    /// Takes up to `messages` messages; there must be room for them.
    [[nodiscard]] Taken take(std::uint32_t messages) noexcept;
    /// Everything has come and been given back.
    [[nodiscard]] bool has_ended() const noexcept { return ended_; }

private:
    void give_back_free() noexcept;
    [[nodiscard]] bool next_block() noexcept;
    void deliver(const fabric::BuiltBlock::Message& from, Taken& taken) noexcept;

    fabric::BlockQueue* queue_;
    Parts parts_;
    struct Lent {
        fabric::BuiltBlock* block = nullptr;
        std::size_t free = 0;  ///< its first messages that have been recycled
    };
    std::vector<Lent> lent_;  ///< the first `lent_count_`: all that are here, also the one in hand
    std::size_t lent_count_ = 0;
    fabric::BuiltBlock* block_ = nullptr;  ///< in hand
    std::size_t event_ = 0;
    std::uint32_t message_ = 0;  ///< in the event
    bool ended_;
};

}  // namespace weir::stages

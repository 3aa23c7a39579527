// Room for events that messages will open whose number is not known yet. An RoCE responder may acknowledge a message
// only if its event will be admitted, and it has to know at the message's first packet. So an rx lcore claims a place
// for each such message; the builder, which alone admits events, keeps what is claimed free from others; and the claim
// ends when the builder has seen the message, or the message has ended before.
//
// rx lcores and builder shards only add to and subtract from what is here; the sums are on the safe side at any time:
// a claim is taken back only after the event that it became is in `in_use`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/units.hpp"

namespace weir::assemble {

class EventRoom {
public:
    /// `limit`: events that all builder shards together have room for, open and on their way to the sink.
    EventRoom(std::uint32_t shards, std::uint32_t limit)
        : shards_(std::make_unique<Shard[]>(shards)), shard_count_(shards), limit_(limit) {}

    /// A place for one more message, whichever event it will belong to. False: there is none.
    [[nodiscard]] bool claim() noexcept {
        std::uint32_t taken = claimed_.fetch_add(1, std::memory_order_acq_rel);
        for (std::uint32_t shard = 0; shard < shard_count_; ++shard)
            taken += shards_[shard].in_use.load(std::memory_order_acquire);
        if (taken < limit_) return true;
        give_back();
        return false;
    }
    void give_back() noexcept { claimed_.fetch_sub(1, std::memory_order_acq_rel); }
    [[nodiscard]] std::uint32_t claimed() const noexcept { return claimed_.load(std::memory_order_acquire); }

    /// For the builder: how many events there are. Before the claim of a new one is given back.
    void publish(std::uint32_t shard, std::uint32_t in_use) noexcept {
        shards_[shard].in_use.store(in_use, std::memory_order_release);
    }

private:
    struct alignas(core::cache_line_bytes) Shard {
        std::atomic<std::uint32_t> in_use{0};
    };
    alignas(core::cache_line_bytes) std::atomic<std::uint32_t> claimed_{0};
    std::unique_ptr<Shard[]> shards_;
    std::uint32_t shard_count_;
    std::uint32_t limit_;
};

}  // namespace weir::assemble

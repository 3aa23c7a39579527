// What the shards of one builder tell each other: how many events each has open and queued, because the limits on them
// hold for all together; who has the event that opened first, because that one makes room; and where the numbers of an
// epoch begin. Each shard writes its own line and reads the others'; nothing here waits.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "assemble/number_memory.hpp"
#include "core/units.hpp"

namespace weir::assemble {

using core::TimeNs;

class ShardBoard {
public:
    /// `number_bits`: of the narrowest event number on the wire.
    ShardBoard(std::uint32_t shards, unsigned number_bits);

    /// What a shard has at a moment.
    struct Account {
        std::uint32_t open = 0;
        std::uint32_t held = 0;    ///< open, or closed and not waiting for rx lcores, or queued
        std::uint32_t queued = 0;  ///< handed downstream
        TimeNs oldest_ns = std::numeric_limits<TimeNs>::max();  ///< first packet of the event that was opened first
    };
    void publish(std::uint32_t shard, const Account& account) noexcept;
    /// Of all shards but this one.
    [[nodiscard]] Account others(std::uint32_t shard) const noexcept;
    /// The shard that has the event which opened first.
    [[nodiscard]] std::uint32_t oldest() const noexcept;

    /// Asks a shard to end the event that opened first there. False when it has been asked often enough and has not
    /// come to it.
    [[nodiscard]] bool ask(std::uint32_t shard) noexcept;
    /// What this shard has been asked for since it was last asked.
    [[nodiscard]] std::uint32_t take_asked(std::uint32_t shard) noexcept;
    /// How often a shard may be asked at once: by so many events the limit on open ones can be exceeded.
    static constexpr std::uint32_t asked_max = 32;

    // Where narrow counters begin. Sources extend their counters on their own, each shard makes them meet for the
    // events that it sees; but which turn of the counter an event is in must be the same in all shards. It is that of
    // the epoch's first event, whichever shard it is in.

    /// Whether there is anything to agree about.
    [[nodiscard]] bool agrees_on_numbers() const noexcept { return number_bits_ < 64; }
    /// This shard opened its first event of `epoch`. False when the board is being written: try again.
    [[nodiscard]] bool post(std::uint32_t shard, std::uint32_t epoch, std::uint64_t number, TimeNs time_ns) noexcept;
    /// This shard has posted all that it opened before this time.
    void seen_until(std::uint32_t shard, TimeNs time_ns) noexcept;
    /// What is to be added to numbers of this epoch in the shard that opened it with `number`; nothing as long as
    /// another shard may still have an earlier event.
    [[nodiscard]] std::optional<std::uint64_t> turn(std::uint32_t epoch, std::uint64_t number) noexcept;

private:
    struct alignas(core::cache_line_bytes) Line {
        std::atomic<std::uint32_t> open{0};
        std::atomic<std::uint32_t> held{0};
        std::atomic<std::uint32_t> queued{0};
        std::atomic<TimeNs> oldest_ns{std::numeric_limits<TimeNs>::max()};
        std::atomic<TimeNs> seen_until{std::numeric_limits<TimeNs>::min()};
    };
    struct alignas(core::cache_line_bytes) Asked {
        std::atomic<std::uint32_t> times{0};
    };
    struct First {
        std::uint64_t number = 0;
        TimeNs time_ns = 0;
        bool posted = false;
    };
    struct Epoch {
        std::uint32_t epoch = 0;
        bool decided = false;
        std::uint64_t origin = 0;
        std::vector<First> firsts;  ///< per shard
    };
    static constexpr std::uint32_t epochs_kept = 64;

    /// Epochs are rare and the time under it is short; who finds it taken comes again.
    class TryLock {
    public:
        explicit TryLock(std::atomic_flag& flag) noexcept
            : flag_(flag), mine_(!flag.test_and_set(std::memory_order_acquire)) {}
        ~TryLock() {
            if (mine_) flag_.clear(std::memory_order_release);
        }
        TryLock(const TryLock&) = delete;
        TryLock& operator=(const TryLock&) = delete;
        explicit operator bool() const noexcept { return mine_; }

    private:
        std::atomic_flag& flag_;
        bool mine_;
    };

    void decide(Epoch& epoch) const noexcept;

    std::uint32_t shards_;
    unsigned number_bits_;
    std::unique_ptr<Line[]> lines_;
    std::unique_ptr<Asked[]> asked_;
    std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    std::array<Epoch, epochs_kept> epochs_;  ///< under busy_; by epoch modulo their count
};

}  // namespace weir::assemble

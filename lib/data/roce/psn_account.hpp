// The account of a queue pair's packet sequence numbers (PSN): how many there were, and how many of them came. A sender
// uses every PSN once, so what did not come was lost, also where nothing of a whole message arrived. Unlike PsnRing it
// knows only packets that came, not what follows from them.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <vector>

#include "core/one_writer.hpp"
#include "wire/roce.hpp"

namespace weir::roce {

/// Of one source, summed over all that have sent to it. One thread writes, others may read at any time.
class PsnCounts {
public:
    /// A copy. `expected - seen` PSNs never came.
    struct Values {
        wire::RoceTransport transport = wire::RoceTransport::other;  ///< of the first packet; other: none has come
        std::uint64_t expected = 0;      ///< PSNs from the first to the last that came, of each stretch
        std::uint64_t seen = 0;          ///< of them, those that came at least once
        std::uint64_t out_of_order = 0;  ///< of those seen, the ones that came after a later PSN
        std::uint64_t repeated = 0;      ///< packets whose PSN had been before
        std::uint64_t restarts = 0;      ///< a sender began anew
        std::uint64_t jumps = 0;         ///< steps ahead too large to tell a loss from a new beginning
        std::uint64_t jump_psns = 0;     ///< PSNs left out by them
        std::uint64_t unnumbered = 0;    ///< packets of whole messages without the immediate that would number them
        std::uint32_t senders = 0;       ///< the most that were known at one time
        std::uint64_t sender = 0;        ///< tells the first one from others

        [[nodiscard]] std::uint64_t missing() const noexcept { return expected - std::min(expected, seen); }
    };
    PsnCounts() = default;
    /// Only before the threads start.
    PsnCounts(const PsnCounts&) {}

    [[nodiscard]] Values values() const noexcept {
        Values out;
        out.transport = transport_.load(std::memory_order_relaxed);
        out.seen = get(seen);  // before `expected`, so that a packet that comes between the two is not missing
        out.expected = get(expected);
        out.out_of_order = get(out_of_order);
        out.repeated = get(repeated);
        out.restarts = get(restarts);
        out.jumps = get(jumps);
        out.jump_psns = get(jump_psns);
        out.unnumbered = get(unnumbered);
        out.senders = static_cast<std::uint32_t>(get(senders_));
        out.sender = get(sender_);
        return out;
    }

    using Count = std::atomic<std::uint64_t>;
    /// `senders` are known at the moment, this one among them.
    void note_sender(const wire::RocePacket& packet, std::uint32_t senders) noexcept {
        if (get(senders_) == 0) {
            sender_.store(packet.address * 0x9e3779b97f4a7c15 ^ packet.source_qp, std::memory_order_relaxed);
            transport_.store(packet.transport, std::memory_order_relaxed);
        }
        senders_.store(std::max<std::uint64_t>(get(senders_), senders), std::memory_order_relaxed);
    }

    Count expected{0};
    Count seen{0};
    Count out_of_order{0};
    Count repeated{0};
    Count restarts{0};
    Count jumps{0};
    Count jump_psns{0};
    Count unnumbered{0};

private:
    [[nodiscard]] static std::uint64_t get(const Count& count) noexcept {
        return count.load(std::memory_order_relaxed);
    }
    std::atomic<wire::RoceTransport> transport_{wire::RoceTransport::other};
    Count senders_{0};
    Count sender_{0};
};

/// Of one sender. Exact as long as no packet comes a window behind the newest; what comes later than that stays
/// missing.
class PsnAccount {
public:
    /// `window` PSNs are remembered, rounded up to a power of two.
    explicit PsnAccount(std::uint32_t window) : bits_(std::bit_ceil(std::max<std::uint32_t>(window, 64)) / 64) {}

    /// What comes now has nothing to do with what came.
    void begin_anew() noexcept { begun_ = false; }
    /// The sender is known to have begun with `first`, whether that has come or not. `psn` is here now.
    void expect_from(std::uint32_t first, std::uint32_t psn) noexcept {
        if (begun_) return;
        begin((first - 1) & 0xffffff);
        begun_ = ahead(psn) > 0 && ahead(psn) <= window() / 2;  // otherwise it is not that connection
    }
    /// A packet with this PSN has come, or it was used for something that sends us nothing.
    void add(std::uint32_t psn, PsnCounts& counts) noexcept {
        if (!begun_) begin((psn - 1) & 0xffffff);
        const std::int64_t step = ahead(psn);
        if (step > window() / 2 || step <= -window()) return;
        const std::int64_t at = newest_ + step;
        if (step > 0) {
            for (std::int64_t between = newest_ + 1; between <= at; ++between) clear(between);
            newest_ = at;
            core::add(counts.expected, static_cast<std::uint64_t>(step));
        } else if (has(at)) {
            return core::add(counts.repeated);
        } else {
            core::add(counts.out_of_order);
            if (at < first_) {
                core::add(counts.expected, static_cast<std::uint64_t>(first_ - at));
                first_ = at;
            }
        }
        set(at);
        core::add(counts.seen);
    }
    /// The `count` PSNs after the newest have come, one after the other.
    void add_next(std::uint32_t count, PsnCounts& counts) noexcept {
        core::add(counts.expected, count);
        core::add(counts.seen, count);
        for (; count > 0; --count) set(++newest_);
    }
    /// This PSN is the newest that has come.
    [[nodiscard]] bool ends_with(std::uint32_t psn) const noexcept {
        return begun_ && (static_cast<std::uint32_t>(newest_) & 0xffffff) == psn;
    }
    /// How far this PSN is ahead of the newest one; negative: behind it. The shorter way around.
    [[nodiscard]] std::int64_t ahead(std::uint32_t psn) const noexcept {
        return begun_ ? static_cast<std::int32_t>((psn - static_cast<std::uint32_t>(newest_)) << 8U) >> 8 : 0;
    }

private:
    [[nodiscard]] std::int64_t window() const noexcept { return static_cast<std::int64_t>(bits_.size() * 64); }
    void begin(std::uint32_t before) noexcept {
        std::ranges::fill(bits_, 0);
        newest_ = (std::int64_t{1} << 40) + before;
        first_ = newest_ + 1;
        begun_ = true;
    }
    [[nodiscard]] std::uint64_t& word(std::int64_t psn) noexcept {
        return bits_[static_cast<std::uint64_t>(psn) / 64 & (bits_.size() - 1)];
    }
    [[nodiscard]] bool has(std::int64_t psn) noexcept { return (word(psn) >> (psn & 63) & 1U) != 0; }
    void set(std::int64_t psn) noexcept { word(psn) |= std::uint64_t{1} << (psn & 63); }
    void clear(std::int64_t psn) noexcept { word(psn) &= ~(std::uint64_t{1} << (psn & 63)); }

    std::vector<std::uint64_t> bits_;  ///< of the last `window` PSNs: came
    std::int64_t newest_ = 0;          ///< extended over every wrap
    std::int64_t first_ = 0;
    bool begun_ = false;
};

}  // namespace weir::roce

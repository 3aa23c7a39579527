#include "assemble/shard_board.hpp"

#include <algorithm>

namespace weir::assemble {

ShardBoard::ShardBoard(std::uint32_t shards, unsigned number_bits)
    : shards_(shards),
      number_bits_(number_bits),
      lines_(std::make_unique<Line[]>(shards)),
      asked_(std::make_unique<Asked[]>(shards)) {
    for (Epoch& epoch : epochs_) epoch.firsts.resize(shards);
}

void ShardBoard::publish(std::uint32_t shard, const Account& account) noexcept {
    Line& line = lines_[shard];
    line.open.store(account.open, std::memory_order_relaxed);
    line.held.store(account.held, std::memory_order_relaxed);
    line.queued.store(account.queued, std::memory_order_relaxed);
    line.oldest_ns.store(account.oldest_ns, std::memory_order_relaxed);
}

ShardBoard::Account ShardBoard::others(std::uint32_t shard) const noexcept {
    Account sum;
    for (std::uint32_t i = 0; i < shards_; ++i) {
        if (i == shard) continue;
        sum.open += lines_[i].open.load(std::memory_order_relaxed);
        sum.held += lines_[i].held.load(std::memory_order_relaxed);
        sum.queued += lines_[i].queued.load(std::memory_order_relaxed);
    }
    return sum;
}

std::uint32_t ShardBoard::oldest() const noexcept {
    std::uint32_t oldest = 0;
    TimeNs since = std::numeric_limits<TimeNs>::max();
    for (std::uint32_t i = 0; i < shards_; ++i)
        if (const TimeNs first_ns = lines_[i].oldest_ns.load(std::memory_order_relaxed); first_ns < since) {
            since = first_ns;
            oldest = i;
        }
    return oldest;
}

bool ShardBoard::ask(std::uint32_t shard) noexcept {
    if (asked_[shard].times.load(std::memory_order_relaxed) >= asked_max) return false;
    asked_[shard].times.fetch_add(1, std::memory_order_relaxed);
    return true;
}

std::uint32_t ShardBoard::take_asked(std::uint32_t shard) noexcept {
    if (asked_[shard].times.load(std::memory_order_relaxed) == 0) return 0;
    return asked_[shard].times.exchange(0, std::memory_order_relaxed);
}

bool ShardBoard::post(std::uint32_t shard, std::uint32_t epoch, std::uint64_t number, TimeNs time_ns) noexcept {
    const TryLock lock(busy_);
    if (!lock) return false;
    Epoch& entry = epochs_[epoch % epochs_kept];
    if (entry.epoch < epoch) {
        entry.epoch = epoch;
        entry.decided = false;
        std::ranges::fill(entry.firsts, First{});
    }
    if (entry.epoch == epoch) entry.firsts[shard] = {number, time_ns, true};
    return true;
}

void ShardBoard::seen_until(std::uint32_t shard, TimeNs time_ns) noexcept {
    lines_[shard].seen_until.store(time_ns, std::memory_order_release);
}

/// The earliest of the firsts, once nobody can come with an earlier one. At equal times whoever decides first is right:
/// from then on it holds for all.
void ShardBoard::decide(Epoch& epoch) const noexcept {
    const First* first = nullptr;
    for (const First& candidate : epoch.firsts)
        if (candidate.posted && (first == nullptr || candidate.time_ns < first->time_ns)) first = &candidate;
    if (first == nullptr) return;
    for (std::uint32_t i = 0; i < shards_; ++i)
        if (!epoch.firsts[i].posted && lines_[i].seen_until.load(std::memory_order_acquire) < first->time_ns) return;
    epoch.origin = first->number;
    epoch.decided = true;
}

std::optional<std::uint64_t> ShardBoard::turn(std::uint32_t epoch, std::uint64_t number) noexcept {
    const TryLock lock(busy_);
    if (!lock) return std::nullopt;
    Epoch& entry = epochs_[epoch % epochs_kept];
    if (entry.epoch != epoch) return 0;  // so far behind the others that nobody knows any more
    if (!entry.decided) decide(entry);
    if (!entry.decided) return std::nullopt;
    return extend_number(number, entry.origin, number_bits_) - number;
}

}  // namespace weir::assemble

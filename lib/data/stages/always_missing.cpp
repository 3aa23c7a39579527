#include "stages/always_missing.hpp"

#include <algorithm>

#include "core/one_writer.hpp"

namespace weir::stages {

using assemble::ByteRange;

namespace {

/// What is in both; as many ranges as fit into `out`.
std::size_t intersect(std::span<const ByteRange> a, std::span<const ByteRange> b, std::span<ByteRange> out) noexcept {
    std::size_t count = 0;
    while (!a.empty() && !b.empty() && count < out.size()) {
        const ByteRange both{std::max(a.front().begin, b.front().begin), std::min(a.front().end, b.front().end)};
        if (both.begin < both.end) out[count++] = both;
        auto& first = a.front().end < b.front().end ? a : b;
        first = first.subspan(1);
    }
    return count;
}

}  // namespace

void AlwaysMissing::add(std::span<const ByteRange> gaps) noexcept {
    const std::uint64_t before = messages_.load(std::memory_order_relaxed);
    const std::uint32_t count = count_.load(std::memory_order_relaxed);
    if (before > 0 && count == 0) return;  // nothing ever will be
    messages_.store(before + 1, std::memory_order_relaxed);
    std::uint64_t bytes = 0;
    for (const ByteRange& gap : gaps) bytes += gap.end - gap.begin;
    core::add(missing_bytes_, bytes);
    std::array<ByteRange, ranges_max> now{};
    std::array<ByteRange, ranges_max> both{};
    std::size_t kept = std::min(gaps.size(), ranges_max);
    if (before == 0) {
        std::copy_n(gaps.begin(), kept, both.begin());
    } else {
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint64_t range = ranges_[i].load(std::memory_order_relaxed);
            now[i] = {static_cast<std::uint32_t>(range >> 32U), static_cast<std::uint32_t>(range)};
        }
        kept = intersect({now.data(), count}, gaps, both);
    }
    for (std::size_t i = 0; i < kept; ++i)
        ranges_[i].store(std::uint64_t{both[i].begin} << 32U | both[i].end, std::memory_order_relaxed);
    count_.store(static_cast<std::uint32_t>(kept), std::memory_order_relaxed);
}

AlwaysMissing::Summary AlwaysMissing::summary() const {
    Summary out;
    out.messages = messages_.load(std::memory_order_relaxed);
    out.missing_bytes = missing_bytes_.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < count_.load(std::memory_order_relaxed); ++i) {
        const std::uint64_t range = ranges_[i].load(std::memory_order_relaxed);
        out.ranges.push_back({static_cast<std::uint32_t>(range >> 32U), static_cast<std::uint32_t>(range)});
    }
    return out;
}

void AlwaysMissing::Summary::join(const Summary& other) {
    if (other.messages == 0) return;
    if (messages == 0) {
        *this = other;
        return;
    }
    std::vector<ByteRange> both(ranges.size() + other.ranges.size());
    both.resize(intersect(ranges, other.ranges, both));
    ranges = std::move(both);
    messages += other.messages;
    missing_bytes += other.missing_bytes;
}

}  // namespace weir::stages

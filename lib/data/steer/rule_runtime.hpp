// A port's rules as rx lcores apply them, and what they count: constant during a run but for the mode, which the
// control thread sets.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/units.hpp"
#include "steer/classifier.hpp"

namespace weir::steer {

/// Which of a port's packets are classified in software.
enum class Looks : std::uint8_t {
    none,   ///< nothing to do: no rules, or weir's own steering has the same meaning
    some,   ///< one in `sample_every`: the device does what the rules say, and is watched
    every,  ///< all: some rule is done in software, or the device has not proved yet that it does it
};

/// What a rule comes to, flat.
struct Outcome {
    static constexpr std::uint32_t queues_max = 1024;

    bool drop = false;
    bool marks = false;
    bool steers = false;
    std::uint32_t mark = 0;
    std::array<std::uint64_t, queues_max / 64> queues{};  ///< a bit for each queue that it may send packets to

    [[nodiscard]] bool sends_to(std::uint32_t queue) const noexcept {
        return queue < queues_max && (queues[queue / 64] >> (queue % 64) & 1U) != 0;
    }
};
[[nodiscard]] Outcome outcome_of(const FlowRule& rule);

struct RuleRuntime {
    static constexpr std::uint32_t sample_every = 64;

    explicit RuleRuntime(std::vector<FlowRule> rules);

    Classifier classifier;
    std::vector<Outcome> outcomes;  ///< per rule
    bool marks = false;             ///< some rule marks packets
    std::atomic<Looks> looks{Looks::none};
    std::atomic<bool> verify{false};  ///< the device has rules: compare where packets arrive
};

/// What one rx lcore counted for one rule. One writer; for any thread to read.
struct alignas(core::cache_line_bytes) RuleTally {
    std::atomic<std::uint64_t> hits{0};        ///< packets that the rule took
    std::atomic<std::uint64_t> of_streams{0};  ///< of those that it dropped: they belonged to a stream
    // Where the device was to do it:
    std::atomic<std::uint64_t> right{0};   ///< packets that arrived as the rule says
    std::atomic<std::uint64_t> wrong{0};   ///< that did not: in another queue, without the mark, or at all
    std::atomic<std::uint64_t> marked{0};  ///< of the right ones, those with the rule's mark
    std::atomic<std::uint64_t> flows{0};   ///< of the right ones: a bit for each hash, modulo 64, of their addresses
};

/// The sums over rx lcores.
struct RuleCounts {
    std::uint64_t hits = 0;
    std::uint64_t of_streams = 0;
    std::uint64_t right = 0;
    std::uint64_t wrong = 0;
    std::uint64_t marked = 0;
    std::uint64_t flows = 0;

    void add(const RuleTally& tally) noexcept {
        hits += tally.hits.load(std::memory_order_relaxed);
        of_streams += tally.of_streams.load(std::memory_order_relaxed);
        right += tally.right.load(std::memory_order_relaxed);
        wrong += tally.wrong.load(std::memory_order_relaxed);
        marked += tally.marked.load(std::memory_order_relaxed);
        flows |= tally.flows.load(std::memory_order_relaxed);
    }
};

}  // namespace weir::steer

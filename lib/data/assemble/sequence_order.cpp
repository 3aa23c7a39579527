#include "assemble/sequence_order.hpp"

#include <algorithm>

#include "assemble/sequence_tracker.hpp"

namespace weir::assemble {

namespace {

bool is_ordered(const MessageConfig& config, std::uint32_t source) noexcept {
    const bool own = source >= config.own.size() || config.own[source] != 0;
    return own && source < config.in_sequence.size() && config.in_sequence[source] != 0;
}

/// Before the source counts anew.
void remember_ends(auto& source) noexcept {
    if (!source.begun) return;
    source.began_anew = true;
    source.lowest_before = source.lowest;
    source.highest_before = source.highest;
}

}  // namespace

SequenceOrder::SequenceOrder(const MessageConfig& config) {
    if (config.in_sequence.empty()) return;
    sources_.resize(config.sources);
    for (std::uint32_t i = 0; i < config.sources; ++i) {
        if (!is_ordered(config, i)) continue;
        sources_[i].owners.resize(window);
        forget(sources_[i]);
        offsets_.resize(std::size_t{2} * reach);
    }
}

std::uint64_t SequenceOrder::memory_bytes(const MessageConfig& config) noexcept {
    std::uint64_t ordered = 0;
    for (std::uint32_t i = 0; i < config.sources; ++i) ordered += is_ordered(config, i) ? 1 : 0;
    if (ordered == 0) return 0;
    return config.sources * sizeof(Source) + ordered * window * sizeof(Owner) +
           2 * std::uint64_t{reach} * sizeof(std::uint32_t);
}

/// No place holds a number that belongs there.
void SequenceOrder::forget(Source& source) noexcept {
    for (std::uint32_t i = 0; i < source.owners.size(); ++i) source.owners[i] = {.sequence = i + 1};
    source.begun = source.first_unsettled = false;
}

void SequenceOrder::begin_anew() noexcept {
    for (Source& source : sources_) {
        remember_ends(source);
        forget(source);
    }
}

void SequenceOrder::note(std::uint32_t source, const Owner& owner) noexcept {
    Source& from = sources_[source];
    const std::uint32_t sequence = owner.sequence;
    const auto step = static_cast<std::int32_t>(sequence - from.highest);
    // Far behind, or further ahead than a loss reaches: the sender has begun to count anew.
    const bool anew = !from.begun || step <= -static_cast<std::int32_t>(window) ||
                      step > static_cast<std::int32_t>(SequenceTracker::loss_max);
    if (anew) {
        remember_ends(from);
        from.begun = from.first_unsettled = true;
        from.lowest = from.highest = sequence;
    } else if (step > 0) {
        from.highest = sequence;
    } else if (const std::uint32_t before = from.lowest - sequence; before > 0 && before < window) {
        from.lowest = sequence;
    }
    from.owners[sequence % window] = owner;
}

const SequenceOrder::Owner* SequenceOrder::owner(std::uint32_t source, std::uint32_t sequence) const noexcept {
    const Owner& there = sources_[source].owners[sequence % window];
    return there.sequence == sequence ? &there : nullptr;
}

void SequenceOrder::lay_out(Message& message, ReceivedRanges& ranges) noexcept {
    if (message.range_count == 0) return;
    message.seal();
    const std::uint32_t first = message.range_data()[0].begin;
    const std::uint32_t places = message.range_data()[message.range_count - 1].end - first;
    std::fill_n(offsets_.begin(), places, 0U);
    const auto for_each_ref = [&](auto&& visit) {
        for (FragmentBlock* block = message.first_block; block != nullptr; block = block->next)
            for (std::uint32_t i = 0; i < block->count; ++i) visit(block->refs[i]);
    };
    for_each_ref([&](const FragmentRef& ref) { offsets_[ref.offset - first] += ref.bytes; });
    std::uint32_t next = 0;
    for (std::uint32_t i = 0; i < places; ++i) {
        const std::uint32_t bytes = offsets_[i];
        offsets_[i] = next;
        next += bytes;
    }
    // Parts of one packet were appended in their order.
    for_each_ref([&](FragmentRef& ref) {
        std::uint32_t& at = offsets_[ref.offset - first];
        ref.offset = at;
        at += ref.bytes;
    });
    ranges.release(message);
    message.ranges = {};
    message.ranges[0] = {0, message.received_bytes};
    message.range_count = 1;
    message.in_sequence = false;
    if (!message.complete) return;
    message.total = message.received_bytes;
    message.total_known = true;
    message.total_ns = message.last_ns;
}

}  // namespace weir::assemble

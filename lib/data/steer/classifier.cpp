#include "steer/classifier.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "steer/rss_queue.hpp"

namespace weir::steer {

Classifier::Classifier(std::vector<FlowRule> rules) : rules_(std::move(rules)), axes_(rules_), plain_(axes_) {}

std::uint32_t Classifier::match(const PacketFields& packet) const noexcept {
    if (axes_.words == 0) return none;
    // The intervals are found once, not once per word of the bits.
    constexpr std::size_t axes_max = 64;
    std::array<const std::uint64_t*, axes_max> rows;
    std::size_t count = 0;
    rows[count++] = &axes_.shapes[packet.shape.index() * axes_.words];
    for (const RuleAxes::Narrow& axis : axes_.narrow)
        rows[count++] = &axis.bits[axis.class_of[packet[axis.field].low] * axes_.words];
    std::size_t many = 0;  // axes that do not fit: looked up word by word
    for (; many < axes_.wide.size() && count < axes_max; ++many) {
        const RuleAxes::Intervals& axis = axes_.wide[many];
        const auto behind = std::ranges::upper_bound(axis.starts, packet[axis.field] & axis.mask);
        rows[count++] = &axis.bits[static_cast<std::size_t>(behind - axis.starts.begin() - 1) * axes_.words];
    }
    for (std::size_t word = 0; word < axes_.words; ++word) {
        std::uint64_t bits = rows[0][word];
        for (std::size_t i = 1; i < count; ++i) bits &= rows[i][word];
        for (std::size_t i = many; bits != 0 && i < axes_.wide.size(); ++i) {
            const auto behind =
                std::ranges::upper_bound(axes_.wide[i].starts, packet[axes_.wide[i].field] & axes_.wide[i].mask);
            bits &= axes_.wide[i]
                        .bits[static_cast<std::size_t>(behind - axes_.wide[i].starts.begin() - 1) * axes_.words + word];
        }
        if (bits != 0) return axes_.order[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
    }
    return none;
}

Verdict Classifier::classify(const PacketFields& packet) const noexcept {
    Verdict verdict;
    const std::uint32_t rule = match(packet);
    if (rule == none) return verdict;
    verdict.rule = rule;
    for (const Action& action : rules_[rule].actions) {
        if (action.kind == ActionKind::queue) verdict.queue = static_cast<std::uint16_t>(action.value);
        if (action.kind == ActionKind::rss) verdict.queue = rss_queue(action.rss, packet);
        if (action.kind == ActionKind::mark) verdict.mark = action.value;
        if (action.kind == ActionKind::drop) verdict.dropped = true;
    }
    return verdict;
}

void Classifier::match_burst(std::span<const Frame> frames, std::uint32_t* winners) const noexcept {
    if (plain_.match(frames, winners)) return;
    for (std::size_t i = 0; i < frames.size(); ++i)
        if (winners[i] == PlainFrames::undecided) winners[i] = match(read_fields({frames[i].data, frames[i].bytes}));
}

}  // namespace weir::steer

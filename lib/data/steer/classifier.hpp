// Flow rules in software, with the meaning that rte_flow gives them: one classification per packet, whatever the number
// of rules. Built once.
//
// Each header field that any rule looks at is an axis. On an axis every value belongs to a class of values that the
// same rules accept; a class has a bit per rule, in order of precedence. A packet's rules are the AND of its classes'
// bits, and the lowest bit wins (the bit vector scheme of Lakshman and Stiliadis, SIGCOMM 1998).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "steer/flow_rule.hpp"
#include "steer/packet_fields.hpp"
#include "steer/plain_frames.hpp"
#include "steer/rule_axes.hpp"

namespace weir::steer {

/// What becomes of a packet.
struct Verdict {
    std::optional<std::uint32_t> rule{};   ///< index into the rules; nothing: none matches
    std::optional<std::uint16_t> queue{};  ///< nothing: as without rules
    std::optional<std::uint32_t> mark{};
    bool dropped = false;
};

class Classifier {
public:
    /// Of several matching rules the lowest priority number wins, then the one that comes first.
    explicit Classifier(std::vector<FlowRule> rules);
    Classifier(const Classifier&) = delete;
    Classifier& operator=(const Classifier&) = delete;

    /// The winning rule, as an index into rules(), or none.
    static constexpr std::uint32_t none = PlainFrames::no_rule;
    [[nodiscard]] std::uint32_t match(const PacketFields& packet) const noexcept;
    using Frame = FrameBytes;
    /// The same for up to burst_max frames at once; `winners` has room for as many. The way of the packet path.
    static constexpr std::size_t burst_max = PlainFrames::burst_max;
    void match_burst(std::span<const Frame> frames, std::uint32_t* winners) const noexcept;
    /// The winning rule and what its actions come to.
    [[nodiscard]] Verdict classify(const PacketFields& packet) const noexcept;

    [[nodiscard]] const std::vector<FlowRule>& rules() const noexcept { return rules_; }

private:
    std::vector<FlowRule> rules_;
    RuleAxes axes_;
    PlainFrames plain_;
};

}  // namespace weir::steer

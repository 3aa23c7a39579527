// What an rx lcore does with flow rules: classifies the packets that a port or a capture has just brought, drops and
// marks as the rules say, counts, and compares where packets arrived with where the device was to put them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "port/buffers.hpp"
#include "steer/rule_runtime.hpp"

namespace weir::stages {

/// The mark that a rule gave the packet, in the device or in software.
[[nodiscard]] std::optional<std::uint32_t> mark_of(const port::Packet& packet) noexcept;

class RxRules {
public:
    struct Dropped {
        port::Packet packet;
        std::uint32_t rule = 0;
    };

    /// By the index of the port; null where it has no rules.
    explicit RxRules(std::vector<steer::RuleRuntime*> ports);

    [[nodiscard]] bool empty() const noexcept { return ports_.empty(); }
    /// A burst, from one queue of a port or (no queue) from a capture. What is not dropped moves to the front; returns
    /// how many these are. The others are in dropped() until the next call. `was_empty`: the queue has been empty since
    /// the rules came, so that it holds nothing from before.
    [[nodiscard]] std::uint32_t apply(std::span<port::Packet> packets, std::optional<std::uint16_t> queue,
                                      bool was_empty) noexcept;
    [[nodiscard]] std::span<const Dropped> dropped() const noexcept { return {dropped_.data(), dropped_count_}; }
    /// A dropped packet belonged to a stream.
    void count_of_stream(const Dropped& dropped) noexcept;

    /// What this lcore counted for the rules of a port; for any thread.
    [[nodiscard]] const steer::RuleTally* tallies(std::size_t port) const noexcept { return tallies_[port].get(); }

private:
    std::uint32_t apply_port(std::span<port::Packet> packets, std::span<port::Packet> kept, std::size_t port) noexcept;
    void verify(const steer::RuleRuntime& rules, const port::Packet& packet, const steer::Classifier::Frame& frame,
                std::uint32_t rule) noexcept;
    [[nodiscard]] steer::Classifier::Frame frame_of(const port::Packet& packet, std::size_t place) noexcept;

    static constexpr std::size_t burst = steer::Classifier::burst_max;

    std::vector<steer::RuleRuntime*> ports_;  ///< empty if none has rules
    std::vector<std::unique_ptr<steer::RuleTally[]>> tallies_;
    std::vector<std::uint32_t> until_sample_;  ///< per port: packets
    std::optional<std::uint16_t> queue_;       ///< of the burst in hand
    bool was_empty_ = false;
    std::array<Dropped, burst> dropped_;
    std::uint32_t dropped_count_ = 0;
    static constexpr std::size_t header_bytes = 128;  ///< more than rules look at: two tags, IPv6 and UDP
    std::array<std::array<std::byte, header_bytes>, burst> headers_;  ///< of frames in several buffers
};

}  // namespace weir::stages

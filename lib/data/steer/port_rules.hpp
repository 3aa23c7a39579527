// The rules of one port and who does each: the device or weir. Decides it so that the outcome is the same as if weir
// did them all, watches whether the device does what it accepted, and takes rules back that it does not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "steer/rule_device.hpp"
#include "steer/rule_runtime.hpp"

namespace weir::steer {

enum class Where : std::uint8_t {
    hardware,
    software,
    refused,  ///< by the device, and it was not to be done in software
};
[[nodiscard]] std::string_view name_of(Where where) noexcept;

/// Whether a rule in the device has been seen to work.
enum class Effective : std::uint8_t { not_asked, unverified, verified, no };
[[nodiscard]] std::string_view name_of(Effective effective) noexcept;

class PortRules {
public:
    struct Options {
        bool own = false;  ///< written by weir: its steering by streams has the same meaning
        bool fail_on_refusal = false;
        bool ask_device = true;  ///< false: all in software
        bool alone = false;      ///< the device hands over only what a rule matches
        bool spreads = false;    ///< what no rule matches is spread over the queues; else it is in queue 0
    };
    struct Entry {
        Where where = Where::software;
        std::string message;  ///< why it is not in the device, or what was seen of it; empty: nothing to say
        Effective effective = Effective::not_asked;
        std::uint64_t hits = 0;        ///< packets that weir classified so
        std::uint64_t of_streams = 0;  ///< of those that it dropped
        std::optional<std::uint64_t> hits_hardware;
    };

    /// Gives the device what it takes and what it may have; it outlives this. Null: there is none, as in a replay.
    PortRules(std::vector<FlowRule> rules, const Options& options, RuleDevice* device);
    ~PortRules();
    PortRules(const PortRules&) = delete;
    PortRules& operator=(const PortRules&) = delete;

    /// Control thread, several times a second: what rx lcores have counted since the start, per rule. Returns the rules
    /// that turned out to have no effect in the device and are done in software from now on.
    std::vector<std::uint32_t> update(std::span<const RuleCounts> counts);
    /// Takes all rules out of the device.
    void withdraw_all();

    [[nodiscard]] const std::vector<FlowRule>& rules() const noexcept { return runtime_.classifier.rules(); }
    [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
    [[nodiscard]] bool own() const noexcept { return options_.own; }
    [[nodiscard]] bool any(Where where) const noexcept;
    /// Every packet was classified from the start, so that `hits` are exact.
    [[nodiscard]] bool counted_all() const noexcept { return counted_all_; }
    [[nodiscard]] RuleRuntime& runtime() noexcept { return runtime_; }

private:
    void install();
    void give(std::uint32_t rule, std::uint32_t priority);
    /// A rule of higher precedence in software that the rule may meet, so that the device must not drop what it would.
    [[nodiscard]] std::optional<std::uint32_t> in_the_way(std::uint32_t rule) const;
    void take_back(std::uint32_t rule, std::string why);
    void take_back_drops();
    void judge(std::uint32_t rule, const RuleCounts& counts);
    void set_mode();

    Options options_;
    RuleDevice* device_;
    RuleRuntime runtime_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> order_;  ///< by precedence
    bool counted_all_ = true;
};

}  // namespace weir::steer

// Rules for a real device: a FlowRule as rte_flow has it, and the calls. DPDK 22.11, programmer's guide, chapter "Flow
// API"; what a driver makes of a rule is the driver's.
#pragma once

#include <rte_flow.h>
#include <rte_version.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "steer/rule_device.hpp"

namespace weir::port {

/// rte_flow can name a RoCEv2 queue pair.
inline constexpr bool device_knows_queue_pairs = RTE_VERSION >= RTE_VERSION_NUM(23, 7, 0, 0);

/// The attributes, items and actions of a rule, and the memory that they point into.
class RteRule {
public:
    RteRule(const steer::FlowRule& rule, std::uint32_t priority);
    RteRule(const RteRule&) = delete;
    RteRule& operator=(const RteRule&) = delete;

    /// Empty, or why rte_flow has no words for the rule.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
    [[nodiscard]] const rte_flow_attr& attributes() const noexcept { return attributes_; }
    [[nodiscard]] const rte_flow_item* items() const noexcept { return items_.data(); }
    [[nodiscard]] const rte_flow_action* actions() const noexcept { return actions_.data(); }

private:
    /// spec, last or mask of an item.
    union ItemBytes {
        rte_flow_item_eth eth;
        rte_flow_item_vlan vlan;
        rte_flow_item_ipv4 ipv4;
        rte_flow_item_ipv6 ipv6;
        rte_flow_item_udp udp;
    };
    struct ItemMemory {
        ItemBytes spec;
        ItemBytes last;
        ItemBytes mask;
    };
    struct ActionMemory {
        rte_flow_action_queue queue{};
        rte_flow_action_mark mark{};
        rte_flow_action_count count{};
        rte_flow_action_rss rss{};
        std::vector<std::uint16_t> queues;
    };

    void add_item(const steer::FlowRule& rule, rte_flow_item_type type, steer::Field first, steer::Field last);
    void add_action(const steer::Action& action);

    rte_flow_attr attributes_{};
    std::vector<rte_flow_item> items_;
    std::vector<rte_flow_action> actions_;
    std::vector<std::unique_ptr<ItemMemory>> item_memory_;
    std::vector<std::unique_ptr<ActionMemory>> action_memory_;
    std::string problem_;
};

/// A port of DPDK's.
class EthdevRules final : public steer::RuleDevice {
public:
    explicit EthdevRules(std::uint16_t port) : port_(port) {}
    ~EthdevRules() override;
    EthdevRules(const EthdevRules&) = delete;
    EthdevRules& operator=(const EthdevRules&) = delete;

    /// The device hands over only what a rule matches, or everything again. Before anything polls the port. Empty, or
    /// why not.
    [[nodiscard]] std::string isolate(bool on);

    std::string create(std::uint32_t slot, const steer::FlowRule& rule, std::uint32_t priority) override;
    void destroy(std::uint32_t slot) override;
    std::optional<std::uint64_t> hits(std::uint32_t slot) override;

private:
    struct Made {
        rte_flow* flow = nullptr;
        bool counts = false;
    };
    std::uint16_t port_;
    std::unordered_map<std::uint32_t, Made> made_;
};

}  // namespace weir::port

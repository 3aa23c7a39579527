#include "port/rte_rules.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/error.hpp"
#include "port/eal.hpp"
#include "steer/rule_relations.hpp"

namespace weir::port {

namespace {

/// Where a field lies in its item. The headers are the packet's own, in network byte order.
std::size_t offset_of(steer::Field field) noexcept {
    switch (field) {
        case steer::Field::eth_dst:
            return offsetof(rte_ether_hdr, dst_addr);
        case steer::Field::eth_src:
            return offsetof(rte_ether_hdr, src_addr);
        case steer::Field::eth_type:
            return offsetof(rte_ether_hdr, ether_type);
        case steer::Field::vlan_tci:
        case steer::Field::inner_vlan_tci:
            return offsetof(rte_vlan_hdr, vlan_tci);
        case steer::Field::vlan_inner_type:
        case steer::Field::inner_vlan_inner_type:
            return offsetof(rte_vlan_hdr, eth_proto);
        case steer::Field::ipv4_tos:
            return offsetof(rte_ipv4_hdr, type_of_service);
        case steer::Field::ipv4_ttl:
            return offsetof(rte_ipv4_hdr, time_to_live);
        case steer::Field::ipv4_proto:
            return offsetof(rte_ipv4_hdr, next_proto_id);
        case steer::Field::ipv4_src:
            return offsetof(rte_ipv4_hdr, src_addr);
        case steer::Field::ipv4_dst:
            return offsetof(rte_ipv4_hdr, dst_addr);
        case steer::Field::ipv6_proto:
            return offsetof(rte_ipv6_hdr, proto);
        case steer::Field::ipv6_hop:
            return offsetof(rte_ipv6_hdr, hop_limits);
        case steer::Field::ipv6_src:
            return offsetof(rte_ipv6_hdr, src_addr);
        case steer::Field::ipv6_dst:
            return offsetof(rte_ipv6_hdr, dst_addr);
        case steer::Field::udp_src:
            return offsetof(rte_udp_hdr, src_port);
        case steer::Field::udp_dst:
            return offsetof(rte_udp_hdr, dst_port);
        case steer::Field::roce_qp:
#if RTE_VERSION >= RTE_VERSION_NUM(23, 7, 0, 0)
            return offsetof(rte_ib_bth, dst_qp);
#endif
        case steer::Field::count_:
            break;
    }
    return 0;
}

/// ORs the value into the header: several conditions may be on parts of one field.
void put_value(void* item, steer::Field field, const steer::Wide& value) noexcept {
    auto* at = static_cast<unsigned char*>(item) + offset_of(field);
    const std::uint32_t bytes = field_bits(field) / 8;
    for (std::uint32_t i = 0; i < bytes; ++i) {
        const std::uint32_t shift = (bytes - 1 - i) * 8;
        at[i] |= static_cast<unsigned char>(shift >= 64 ? value.high >> (shift - 64) : value.low >> shift);
    }
}

std::uint64_t rss_types(const std::vector<std::string>& types) noexcept {
    if (types.empty()) return RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP;
    std::uint64_t all = 0;
    for (const std::string& type : types) {
        if (type == "ip") all |= RTE_ETH_RSS_IP;
        if (type == "udp") all |= RTE_ETH_RSS_UDP;
        if (type == "ipv4") all |= RTE_ETH_RSS_IPV4;
        if (type == "ipv4-udp") all |= RTE_ETH_RSS_NONFRAG_IPV4_UDP;
        if (type == "ipv4-frag") all |= RTE_ETH_RSS_FRAG_IPV4;
        if (type == "ipv6") all |= RTE_ETH_RSS_IPV6;
        if (type == "ipv6-udp") all |= RTE_ETH_RSS_NONFRAG_IPV6_UDP;
        if (type == "ipv6-frag") all |= RTE_ETH_RSS_FRAG_IPV6;
    }
    return all;
}

std::string refusal(const char* step, const rte_flow_error& error, int code) {
    const std::string logged = port::LogCapture::text();
    std::string text = error.message != nullptr ? error.message : rte_strerror(code < 0 ? -code : code);
    if (!logged.empty() && logged.find(text) == std::string::npos) text += fmt::format(" ({})", logged);
    return fmt::format("{}: {}", step, text);
}

}  // namespace

RteRule::RteRule(const steer::FlowRule& rule, std::uint32_t priority) {
    attributes_.ingress = 1;
    attributes_.priority = priority;
    add_item(rule, RTE_FLOW_ITEM_TYPE_ETH, steer::Field::eth_dst, steer::Field::eth_type);
    if (rule.tags > 0) add_item(rule, RTE_FLOW_ITEM_TYPE_VLAN, steer::Field::vlan_tci, steer::Field::vlan_inner_type);
    if (rule.tags > 1)
        add_item(rule, RTE_FLOW_ITEM_TYPE_VLAN, steer::Field::inner_vlan_tci, steer::Field::inner_vlan_inner_type);
    if (rule.needs_network && rule.network == steer::Network::ipv4)
        add_item(rule, RTE_FLOW_ITEM_TYPE_IPV4, steer::Field::ipv4_tos, steer::Field::ipv4_dst);
    if (rule.needs_network && rule.network == steer::Network::ipv6)
        add_item(rule, RTE_FLOW_ITEM_TYPE_IPV6, steer::Field::ipv6_proto, steer::Field::ipv6_dst);
    if (rule.needs_udp) add_item(rule, RTE_FLOW_ITEM_TYPE_UDP, steer::Field::udp_src, steer::Field::udp_dst);
    if (std::ranges::find(rule.conditions, steer::Field::roce_qp, &steer::Condition::field) != rule.conditions.end()) {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 7, 0, 0)
        add_item(rule, RTE_FLOW_ITEM_TYPE_IB_BTH, steer::Field::roce_qp, steer::Field::roce_qp);
#else
        problem_ = "a queue pair: rte_flow has no item for it before DPDK 23.07";
#endif
    }
    rte_flow_item end{};
    end.type = RTE_FLOW_ITEM_TYPE_END;
    items_.push_back(end);
    for (const steer::Action& action : rule.actions) add_action(action);
    actions_.push_back({RTE_FLOW_ACTION_TYPE_END, nullptr});
}

void RteRule::add_item(const steer::FlowRule& rule, rte_flow_item_type type, steer::Field first, steer::Field last) {
    auto memory = std::make_unique<ItemMemory>();
    std::memset(static_cast<void*>(memory.get()), 0, sizeof(ItemMemory));
    bool range = false;
    bool any = false;
    std::array<std::uint32_t, steer::field_count> conditions{};
    for (const steer::Condition& condition : rule.conditions) {
        if (condition.field < first || condition.field > last) continue;
        any = true;
        range |= condition.first != condition.last;
        ++conditions[static_cast<std::size_t>(condition.field)];
    }
    for (const steer::Condition& condition : rule.conditions) {
        if (condition.field < first || condition.field > last) continue;
        if (condition.first != condition.last && conditions[static_cast<std::size_t>(condition.field)] > 1)
            problem_ = "a range beside another condition on the same field: rte_flow has no words for it";
        put_value(&memory->spec, condition.field, condition.first);
        put_value(&memory->last, condition.field, condition.last);
        put_value(&memory->mask, condition.field, condition.mask);
    }
    rte_flow_item item{};
    item.type = type;
    if (any) {
        item.spec = &memory->spec;
        item.last = range ? &memory->last : nullptr;
        item.mask = &memory->mask;
    }
    items_.push_back(item);
    item_memory_.push_back(std::move(memory));
}

void RteRule::add_action(const steer::Action& action) {
    auto memory = std::make_unique<ActionMemory>();
    rte_flow_action out{};
    switch (action.kind) {
        case steer::ActionKind::queue:
            memory->queue.index = static_cast<std::uint16_t>(action.value);
            out = {RTE_FLOW_ACTION_TYPE_QUEUE, &memory->queue};
            break;
        case steer::ActionKind::mark:
            memory->mark.id = action.value;
            out = {RTE_FLOW_ACTION_TYPE_MARK, &memory->mark};
            break;
        case steer::ActionKind::drop:
            out = {RTE_FLOW_ACTION_TYPE_DROP, nullptr};
            break;
        case steer::ActionKind::count:
            out = {RTE_FLOW_ACTION_TYPE_COUNT, &memory->count};
            break;
        case steer::ActionKind::rss:
            memory->queues = action.rss.queues;
            memory->rss.func = RTE_ETH_HASH_FUNCTION_DEFAULT;
            memory->rss.types = rss_types(action.rss.types);
            memory->rss.queue_num = static_cast<std::uint32_t>(memory->queues.size());
            memory->rss.queue = memory->queues.data();
            out = {RTE_FLOW_ACTION_TYPE_RSS, &memory->rss};
            break;
    }
    actions_.push_back(out);
    action_memory_.push_back(std::move(memory));
}

EthdevRules::~EthdevRules() {
    rte_flow_error error{};
    if (!made_.empty()) static_cast<void>(::rte_flow_flush(port_, &error));
}

std::string EthdevRules::isolate(bool on) {
    const port::LogCapture log;
    rte_flow_error error{};
    const int rc = ::rte_flow_isolate(port_, on ? 1 : 0, &error);
    if (rc == 0) return {};
    // Some drivers want the port stopped for it; others do not survive that, and have no isolation either.
    const int reason = rc < 0 ? -rc : rc;
    if (reason == ENOSYS || reason == ENOTSUP) return refusal("isolate", error, rc);
    if (const int stopped = ::rte_eth_dev_stop(port_); stopped != 0) return refusal("isolate", error, rc);
    error = {};
    const int again = ::rte_flow_isolate(port_, on ? 1 : 0, &error);
    std::string text = again == 0 ? std::string() : refusal("isolate", error, again);
    if (const int started = ::rte_eth_dev_start(port_); started != 0)
        throw core::RunError(fmt::format("starting the port again after isolation failed: {}", rte_strerror(-started)));
    return text;
}

std::string EthdevRules::create(std::uint32_t slot, const steer::FlowRule& rule, std::uint32_t priority) {
    const RteRule rte(rule, priority);
    if (!rte.problem().empty()) return rte.problem();
    const port::LogCapture log;
    rte_flow_error error{};
    if (const int rc = ::rte_flow_validate(port_, &rte.attributes(), rte.items(), rte.actions(), &error); rc != 0)
        return refusal("validate", error, rc);
    error = {};
    rte_flow* flow = ::rte_flow_create(port_, &rte.attributes(), rte.items(), rte.actions(), &error);
    if (flow == nullptr) return refusal("create", error, rte_errno);
    made_[slot] = {flow, has_action(rule, steer::ActionKind::count)};
    return {};
}

void EthdevRules::destroy(std::uint32_t slot) {
    const auto found = made_.find(slot);
    if (found == made_.end()) return;
    rte_flow_error error{};
    static_cast<void>(::rte_flow_destroy(port_, found->second.flow, &error));
    made_.erase(found);
}

std::optional<std::uint64_t> EthdevRules::hits(std::uint32_t slot) {
    const auto found = made_.find(slot);
    if (found == made_.end() || !found->second.counts) return std::nullopt;
    rte_flow_action_count conf{};
    const rte_flow_action action{RTE_FLOW_ACTION_TYPE_COUNT, &conf};
    rte_flow_query_count answer{};
    rte_flow_error error{};
    if (::rte_flow_query(port_, found->second.flow, &action, &answer, &error) != 0 || answer.hits_set == 0)
        return std::nullopt;
    return answer.hits;
}

}  // namespace weir::port

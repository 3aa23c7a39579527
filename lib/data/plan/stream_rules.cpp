#include "plan/stream_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "plan/plan.hpp"
#include "plan/setup.hpp"
#include "port/rte_rules.hpp"
#include "steer/rule_parser.hpp"
#include "steer/rule_relations.hpp"
#include "wire/network.hpp"
#include "wire/roce.hpp"

namespace weir::plan {

namespace {

using steer::Field;
using steer::Network;
using steer::Wide;

Wide wide_of(const config::IpAddress& address) {
    if (!address.v6) return {0, address.v4()};
    Wide value;
    for (std::size_t i = 0; i < 16; ++i)
        (i < 8 ? value.high : value.low) = (i < 8 ? value.high : value.low) << 8U | address.bytes[i];
    return value;
}

void exactly(steer::FlowRule& rule, Field field, const Wide& value) {
    rule.conditions.push_back({field, value, value, steer::low_bits(steer::field_bits(field))});
}

steer::FlowRule rule_to(std::uint16_t queue) {
    steer::FlowRule rule;
    rule.actions.push_back({steer::ActionKind::queue, queue, {}});
    return rule;
}

std::vector<config::IpAddress> of_kind(const std::vector<config::IpAddress>& addresses, bool v6) {
    std::vector<config::IpAddress> found;
    std::ranges::copy_if(addresses, std::back_inserter(found), [&](const config::IpAddress& a) { return a.v6 == v6; });
    return found;
}

/// Makes the rules of one port.
class OwnRules {
public:
    OwnRules(const config::RunConfig& config, std::uint32_t port, const std::vector<std::uint16_t>& owners,
             const Placement& placement)
        : config_(config), port_(port), owners_(owners), placement_(placement) {}

    std::vector<steer::FlowRule> make() {
        if (config_.ports[port_].isolated) add_neighbours();
        for (const config::StreamConfig& stream : config_.streams)
            if (stream.port == port_) add_stream(stream);
        for (std::size_t i = 0; i < rules_.size(); ++i) rules_[i].line = static_cast<std::uint32_t>(i + 1);
        return std::move(rules_);
    }

private:
    /// A queue that the rx lcore polls; those of one lcore take turns. Nothing if it polls none of this port.
    std::optional<std::uint16_t> queue_for(std::uint16_t owner) {
        std::vector<std::uint16_t> queues;
        for (std::uint16_t queue = 0; queue < config_.ports[port_].queues; ++queue)
            if (placement_.rx_of_queue(port_, queue) == owner) queues.push_back(queue);
        if (queues.empty()) return std::nullopt;
        taken_.resize(std::max<std::size_t>(taken_.size(), owner + 1U));
        return queues[taken_[owner]++ % queues.size()];
    }

    /// What an isolated port still has to hear to be found: ARP, ping, neighbour solicitations.
    void add_neighbours() {
        if (config_.ports[port_].address.empty()) return;
        constexpr std::uint8_t icmp = wire::ip_protocol_icmp;
        steer::FlowRule arp = rule_to(0);
        exactly(arp, Field::eth_type, {0, wire::ethertype_arp});
        rules_.push_back(arp);
        for (const auto& [network, field, protocol] :
             {std::tuple{Network::ipv4, Field::ipv4_proto, icmp},
              std::tuple{Network::ipv6, Field::ipv6_proto, wire::ip_protocol_icmpv6}}) {
            steer::FlowRule ping = rule_to(0);
            ping.tags_exact = ping.needs_network = true;
            ping.network = network;
            exactly(ping, field, {0, protocol});
            rules_.push_back(ping);
        }
    }

    void add_stream(const config::StreamConfig& stream) {
        if (stream.transport == config::Transport::roce) {
            add_roce(stream);
            return;
        }
        for (std::size_t i = 0; i < stream.udp_dst.size(); ++i) {
            const std::size_t source = stream.first_source + (stream.source_by == config::SourceBy::port ? i : 0);
            if (const auto queue = queue_for(owners_[source]); queue.has_value())
                add_addresses(stream, stream.udp_dst[i], *queue);
        }
    }

    /// By queue pair where devices can be asked for it; otherwise by address, and by queue pair in software.
    void add_roce(const config::StreamConfig& stream) {
        const std::size_t rules = port::device_knows_queue_pairs ? stream.qp.size() : 1;
        for (std::size_t i = 0; i < rules; ++i) {
            if (port::device_knows_queue_pairs) qp_ = stream.qp[i];
            if (const auto queue = queue_for(owners_[stream.first_source + i]); queue.has_value())
                add_addresses(stream, wire::roce_port, *queue);
        }
        qp_.reset();
    }

    void add_addresses(const config::StreamConfig& stream, std::uint16_t udp_dst, std::uint16_t queue) {
        const bool any = stream.src.empty() && stream.dst.empty();
        const bool port_v6 = config_.ports[port_].address.find(':') != std::string::npos;
        for (const bool v6 : {false, true}) {
            const std::vector<config::IpAddress> src = of_kind(stream.src, v6);
            const std::vector<config::IpAddress> dst = of_kind(stream.dst, v6);
            // A list with addresses of the other kind only matches none of this one.
            const bool possible = (stream.src.empty() || !src.empty()) && (stream.dst.empty() || !dst.empty());
            if (!possible || (any && v6 != port_v6)) continue;
            // A rule that is wider than its stream steers what is no stream's; a table full of rules steers nothing.
            constexpr std::size_t combinations_max = 256;
            const bool many = src.size() * std::max<std::size_t>(1, dst.size()) > combinations_max;
            add_combinations(v6, many ? std::vector<config::IpAddress>{} : src,
                             many ? std::vector<config::IpAddress>{} : dst, udp_dst, queue);
        }
    }

    void add_combinations(bool v6, const std::vector<config::IpAddress>& src, const std::vector<config::IpAddress>& dst,
                          std::uint16_t udp_dst, std::uint16_t queue) {
        for (std::size_t s = 0; s < std::max<std::size_t>(1, src.size()); ++s)
            for (std::size_t d = 0; d < std::max<std::size_t>(1, dst.size()); ++d) {
                if (rules_.size() == steer::rules_max) return;
                steer::FlowRule rule = rule_to(queue);
                rule.tags_exact = rule.needs_network = rule.needs_udp = true;
                rule.network = v6 ? Network::ipv6 : Network::ipv4;
                if (!src.empty()) exactly(rule, v6 ? Field::ipv6_src : Field::ipv4_src, wide_of(src[s]));
                if (!dst.empty()) exactly(rule, v6 ? Field::ipv6_dst : Field::ipv4_dst, wide_of(dst[d]));
                exactly(rule, Field::udp_dst, {0, udp_dst});
                if (qp_.has_value()) exactly(rule, Field::roce_qp, {0, *qp_});
                // Two RoCE streams that only queue pairs tell apart: one rule for both.
                const bool there = std::ranges::any_of(
                    rules_, [&](const steer::FlowRule& other) { return other.conditions == rule.conditions; });
                if (!there) rules_.push_back(std::move(rule));
            }
    }

    const config::RunConfig& config_;
    std::uint32_t port_;
    const std::vector<std::uint16_t>& owners_;
    const Placement& placement_;
    std::optional<std::uint32_t> qp_;   ///< of the rules being made
    std::vector<std::uint32_t> taken_;  ///< per rx lcore: rules that send to it
    std::vector<steer::FlowRule> rules_;
};

/// What is known of a stream's packets before one has come.
steer::PartialPacket packet_of(const config::StreamConfig& stream, std::uint16_t udp_dst, bool v6, std::uint8_t tags,
                               const config::IpAddress* src, const config::IpAddress* dst,
                               std::optional<std::uint32_t> qp) {
    steer::PartialPacket packet;
    if (qp.has_value()) packet.set(Field::roce_qp, {0, *qp});
    packet.shape = {tags, v6 ? Network::ipv6 : Network::ipv4, true};
    if (tags == 0) packet.set(Field::eth_type, {0, v6 ? wire::ethertype_ipv6 : wire::ethertype_ipv4});
    packet.set(v6 ? Field::ipv6_proto : Field::ipv4_proto, {0, wire::ip_protocol_udp});
    packet.set(Field::udp_dst, {0, stream.transport == config::Transport::roce ? wire::roce_port : udp_dst});
    if (src != nullptr) packet.set(v6 ? Field::ipv6_src : Field::ipv4_src, wide_of(*src));
    if (dst != nullptr) packet.set(v6 ? Field::ipv6_dst : Field::ipv4_dst, wide_of(*dst));
    return packet;
}

/// The rx lcores that the rules send packets of this UDP port (or RoCE stream) to, of all its addresses and of frames
/// with that many tags; false if one of them cannot be known.
bool collect_lcores(const config::RunConfig& config, const config::StreamConfig& stream, std::uint16_t udp_dst,
                    std::uint8_t tags, const Placement& placement, std::optional<std::uint32_t> qp,
                    std::vector<std::uint32_t>& lcores) {
    const config::PortConfig& port = config.ports[stream.port];
    const auto choices = [](const std::vector<config::IpAddress>& addresses) {
        std::vector<const config::IpAddress*> all;
        for (const config::IpAddress& address : addresses) all.push_back(&address);
        if (all.empty()) all.push_back(nullptr);
        return all;
    };
    for (const config::IpAddress* src : choices(stream.src))
        for (const config::IpAddress* dst : choices(stream.dst)) {
            if (src != nullptr && dst != nullptr && src->v6 != dst->v6) continue;
            const bool v6 = src != nullptr ? src->v6 : dst != nullptr && dst->v6;
            const auto queue = steer::queue_of(port.rules, packet_of(stream, udp_dst, v6, tags, src, dst, qp));
            if (!queue.has_value()) return false;
            lcores.push_back(placement.rx_of_queue(stream.port, *queue));
        }
    return true;
}

/// The one lcore for these UDP ports; untagged frames decide, and tagged ones only where no rule is for those.
std::optional<std::uint16_t> lcore_of(const config::RunConfig& config, const config::StreamConfig& stream,
                                      std::span<const std::uint16_t> udp_dst, const Placement& placement,
                                      std::optional<std::uint32_t> qp = std::nullopt) {
    for (std::uint8_t tags = 0; tags < 3; ++tags) {
        std::vector<std::uint32_t> lcores;
        const bool known = std::ranges::all_of(udp_dst, [&](std::uint16_t port) {
            return collect_lcores(config, stream, port, tags, placement, qp, lcores);
        });
        if (!known || lcores.empty()) continue;
        const bool one = std::ranges::all_of(lcores, [&](std::uint32_t lcore) { return lcore == lcores.front(); });
        return one ? std::optional(static_cast<std::uint16_t>(lcores.front())) : std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

std::vector<steer::FlowRule> make_own_rules(const config::RunConfig& config, std::uint32_t port,
                                            const std::vector<std::uint16_t>& owners, const Placement& placement) {
    if (!no_rules_reason(config.ports[port]).empty()) return {};
    return OwnRules(config, port, owners, placement).make();
}

std::string_view no_rules_reason(const config::PortConfig& port) {
    if (!port.flows.empty()) return "its rules are those of its file";
    if (port.steer == config::SteerMode::software) return "steer = \"software\": weir steers by its streams";
    if (port.queues == 1 && port.steer == config::SteerMode::automatic && !port.isolated)
        return "one queue: every packet goes there without a rule";
    return {};
}

void own_by_rules(const config::RunConfig& config, const Placement& placement, std::vector<std::uint16_t>& owners) {
    constexpr std::uint16_t roce[] = {wire::roce_port};
    for (const config::StreamConfig& stream : config.streams) {
        if (config.ports[stream.port].rules.empty()) continue;
        const bool by_port = stream.transport == config::Transport::udp && stream.source_by == config::SourceBy::port;
        if (by_port) {
            for (std::size_t i = 0; i < stream.udp_dst.size(); ++i)
                if (const auto lcore = lcore_of(config, stream, {&stream.udp_dst[i], 1}, placement); lcore.has_value())
                    owners[stream.first_source + i] = *lcore;
            continue;
        }
        if (stream.transport == config::Transport::roce) {
            for (std::size_t i = 0; i < stream.qp.size(); ++i)
                if (const auto lcore = lcore_of(config, stream, roce, placement, stream.qp[i]); lcore.has_value())
                    owners[stream.first_source + i] = *lcore;
            continue;
        }
        const auto lcore = lcore_of(config, stream, stream.udp_dst, placement);
        for (std::uint32_t i = 0; lcore.has_value() && i < stream.source_count; ++i)
            owners[stream.first_source + i] = *lcore;
    }
}

std::string flow_rules_text(const config::RunConfig& config, std::string_view port_name) {
    const std::vector<stages::StreamRuntime> streams = make_streams(config);
    PlanInput input;
    look_at_machine(config, input);
    const Plan plan = make_plan(config, make_geometry(config, streams), input);
    const Placement& placement = plan.placement;
    const std::vector<std::uint16_t> owners = make_owners(config, placement);
    std::string text;
    std::string names;
    for (std::uint32_t i = 0; i < config.ports.size(); ++i) {
        const config::PortConfig& port = config.ports[i];
        names += (names.empty() ? "" : ", ") + port.name;
        if (!port_name.empty() && port.name != port_name) continue;
        if (!port.flows.empty()) {
            text += fmt::format("# port {}: the rules of {}\n", port.name, port.flows);
            for (const steer::FlowRule& rule : port.rules) text += steer::to_text(rule) + "\n";
            continue;
        }
        const std::vector<steer::FlowRule> rules = make_own_rules(config, i, owners, placement);
        const std::string_view reason = no_rules_reason(port);
        text += fmt::format("# port {}: {}\n", port.name,
                            !reason.empty()
                                ? std::string(reason)
                                : fmt::format("each stream to a queue of its rx lcore, of {}", placement.rx.size()));
        for (const steer::FlowRule& rule : rules) text += steer::to_text(rule) + "\n";
    }
    if (text.empty()) throw core::UsageError(fmt::format("--port: found '{}'; accepted: {}", port_name, names));
    return text;
}

}  // namespace weir::plan

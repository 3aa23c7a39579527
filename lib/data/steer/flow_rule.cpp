#include "steer/flow_rule.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace weir::steer {

namespace {

struct FieldText {
    std::uint32_t bits;
    const char* item;
    const char* name;
};

constexpr std::array<FieldText, field_count> fields{{
    {48, "eth", "dst"},         {48, "eth", "src"},   {16, "eth", "type"},        {16, "vlan", "tci"},
    {16, "vlan", "inner_type"}, {16, "vlan", "tci"},  {16, "vlan", "inner_type"}, {8, "ipv4", "tos"},
    {8, "ipv4", "ttl"},         {8, "ipv4", "proto"}, {32, "ipv4", "src"},        {32, "ipv4", "dst"},
    {8, "ipv6", "proto"},       {8, "ipv6", "hop"},   {128, "ipv6", "src"},       {128, "ipv6", "dst"},
    {16, "udp", "src"},         {16, "udp", "dst"},   {24, "ib_bth", "dst_qp"},
}};

const FieldText& text_of(Field field) noexcept {
    return fields[static_cast<std::size_t>(field)];
}

std::string value_text(Field field, const Wide& value) {
    const std::uint32_t bits = field_bits(field);
    std::array<unsigned char, 16> bytes{};
    for (std::uint32_t i = 0; i < bits / 8; ++i) {
        const std::uint32_t from_end = bits / 8 - 1 - i;
        bytes[i] =
            static_cast<unsigned char>((from_end >= 8 ? value.high >> (from_end - 8) * 8 : value.low >> from_end * 8));
    }
    std::array<char, INET6_ADDRSTRLEN> address{};
    if (bits == 128) return ::inet_ntop(AF_INET6, bytes.data(), address.data(), address.size());
    if (bits == 32) return ::inet_ntop(AF_INET, bytes.data(), address.data(), address.size());
    if (bits == 48)
        return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", bytes[0], bytes[1], bytes[2], bytes[3],
                           bytes[4], bytes[5]);
    return std::to_string(value.low);
}

/// What a condition is on: a field, or a part of the tag. Conditions on two parts would be one if they had one name.
struct Part {
    const char* name;
    std::uint32_t bits;
    std::uint32_t shift;
};

/// Words of an item that have been printed: a word stands for one condition, and a second one would replace it.
using Taken = std::set<std::string_view>;

Part part_of(const Condition& condition, Taken& taken) {
    if (condition.field == Field::vlan_tci || condition.field == Field::inner_vlan_tci)
        for (const Part& part : {Part{"vid", 12, 0}, Part{"dei", 1, 12}, Part{"pcp", 3, 13}})
            if (condition.mask.low >> part.shift << part.shift == condition.mask.low &&
                condition.mask.low >> part.shift <= low_bits(part.bits).low && taken.insert(part.name).second)
                return part;
    return {text_of(condition.field).name, field_bits(condition.field), 0};
}

std::string condition_text(const Condition& condition, Taken& taken) {
    const Part part = part_of(condition, taken);
    const auto text_of_value = [&](const Wide& value) {
        return part.shift > 0 ? std::to_string(value.low >> part.shift) : value_text(condition.field, value);
    };
    const Wide mask = part.shift > 0 ? Wide{0, condition.mask.low >> part.shift} : condition.mask;
    const std::string first = text_of_value(condition.first);
    if (mask == low_bits(part.bits) && condition.first == condition.last)
        return fmt::format(" {} is {}", part.name, first);
    std::string text = fmt::format(" {} spec {}", part.name, first);
    if (condition.first != condition.last) text += fmt::format(" {} last {}", part.name, text_of_value(condition.last));
    return text + fmt::format(" {} mask {}", part.name, text_of_value(condition.mask));
}

std::string item_text(const FlowRule& rule, const char* item, Field first, Field last) {
    std::string text = item;
    Taken taken;
    for (const Condition& condition : rule.conditions)
        if (condition.field >= first && condition.field <= last) text += condition_text(condition, taken);
    return text + " / ";
}

std::string action_text(const Action& action) {
    switch (action.kind) {
        case ActionKind::queue:
            return fmt::format("queue index {}", action.value);
        case ActionKind::mark:
            return fmt::format("mark id {}", action.value);
        case ActionKind::drop:
            return "drop";
        case ActionKind::count:
            return "count";
        case ActionKind::rss:
            break;
    }
    std::string text = "rss";
    if (!action.rss.types.empty()) {
        text += " types";
        for (const std::string& type : action.rss.types) text += " " + type;
        text += " end";
    }
    text += " queues";
    for (const std::uint16_t queue : action.rss.queues) text += fmt::format(" {}", queue);
    return text + " end";
}

}  // namespace

std::uint32_t field_bits(Field field) noexcept {
    return text_of(field).bits;
}

std::string to_text(const FlowRule& rule) {
    std::string text = fmt::format("flow create {} ingress", rule.port);
    if (rule.priority != 0) text = fmt::format("flow create {} priority {} ingress", rule.port, rule.priority);
    text += " pattern " + item_text(rule, "eth", Field::eth_dst, Field::eth_type);
    if (rule.tags > 0) text += item_text(rule, "vlan", Field::vlan_tci, Field::vlan_inner_type);
    if (rule.tags > 1) text += item_text(rule, "vlan", Field::inner_vlan_tci, Field::inner_vlan_inner_type);
    if (rule.needs_network)
        text += rule.network == Network::ipv4 ? item_text(rule, "ipv4", Field::ipv4_tos, Field::ipv4_dst)
                                              : item_text(rule, "ipv6", Field::ipv6_proto, Field::ipv6_dst);
    if (rule.needs_udp) text += item_text(rule, "udp", Field::udp_src, Field::udp_dst);
    if (std::ranges::find(rule.conditions, Field::roce_qp, &Condition::field) != rule.conditions.end())
        text += item_text(rule, "ib_bth", Field::roce_qp, Field::roce_qp);
    text += "end actions ";
    for (const Action& action : rule.actions) text += action_text(action) + " / ";
    return text + "end";
}

}  // namespace weir::steer

// Rules as a table to look packets up in: the header fields that any of them looks at, and for each class of values of
// a field the rules that accept it, a bit per rule in order of precedence. Built once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "steer/flow_rule.hpp"
#include "steer/packet_fields.hpp"

namespace weir::steer {

struct RuleAxes {
    /// A field of up to 16 bits: its class by a table.
    struct Narrow {
        Field field{};
        std::vector<std::uint16_t> class_of;
        std::vector<std::uint64_t> bits;  ///< class after class
    };
    /// A wide field under one mask: its class by the interval that the masked value lies in.
    struct Intervals {
        Field field{};
        Wide mask{};
        std::vector<Wide> starts;
        std::vector<std::uint64_t> bits;  ///< interval after interval
    };

    explicit RuleAxes(std::span<const FlowRule> rules);

    std::vector<std::uint32_t> order;   ///< by precedence: index into the rules
    std::size_t words;                  ///< of 64 rules each, that a row of bits has
    std::vector<std::uint64_t> shapes;  ///< bits of each Shape::index()
    std::vector<Narrow> narrow;
    std::vector<Intervals> wide;

private:
    void add_field(std::span<const FlowRule> rules, Field field);
    void add_narrow(std::span<const FlowRule> rules, Field field);
    void add_wide(std::span<const FlowRule> rules, Field field, const Wide& mask);
};

}  // namespace weir::steer

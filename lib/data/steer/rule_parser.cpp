#include "steer/rule_parser.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/error.hpp"
#include "wire/roce.hpp"

namespace weir::steer {

namespace {

struct Token {
    std::string_view text;
    std::size_t column = 0;  ///< from 1
};

std::vector<Token> split(std::string_view line) {
    std::vector<Token> tokens;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t begin = line.find_first_not_of(" \t\r", at);
        if (begin == std::string_view::npos) break;
        const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
        tokens.push_back({line.substr(begin, end - begin), begin + 1});
        at = end;
    }
    return tokens;
}

enum class FieldKind : std::uint8_t { number, mac, ipv4, ipv6 };

/// One word after an item. Several words may name parts of one field (`vid` and `pcp` of the tag).
struct FieldName {
    std::string_view item;
    std::string_view name;
    Field field;
    FieldKind kind = FieldKind::number;
    std::uint32_t bits = 0;   ///< of the part
    std::uint32_t shift = 0;  ///< of the part in the field
};

constexpr std::array field_names{
    FieldName{"eth", "dst", Field::eth_dst, FieldKind::mac, 48},
    FieldName{"eth", "src", Field::eth_src, FieldKind::mac, 48},
    FieldName{"eth", "type", Field::eth_type, FieldKind::number, 16},
    FieldName{"vlan", "tci", Field::vlan_tci, FieldKind::number, 16},
    FieldName{"vlan", "vid", Field::vlan_tci, FieldKind::number, 12},
    FieldName{"vlan", "pcp", Field::vlan_tci, FieldKind::number, 3, 13},
    FieldName{"vlan", "dei", Field::vlan_tci, FieldKind::number, 1, 12},
    FieldName{"vlan", "inner_type", Field::vlan_inner_type, FieldKind::number, 16},
    FieldName{"ipv4", "tos", Field::ipv4_tos, FieldKind::number, 8},
    FieldName{"ipv4", "ttl", Field::ipv4_ttl, FieldKind::number, 8},
    FieldName{"ipv4", "proto", Field::ipv4_proto, FieldKind::number, 8},
    FieldName{"ipv4", "src", Field::ipv4_src, FieldKind::ipv4, 32},
    FieldName{"ipv4", "dst", Field::ipv4_dst, FieldKind::ipv4, 32},
    FieldName{"ipv6", "proto", Field::ipv6_proto, FieldKind::number, 8},
    FieldName{"ipv6", "hop", Field::ipv6_hop, FieldKind::number, 8},
    FieldName{"ipv6", "src", Field::ipv6_src, FieldKind::ipv6, 128},
    FieldName{"ipv6", "dst", Field::ipv6_dst, FieldKind::ipv6, 128},
    FieldName{"udp", "src", Field::udp_src, FieldKind::number, 16},
    FieldName{"udp", "dst", Field::udp_dst, FieldKind::number, 16},
    FieldName{"ib_bth", "dst_qp", Field::roce_qp, FieldKind::number, 24},
};

std::string names_of(std::string_view item) {
    std::string names;
    for (const FieldName& known : field_names)
        if (known.item == item) names += (names.empty() ? "" : ", ") + std::string(known.name);
    return names;
}

Wide shifted(const Wide& value, std::uint32_t shift) noexcept {
    if (shift == 0) return value;
    return {0, value.low << shift};  // only parts of narrow fields are shifted
}

std::optional<std::uint64_t> number_of(std::string_view text) noexcept {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
    return value;
}

std::optional<Wide> mac_of(std::string_view text) noexcept {
    Wide value;
    for (int byte = 0; byte < 6; ++byte) {
        const std::size_t end = byte < 5 ? text.find(':') : text.size();
        if (end == std::string_view::npos || end == 0 || end > 2) return std::nullopt;
        unsigned part = 0;
        const auto [at, error] = std::from_chars(text.data(), text.data() + end, part, 16);
        if (error != std::errc{} || at != text.data() + end) return std::nullopt;
        value.low = value.low << 8U | part;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return value;
}

std::optional<Wide> address_of(std::string_view text, bool v6) {
    std::array<unsigned char, 16> bytes{};
    if (::inet_pton(v6 ? AF_INET6 : AF_INET, std::string(text).c_str(), bytes.data()) != 1) return std::nullopt;
    Wide value;
    for (std::size_t i = 0; i < (v6 ? 16U : 4U); ++i) {
        value.high = value.high << 8U | value.low >> 56U;
        value.low = value.low << 8U | bytes[i];
    }
    return value;
}

/// One line, word by word.
class LineParser {
public:
    LineParser(std::string_view file, std::uint32_t line, std::string_view text)
        : file_(file), line_(line), end_column_(text.size() + 1), tokens_(split(text)) {}

    [[nodiscard]] bool empty() const noexcept { return tokens_.empty(); }

    FlowRule parse() {
        rule_.line = line_;
        expect("flow");
        expect("create");
        rule_.port = static_cast<std::uint32_t>(number("a port number", 0xffff));
        attributes();
        pattern();
        actions();
        if (at_ != tokens_.size()) fail("the end of the line");
        finish();
        return rule_;
    }

private:
    /// Conditions on one part of a field, until the item ends.
    struct Part {
        const FieldName* name = nullptr;
        std::optional<Wide> spec{};
        std::optional<Wide> last{};
        std::optional<Wide> mask{};
        std::size_t column = 0;
    };

    [[noreturn]] void fail(const std::string& expected) const {
        const bool end = at_ >= tokens_.size();
        throw core::UsageError(
            fmt::format("{}:{}:{}: found {}; expected: {}", file_, line_, end ? end_column_ : tokens_[at_].column,
                        end ? "the end of the line" : fmt::format("'{}'", tokens_[at_].text), expected));
    }
    [[nodiscard]] std::string_view peek() const noexcept { return at_ < tokens_.size() ? tokens_[at_].text : ""; }
    bool accept(std::string_view word) noexcept {
        if (peek() != word) return false;
        ++at_;
        return true;
    }
    void expect(std::string_view word) {
        if (!accept(word)) fail(fmt::format("'{}'", word));
    }
    std::uint64_t number(const std::string& what, std::uint64_t most) {
        const auto value = number_of(peek());
        if (!value.has_value() || *value > most) fail(fmt::format("{}, 0 to {}", what, most));
        ++at_;
        return *value;
    }

    void attributes() {
        bool ingress = false;
        while (!accept("pattern")) {
            if (accept("ingress"))
                ingress = true;
            else if (accept("priority"))
                rule_.priority = static_cast<std::uint32_t>(number("a priority", 0xffffffff));
            else
                fail(ingress ? "'priority', 'pattern' (groups, egress and transfer are not followed)"
                             : "'ingress', 'priority', 'pattern' (groups, egress and transfer are not followed)");
        }
        if (!ingress) {
            --at_;
            fail("'ingress' before 'pattern'");
        }
    }

    void pattern() {
        bool first = true;
        while (!accept("end")) {
            item(first);
            first = false;
            if (peek() == "/") {
                ++at_;
                continue;
            }
            if (current_.empty()) fail("'/'");
            fail(fmt::format("'/', or one of: {}", names_of(current_)));
        }
        // No item at all is any packet, as `eth` alone.
    }

    void item(bool first) {
        const std::string_view word = peek();
        const bool network = rule_.needs_network;
        if (word == "eth" && first) {
        } else if (word == "vlan" && !network && !first && rule_.tags < 2) {
            ++rule_.tags;
        } else if ((word == "ipv4" || word == "ipv6") && !network) {
            rule_.needs_network = rule_.tags_exact = true;
            rule_.network = word == "ipv4" ? Network::ipv4 : Network::ipv6;
        } else if (word == "udp" && network && !rule_.needs_udp) {
            rule_.needs_udp = true;
        } else if (word == "ib_bth" && current_ == "udp") {
            check_roce_port();
        } else {
            fail(next_items(first));
        }
        current_ = word;
        ++at_;
        fields();
        if (word == "ib_bth") finish_roce();
    }

    [[nodiscard]] bool is_roce_port(const Condition& condition) const noexcept {
        return condition == Condition{Field::udp_dst, {0, wire::roce_port}, {0, wire::roce_port}, low_bits(16)};
    }

    /// The header that `ib_bth` looks at is there after UDP port 4791 and nowhere else.
    void check_roce_port() const {
        for (const Condition& condition : rule_.conditions)
            if (condition.field == Field::udp_dst && !is_roce_port(condition))
                fail("'end'; 'ib_bth' follows a udp whose dst is 4791, or is not said");
    }

    void finish_roce() {
        const auto qp = std::ranges::find(rule_.conditions, Field::roce_qp, &Condition::field);
        if (qp == rule_.conditions.end()) fail("'dst_qp' and a value");
        if (qp->first == Wide{}) fail("a queue pair above 0 before this, because there is no other in RoCEv2");
        if (std::ranges::find(rule_.conditions, Field::udp_dst, &Condition::field) == rule_.conditions.end())
            rule_.conditions.push_back({Field::udp_dst, {0, wire::roce_port}, {0, wire::roce_port}, low_bits(16)});
    }

    [[nodiscard]] std::string next_items(bool first) const {
        if (first) return "an item: eth, ipv4, ipv6";
        if (current_ == "ib_bth") return "'end' (no item follows ib_bth)";
        if (rule_.needs_udp) return "'ib_bth' or 'end'";
        if (rule_.needs_network) return "'udp' or 'end'";
        return rule_.tags < 2 ? "'vlan', 'ipv4', 'ipv6' or 'end'" : "'ipv4', 'ipv6' or 'end' (two tags are followed)";
    }

    void fields() {
        std::vector<Part> parts;
        while (at_ < tokens_.size() && peek() != "/") {
            const auto* known = std::ranges::find_if(
                field_names, [&](const FieldName& name) { return name.item == current_ && name.name == peek(); });
            if (known == field_names.end()) fail(fmt::format("'/', or one of: {}", names_of(current_)));
            auto part = std::ranges::find(parts, known, &Part::name);
            if (part == parts.end()) part = parts.insert(parts.end(), {.name = known, .column = tokens_[at_].column});
            ++at_;
            match(*part);
        }
        for (const Part& part : parts) add_condition(part);
    }

    void match(Part& part) {
        const std::string_view word = peek();
        const bool address = part.name->kind != FieldKind::number;
        if (word == "is") {
            ++at_;
            part.spec = value(*part.name);
            part.mask = low_bits(part.name->bits);
        } else if (word == "spec") {
            ++at_;
            part.spec = value(*part.name);
        } else if (word == "last") {
            ++at_;
            part.last = value(*part.name);
        } else if (word == "mask") {
            ++at_;
            part.mask = value(*part.name);
        } else if (word == "prefix" && address) {
            ++at_;
            const auto bits = static_cast<std::uint32_t>(number("a prefix length", part.name->bits));
            const Wide all = low_bits(part.name->bits);
            const Wide rest = low_bits(part.name->bits - bits);
            part.mask = Wide{all.high & ~rest.high, all.low & ~rest.low};
        } else {
            fail(address ? "'is', 'spec', 'last', 'mask', 'prefix'" : "'is', 'spec', 'last', 'mask'");
        }
    }

    Wide value(const FieldName& name) {
        std::optional<Wide> value;
        switch (name.kind) {
            case FieldKind::number:
                return {0, number(fmt::format("a value of {} bits", name.bits), low_bits(name.bits).low)};
            case FieldKind::mac:
                if (!(value = mac_of(peek()))) fail("a MAC address, such as 02:00:00:00:00:01");
                break;
            case FieldKind::ipv4:
                if (!(value = address_of(peek(), false))) fail("an IPv4 address, such as 10.1.0.10");
                break;
            case FieldKind::ipv6:
                if (!(value = address_of(peek(), true))) fail("an IPv6 address, such as fd00::10");
                break;
        }
        ++at_;
        return *value;
    }

    void add_condition(const Part& part) {
        const auto complain = [&](const std::string& text) {
            throw core::UsageError(
                fmt::format("{}:{}:{}: {} {}: {}", file_, line_, part.column, part.name->item, part.name->name, text));
        };
        if (!part.spec.has_value()) complain("found no value; expected: 'is' or 'spec' beside 'last' and 'mask'");
        const Wide mask = part.mask.value_or(low_bits(part.name->bits));
        const Wide first = *part.spec & mask;
        const Wide last = part.last.value_or(*part.spec) & mask;
        if (last < first) complain("'last' lies below 'spec'; expected: a range that is not empty");
        if (mask == Wide{}) return;  // says nothing
        Field field = part.name->field;
        if (part.name->item == "vlan" && rule_.tags == 2)
            field = field == Field::vlan_tci ? Field::inner_vlan_tci : Field::inner_vlan_inner_type;
        const std::uint32_t shift = part.name->shift;
        const Condition condition{field, shifted(first, shift), shifted(last, shift), shifted(mask, shift)};
        // A device gets one value for the field, so that it could not follow two.
        for (const Condition& other : rule_.conditions)
            if (other.field == field && (other.mask & condition.mask) != Wide{})
                complain("looks at bits that another word of this tag looks at; expected: each bit once");
        rule_.conditions.push_back(condition);
    }

    void actions() {
        expect("actions");
        bool fate = false;
        do {
            if (peek() == "end" && !rule_.actions.empty()) break;
            Action action = one_action();
            const bool decides = action.kind != ActionKind::mark && action.kind != ActionKind::count;
            if (decides && fate) {
                --at_;
                fail("one of queue, rss and drop, and no second");
            }
            fate |= decides;
            rule_.actions.push_back(std::move(action));
        } while (accept("/"));
        expect("end");
    }

    Action one_action() {
        if (accept("drop")) return {ActionKind::drop, 0, {}};
        if (accept("count")) {
            if (accept("identifier")) static_cast<void>(number("an identifier", 0xffffffff));
            return {ActionKind::count, 0, {}};
        }
        if (accept("queue")) {
            expect("index");
            return {ActionKind::queue, static_cast<std::uint32_t>(number("a queue", 0xffff)), {}};
        }
        if (accept("mark")) {
            expect("id");
            return {ActionKind::mark, static_cast<std::uint32_t>(number("a mark", 0xffffffff)), {}};
        }
        if (accept("rss")) return {ActionKind::rss, 0, rss()};
        fail("an action: queue, rss, mark, drop, count");
    }

    RssAction rss() {
        RssAction action;
        while (at_ < tokens_.size() && peek() != "/" && peek() != "end") {
            if (accept("queues")) {
                while (!accept("end"))
                    action.queues.push_back(static_cast<std::uint16_t>(number("a queue, or 'end'", 0xffff)));
            } else if (accept("types")) {
                while (!accept("end")) action.types.push_back(rss_type());
            } else {
                fail("'queues', 'types', '/' or 'end'");
            }
        }
        if (action.queues.empty()) fail("'queues' with at least one queue, and 'end'");
        return action;
    }

    std::string rss_type() {
        static constexpr std::array<std::string_view, 8> known{"ip",   "udp",      "ipv4",      "ipv4-udp",
                                                               "ipv6", "ipv6-udp", "ipv4-frag", "ipv6-frag"};
        if (std::ranges::find(known, peek()) == known.end())
            fail("a type, or 'end': ip, udp, ipv4, ipv4-udp, ipv4-frag, ipv6, ipv6-udp, ipv6-frag");
        return std::string(tokens_[at_++].text);
    }

    void finish() {
        // testpmd reads parts of a field in any order; one order makes rules comparable.
        std::ranges::stable_sort(rule_.conditions, {}, &Condition::field);
    }

    std::string_view file_;
    std::uint32_t line_;
    std::size_t end_column_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    std::string_view current_;  ///< the item whose fields are read
    FlowRule rule_;
};

}  // namespace

std::vector<FlowRule> parse_rules(std::string_view text, std::string_view file_name) {
    std::vector<FlowRule> rules;
    std::uint32_t line = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view content = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        ++line;
        content = content.substr(0, content.find('#'));
        LineParser parser(file_name, line, content);
        if (parser.empty()) continue;
        if (rules.size() == rules_max)
            throw core::UsageError(fmt::format("{}:{}: found more than {} rules", file_name, line, rules_max));
        rules.push_back(parser.parse());
    }
    return rules;
}

std::vector<FlowRule> load_rules(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    if (stream) text << stream.rdbuf();
    if (!stream || !text) throw core::UsageError(fmt::format("{}: the rules cannot be read", file.string()));
    return parse_rules(text.str(), file.string());
}

}  // namespace weir::steer

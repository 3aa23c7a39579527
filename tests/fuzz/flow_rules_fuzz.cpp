// libFuzzer target: any bytes as a file of flow rules. They may be refused with a UsageError that names a place, and
// nothing else may come out; what is accepted prints as rules that read back the same, and the classifier made of them
// agrees with itself on a frame of whatever bytes, one by one and in a burst.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "steer/classifier.hpp"
#include "steer/rule_parser.hpp"

namespace {

using namespace weir::steer;

std::vector<FlowRule> without_lines(std::vector<FlowRule> rules) {
    for (FlowRule& rule : rules) rule.line = 0;
    return rules;
}

std::string print(const std::vector<FlowRule>& rules) {
    std::string text;
    for (const FlowRule& rule : rules) text += to_text(rule) + "\n";
    return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto copy = std::make_unique<char[]>(size);
    for (std::size_t i = 0; i < size; ++i) copy[i] = static_cast<char>(data[i]);
    const std::string_view text(copy.get(), size);
    std::vector<FlowRule> rules;
    try {
        rules = parse_rules(text, "fuzz.flow");
    } catch (const weir::core::UsageError& error) {
        if (std::string_view(error.what()).find("fuzz.flow:") != 0) std::abort();
        return 0;
    }
    // No try: an exception from here on is a finding.
    if (without_lines(parse_rules(print(rules), "printed.flow")) != without_lines(rules)) std::abort();
    constexpr std::size_t rules_max = 40;  // a table per field is slow to build
    if (rules.size() > rules_max) return 0;
    const Classifier classifier(std::move(rules));
    const auto* const bytes = reinterpret_cast<const std::byte*>(copy.get());
    std::array<Classifier::Frame, 4> frames{};
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const std::size_t skip = std::min(size, i * 7);
        frames[i] = {bytes + skip, static_cast<std::uint32_t>(size - skip)};
    }
    std::array<std::uint32_t, 4> winners{};
    classifier.match_burst(frames, winners.data());
    for (std::size_t i = 0; i < frames.size(); ++i)
        if (winners[i] != classifier.match(read_fields({frames[i].data, frames[i].bytes}))) std::abort();
    return 0;
}

// Random rules and frames for the tests of flow rules, and a matcher that shares nothing with the classifier: it
// compares a rule's conditions with what the frame was made of, not with its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "steer/classifier.hpp"
#include "steer/flow_rule.hpp"

namespace weir::steer::test {

class Random {
public:
    explicit Random(std::uint64_t seed) : seed_(seed), engine_(seed) {}
    [[nodiscard]] std::string seed_text() const { return "seed " + std::to_string(seed_); }
    std::size_t below(std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(engine_); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    template <class T>
    const T& of(const std::vector<T>& choices) {
        return choices[below(choices.size())];
    }

private:
    std::uint64_t seed_;
    std::mt19937_64 engine_;
};

/// What a frame is made of.
struct FrameSpec {
    std::vector<std::uint16_t> tags;
    Network network = Network::ipv4;
    bool udp = true;        ///< else another protocol
    bool fragment = false;  ///< a later one: its ports are not to be seen
    bool options = false;   ///< IPv4 with a header of 24 bytes
    std::map<Field, Wide> values;

    [[nodiscard]] std::vector<std::byte> bytes() const;
    [[nodiscard]] std::string text() const;
};

[[nodiscard]] FrameSpec random_frame(Random& random);
/// Over the values that random_frame uses, so that rules meet packets and each other. Lines count from 1.
[[nodiscard]] std::vector<FlowRule> random_rules(Random& random, std::size_t count);

[[nodiscard]] bool matches(const FlowRule& rule, const FrameSpec& frame);
/// By going through all rules, one after the other; Classifier::none if none matches.
[[nodiscard]] std::uint32_t linear_winner(const std::vector<FlowRule>& rules, const FrameSpec& frame);

}  // namespace weir::steer::test

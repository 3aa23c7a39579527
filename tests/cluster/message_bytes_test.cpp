#include "../../bench/cluster/message_bytes.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::cluster::bench {
namespace {

using Random = std::mt19937_64;

std::vector<std::uint64_t> numbers(Random& random) {
    std::vector<std::uint64_t> list(random() % 4);
    for (auto& number : list) number = random();
    return list;
}

std::vector<Loss> losses(Random& random) {
    std::vector<Loss> list(random() % 4);
    for (auto& loss : list) loss = {random(), static_cast<LossCause>(random() % 2)};
    return list;
}

Message any_message(Random& random) {
    Message message{.kind = static_cast<Kind>(random() % (static_cast<unsigned>(Kind::expelled) + 1)),
                    .part = static_cast<Part>(random() % 4),
                    .ended = random() % 2 == 0,
                    .empty = random() % 2 == 0,
                    .late = random() % 2 == 0,
                    .managed = random() % 2 == 0,
                    .node = static_cast<NodeId>(random()),
                    .life = static_cast<Incarnation>(random()),
                    .from = static_cast<Incarnation>(random()),
                    .to = static_cast<Incarnation>(random()),
                    .term = random(),
                    .block = random(),
                    .first = random(),
                    .members = numbers(random),
                    .up = numbers(random),
                    .gone = numbers(random),
                    .losses = losses(random)};
    if (message.kind == Kind::report)
        message.report = {
            random(),        random(),        random() % 2 == 0, numbers(random), static_cast<std::uint32_t>(random()),
            numbers(random), numbers(random), numbers(random),   numbers(random), numbers(random),
            random(),        losses(random)};
    return message;
}

TEST(MessageBytes, AMessageComesBackAsItWas) {
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
        const Message message = any_message(random);
        EXPECT_EQ(from_bytes(to_bytes(message)), message) << name_of(message.kind);
    }
}

TEST(MessageBytes, WhatIsCutShortOrTooLongIsNoMessage) {
    Random random(2);
    for (int i = 0; i < 50; ++i) {
        std::vector<std::byte> bytes = to_bytes(any_message(random));
        for (std::size_t size = 0; size < bytes.size(); ++size)
            EXPECT_THROW(static_cast<void>(from_bytes({bytes.data(), size})), std::runtime_error);
        bytes.push_back({});
        EXPECT_THROW(static_cast<void>(from_bytes(bytes)), std::runtime_error);
    }
}

}  // namespace
}  // namespace weir::cluster::bench

#include "cluster/message_bytes.hpp"

#include <gtest/gtest.h>

#include <random>

namespace weir::cluster {
namespace {

using Random = std::mt19937_64;

constexpr NodeId nodes = 64;

std::vector<NodeLife> lives(Random& random) {
    std::vector<NodeLife> list(random() % 4);
    for (auto& life : list) life = life_of(static_cast<NodeId>(random() % nodes), static_cast<Incarnation>(random()));
    return list;
}

BlockSpan span(Random& random) {
    const Block block = random() / 2;
    return {block, block + 1 + random() % 1000};
}

std::vector<BlockSpan> spans(Random& random) {
    std::vector<BlockSpan> list(random() % 4);
    for (auto& one : list) one = span(random);
    return list;
}

std::vector<Loss> losses(Random& random) {
    std::vector<Loss> list;
    for (const BlockSpan& lost : spans(random))
        list.push_back({lost.block, static_cast<LossCause>(random() % loss_causes), lost.end});
    return list;
}

std::vector<Recorded> recorded(Random& random) {
    std::vector<Recorded> list;
    for (const NodeLife builder : lives(random)) list.push_back({span(random), builder});
    return list;
}

std::vector<Block> gaps(Random& random) {
    std::vector<Block> list;
    for (auto count = random() % 3; count > 0; --count) {
        const Block from = random() / 2;
        list.insert(list.end(), {from, from + 1 + random() % 1000});
    }
    return list;
}

Message any_message(Random& random) {
    const BlockSpan about = span(random);
    Message message{.kind = static_cast<Kind>(random() % (static_cast<unsigned>(Kind::expelled) + 1)),
                    .part = static_cast<Part>(random() % 4),
                    .ended = random() % 2 == 0,
                    .empty = random() % 2 == 0,
                    .late = random() % 2 == 0,
                    .managed = random() % 2 == 0,
                    .leaving = random() % 2 == 0,
                    .node = static_cast<NodeId>(random() % nodes),
                    .life = static_cast<Incarnation>(random()),
                    .from = static_cast<Incarnation>(random()),
                    .to = static_cast<Incarnation>(random()),
                    .term = random(),
                    .block = about.block,
                    .end = about.end,
                    .first = random(),
                    .members = lives(random),
                    .up = lives(random),
                    .gone = lives(random),
                    .losses = losses(random),
                    .gaps = gaps(random)};
    if (message.kind == Kind::report)
        message.report = {.first = random(),
                          .ready = random(),
                          .ended = random() % 2 == 0,
                          .gaps = gaps(random),
                          .released = spans(random),
                          .credits = static_cast<std::uint32_t>(random()),
                          .open = spans(random),
                          .committed = spans(random),
                          .done = spans(random),
                          .empty = losses(random),
                          .recorded = recorded(random),
                          .up = lives(random),
                          .settled = random(),
                          .losses = losses(random)};
    return message;
}

TEST(MessageBytes, AMessageComesBackAsItWas) {
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
        const Message message = any_message(random);
        EXPECT_EQ(from_bytes(to_bytes(message), nodes), message) << name_of(message.kind);
    }
}

TEST(MessageBytes, WhatIsCutShortOrTooLongIsNoMessage) {
    Random random(2);
    for (int i = 0; i < 50; ++i) {
        std::vector<std::byte> bytes = to_bytes(any_message(random));
        for (std::size_t size = 0; size < bytes.size(); ++size)
            EXPECT_THROW(static_cast<void>(from_bytes({bytes.data(), size}, nodes)), std::runtime_error);
        bytes.push_back({});
        EXPECT_THROW(static_cast<void>(from_bytes(bytes, nodes)), std::runtime_error);
    }
}

TEST(MessageBytes, NodesThatThereAreNotAreRefused) {
    const auto is_refused = [](const Message& message) {
        EXPECT_THROW(static_cast<void>(from_bytes(to_bytes(message), nodes)), std::runtime_error);
    };
    is_refused({.kind = Kind::hello, .node = nodes});
    is_refused({.kind = Kind::assign, .block = 1, .end = 2, .members = {life_of(nodes, 1)}});
    is_refused({.kind = Kind::claim, .gone = {~NodeLife{0}}});
    Message report{.kind = Kind::report};
    report.report.up = {life_of(nodes, 1)};
    is_refused(report);
    is_refused({.kind = Kind::settled, .losses = {{1, static_cast<LossCause>(7), 2}}});
}

TEST(MessageBytes, BlocksWithoutNumbersAreRefused) {
    const auto is_refused = [](const Message& message) {
        EXPECT_THROW(static_cast<void>(from_bytes(to_bytes(message), nodes)), std::runtime_error);
    };
    for (const Kind kind : {Kind::assign, Kind::request, Kind::part, Kind::record, Kind::release})
        is_refused({.kind = kind, .block = 5, .end = 5});
    is_refused({.kind = Kind::settled, .losses = {{5, LossCause::late, 5}}});
    Message report{.kind = Kind::report};
    report.report.done = {{5, 4}};
    is_refused(report);
    report.report.done = {};
    report.report.recorded = {{{5, 5}, life_of(1, 1)}};
    is_refused(report);
}

}  // namespace
}  // namespace weir::cluster

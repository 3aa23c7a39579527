#include "bench/faulty_sender.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace {

using weir::bench::PacketPlan;
using weir::bench::Sender;
using weir::bench::SenderFaults;
using weir::bench::with_faults;

/// Keeps what it was given; sometimes has room for a part only.
class KeepingSender : public Sender {
public:
    KeepingSender(std::vector<std::uint64_t>& sent, std::uint32_t room) : sent_(sent), room_(room) {}
    void prepare(const PacketPlan&) override { sent_.clear(); }
    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        EXPECT_GE(count, 1U);
        EXPECT_LE(count, burst());
        // Every second call has no room at all.
        const std::uint32_t taken = room_ == 0 ? count : std::min(count, ++calls_ % 2 * room_);
        for (std::uint32_t i = 0; i < taken; ++i) sent_.push_back(first + i);
        return taken;
    }
    [[nodiscard]] std::uint32_t burst() const noexcept override { return 16; }

private:
    std::vector<std::uint64_t>& sent_;
    std::uint32_t room_;
    std::uint32_t calls_ = 0;
};

struct Sent {
    std::vector<std::uint64_t> packets;
    std::uint64_t kept_back = 0;
};

Sent send_all(const SenderFaults& faults, std::uint64_t count, std::uint32_t room = 0) {
    Sent sent;
    const auto sender = with_faults(std::make_unique<KeepingSender>(sent.packets, room), faults);
    sender->prepare({.trial = 1, .bytes = 100, .packets = 1});
    for (std::uint64_t next = 0; next < count;)
        next += sender->send(next, static_cast<std::uint32_t>(std::min<std::uint64_t>(count - next, 16)));
    sender->finish();
    sent.kept_back = sender->kept_back();
    return sent;
}

TEST(FaultySender, WithoutFaultsItIsTheSenderItself) {
    std::vector<std::uint64_t> sent;
    auto sender = std::make_unique<KeepingSender>(sent, 0);
    const Sender* const itself = sender.get();
    EXPECT_EQ(with_faults(std::move(sender), {}).get(), itself);
}

TEST(FaultySender, SoManyPacketsAreKeptBackAndNoOthers) {
    const Sent sent = send_all({.drop = 0.01, .seed = 3}, 100'000);
    EXPECT_NEAR(static_cast<double>(sent.kept_back), 1000, 150);
    EXPECT_EQ(sent.packets.size() + sent.kept_back, 100'000U);
    EXPECT_TRUE(std::ranges::is_sorted(sent.packets));
    EXPECT_EQ(std::ranges::adjacent_find(sent.packets), sent.packets.end());
}

TEST(FaultySender, APacketComesLateByNoMoreThanItsPlaces) {
    for (const std::uint32_t room : {0U, 5U}) {
        const Sent sent = send_all({.duplicate = 0.1, .reorder = 8, .seed = 3}, 10'000, room);
        std::map<std::uint64_t, int> copies;
        std::uint64_t furthest = 0;
        bool late = false;
        for (const std::uint64_t packet : sent.packets) {
            ++copies[packet];
            late |= packet < furthest;
            EXPECT_LE(furthest, packet + 8);
            furthest = std::max(furthest, packet);
        }
        EXPECT_TRUE(late);
        EXPECT_EQ(copies.size(), 10'000U);  // all of them, whatever room there was
        EXPECT_NEAR(static_cast<double>(sent.packets.size()) - 10'000, 1000, 200);
        EXPECT_EQ(sent.kept_back, 0U);
    }
}

TEST(FaultySender, ASeedDrawsTheSameAgain) {
    const SenderFaults faults{.drop = 0.1, .duplicate = 0.1, .reorder = 3, .seed = 11};
    const Sent once = send_all(faults, 1000);
    EXPECT_EQ(once.packets, send_all(faults, 1000).packets);
    SenderFaults other = faults;
    other.seed = 12;
    EXPECT_NE(once.packets, send_all(other, 1000).packets);
}

}  // namespace

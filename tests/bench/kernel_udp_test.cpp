// What sends and receives through the kernel's UDP, over the loopback interface and slowly: every packet arrives whole.
// How fast it goes is for live tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "bench/gso_sender.hpp"
#include "bench/reception.hpp"
#include "bench/transports.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"

namespace {

using weir::bench::PacketPlan;
using weir::bench::packets_joined;
using weir::bench::ReceivedPacket;
using weir::bench::Receiver;
using weir::bench::ReceiverSpec;
using weir::bench::Reception;
using weir::bench::Sender;
using weir::bench::sender_named;
using weir::bench::transport_named;
using weir::core::RunError;

constexpr std::uint64_t packets_sent = 1000;
constexpr int looks_max = 100;  // of 10 ms each, without a packet

ReceiverSpec receiver_spec(std::uint32_t bytes, std::uint32_t addresses = 1) {
    ReceiverSpec spec;
    spec.address = "127.0.0.1";
    spec.interface = "lo";
    spec.bytes = bytes;
    spec.addresses = addresses;
    return spec;
}

/// Packets in hand.
class Held {
public:
    explicit Held(Receiver& receiver) : receiver_(receiver) {}
    ~Held() { give_back(); }
    void add(void* buffer) { buffers_.push_back(buffer); }
    void give_back() {
        if (!buffers_.empty()) receiver_.release()(buffers_.data(), static_cast<std::uint32_t>(buffers_.size()));
        buffers_.clear();
    }
    [[nodiscard]] std::size_t count() const { return buffers_.size(); }

private:
    Receiver& receiver_;
    std::vector<void*> buffers_;
};

class KernelUdp : public testing::TestWithParam<std::tuple<const char*, const char*, std::uint32_t>> {
protected:
    const PacketPlan plan_{.trial = 7, .bytes = std::get<2>(GetParam()), .packets = 4};

    std::unique_ptr<Receiver> open(std::uint32_t addresses = 1) {
        try {
            return transport_named(std::get<0>(GetParam())).open(receiver_spec(plan_.bytes, addresses));
        } catch (const RunError& error) {
            skipped_ = error.what();
            return nullptr;
        }
    }
    std::unique_ptr<Sender> sender_to(const Receiver& receiver) {
        auto sender = sender_named(std::get<1>(GetParam())).open({.to = receiver.endpoint()});
        sender->prepare(plan_);
        return sender;
    }
    /// Sends what is not yet sent of `count` packets, a few at a time, and receives it.
    void pass(Receiver& receiver, Sender& sender, Reception& reception, std::uint64_t first, std::uint64_t count) {
        Held held(receiver);
        std::array<ReceivedPacket, Receiver::burst> packets;
        std::uint64_t sent = 0;
        std::uint64_t came = 0;
        for (int looks = 0; came < count && looks < looks_max;) {
            // Few are on their way: the smallest buffer has room for them.
            if (sent == came)
                sent += sender.send(first + sent, static_cast<std::uint32_t>(std::min<std::uint64_t>(7, count - sent)));
            const std::uint32_t got = receiver.receive(packets);
            looks = got > 0 ? 0 : looks + 1;
            for (std::uint32_t i = 0; i < got; ++i) {
                EXPECT_TRUE(reception.add({packets[i].payload, packets[i].bytes}, weir::core::monotonic_ns()));
                held.add(packets[i].buffer);
            }
            came += got;
            if (held.count() > 300) held.give_back();
        }
        EXPECT_EQ(came, count);
    }

    std::string skipped_;
};

TEST_P(KernelUdp, EveryPacketArrivesWhole) {
    const auto receiver = open();
    if (receiver == nullptr) GTEST_SKIP() << skipped_;
    const auto sender = sender_to(*receiver);
    Reception reception(plan_, packets_sent);
    pass(*receiver, *sender, reception, 0, packets_sent);
    EXPECT_EQ(reception.counts().received, packets_sent);
    EXPECT_EQ(reception.counts().taken, packets_sent);
    EXPECT_EQ(receiver->drops().kernel, 0U);
}

TEST_P(KernelUdp, OneThreadAfterTheOtherMayReceive) {
    const auto receiver = open();
    if (receiver == nullptr) GTEST_SKIP() << skipped_;
    const auto sender = sender_to(*receiver);
    Reception reception(plan_, packets_sent);
    for (std::uint64_t first = 0; first < packets_sent; first += 200) {
        std::thread thread([&] { pass(*receiver, *sender, reception, first, 200); });
        thread.join();
    }
    EXPECT_EQ(reception.counts().received, packets_sent);
}

TEST_P(KernelUdp, AllBuffersMayBeHeldAndComeBack) {
    const auto receiver = open();
    if (receiver == nullptr) GTEST_SKIP() << skipped_;
    const auto sender = sender_to(*receiver);
    constexpr std::uint64_t more = 2 * Receiver::held_max;
    Reception reception(plan_, more + 100);
    std::set<void*> held;
    std::array<ReceivedPacket, Receiver::burst> packets;
    // Until there is no buffer any more, and then what waits in the socket.
    for (std::uint64_t sent = 0; sent < more; sent += sender->send(sent, 1)) {
        const std::uint32_t got = receiver->receive(packets);
        for (std::uint32_t i = 0; i < got; ++i) {
            EXPECT_TRUE(held.insert(packets[i].buffer).second);
            reception.add({packets[i].payload, packets[i].bytes}, 0);
        }
        if (held.size() >= Receiver::held_max && got == 0) break;
    }
    EXPECT_GE(held.size(), Receiver::held_max);
    EXPECT_EQ(reception.counts().received, held.size());
    std::vector<void*> all(held.begin(), held.end());
    receiver->release()(all.data(), static_cast<std::uint32_t>(all.size()));
    const std::uint64_t before = reception.counts().received;
    for (int looks = 0; looks < 3;) {
        const std::uint32_t got = receiver->receive(packets);
        looks = got > 0 ? 0 : looks + 1;
        for (std::uint32_t i = 0; i < got; ++i) {
            reception.add({packets[i].payload, packets[i].bytes}, 0);
            receiver->release()(&packets[i].buffer, 1);
        }
    }
    EXPECT_GT(reception.counts().received, before);
    Reception afterwards(plan_, packets_sent);
    pass(*receiver, *sender, afterwards, 0, packets_sent);
    EXPECT_EQ(afterwards.counts().received, packets_sent);
}

TEST_P(KernelUdp, WithManyAddressesPayloadGoesToAllOfThem) {
    constexpr std::uint32_t places = 500;
    const auto receiver = open(places);
    if (receiver == nullptr) GTEST_SKIP() << skipped_;
    const auto sender = sender_to(*receiver);
    std::set<void*> seen;
    std::array<ReceivedPacket, Receiver::burst> packets;
    for (std::uint64_t sent = 0; sent < 2 * places;) {
        sent += sender->send(sent, 1);
        const std::uint32_t got = receiver->receive(packets);
        for (std::uint32_t i = 0; i < got; ++i) {
            seen.insert(packets[i].buffer);
            receiver->release()(&packets[i].buffer, 1);
        }
    }
    // But for those that a receiver keeps at hand for a burst that never comes.
    EXPECT_GE(seen.size(), places - Receiver::burst);
}

TEST_P(KernelUdp, ALongerPacketThanExpectedIsSeen) {
    const auto receiver = open();
    if (receiver == nullptr) GTEST_SKIP() << skipped_;
    PacketPlan longer = plan_;
    longer.bytes += 8;
    const auto sender = sender_named("sendmmsg").open({.to = receiver->endpoint()});
    sender->prepare(longer);
    ASSERT_EQ(sender->send(0, 1), 1U);
    std::array<ReceivedPacket, Receiver::burst> packets;
    std::uint32_t got = 0;
    for (int looks = 0; looks < looks_max && got == 0; ++looks) got = receiver->receive(packets);
    ASSERT_EQ(got, 1U);
    EXPECT_EQ(packets[0].bytes, plan_.bytes + 1);
    receiver->release()(&packets[0].buffer, 1);
}

std::string test_name(const testing::TestParamInfo<KernelUdp::ParamType>& info) {
    std::string name = std::string(std::get<0>(info.param)) + std::get<1>(info.param);
    std::erase(name, '-');
    return name + std::to_string(std::get<2>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Ways, KernelUdp,
                         testing::Combine(testing::Values("udp-socket", "udp-tuned", "udp-iouring"),
                                          testing::Values("sendmmsg", "gso"), testing::Values(1000U, 8240U)),
                         test_name);

TEST(GsoSender, JoinsWhatOnePacketOfIpHolds) {
    EXPECT_EQ(packets_joined(PacketPlan::bytes_min), 64U);
    EXPECT_EQ(packets_joined(1024), 63U);
    EXPECT_EQ(packets_joined(2048), 31U);
    EXPECT_EQ(packets_joined(8240), 7U);
    EXPECT_EQ(packets_joined(32'753), 2U);
    EXPECT_EQ(packets_joined(32'754), 1U);
    EXPECT_EQ(packets_joined(PacketPlan::bytes_max), 1U);
}

TEST(GsoSender, LargePacketsGoOneByOne) {
    const auto receiver = transport_named("udp-socket").open(receiver_spec(40'000));
    const auto sender = sender_named("gso").open({.to = receiver->endpoint()});
    const PacketPlan plan{.trial = 1, .bytes = 40'000, .packets = 1};
    sender->prepare(plan);
    Reception reception(plan, 3);
    std::array<ReceivedPacket, Receiver::burst> packets;
    ASSERT_EQ(sender->send(0, 3), 3U);
    for (int looks = 0; looks < looks_max && reception.counts().received < 3; ++looks) {
        const std::uint32_t got = receiver->receive(packets);
        for (std::uint32_t i = 0; i < got; ++i) {
            reception.add({packets[i].payload, packets[i].bytes}, 0);
            receiver->release()(&packets[i].buffer, 1);
        }
    }
    EXPECT_EQ(reception.counts().received, 3U);
}

TEST(AfPacketSender, SaysThatTheLoopbackInterfaceIsNoEthernet) {
    try {
        (void)sender_named("af-packet").open({.to = {"127.0.0.1", 9}});
        FAIL();
    } catch (const RunError& error) {
        EXPECT_STREQ(error.what(), "lo is no Ethernet: frames cannot be sent there");
    }
}

}  // namespace

// Reliable connections without a device: the sender against a small responder of the test's own, through the faults
// that the sender makes itself.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "simulate/neighbour.hpp"
#include "simulate/rc_sender.hpp"
#include "wire/bytes.hpp"
#include "wire/network.hpp"

namespace weir::simulate {
namespace {

/// The other end: takes packets of each queue pair in order, acknowledges when asked to, and keeps the messages.
/// Written from wire-formats alone, apart from weir's own responder.
class PlainResponder : public FrameLink {
public:
    explicit PlainResponder(std::uint32_t frame_bytes_max)
        : slot_bytes_(frame_bytes_max + 200), memory_(slots * slot_bytes_) {}

    std::span<std::byte> slot(std::uint32_t index) noexcept override {
        return std::span(memory_).subspan(index * slot_bytes_, slot_bytes_);
    }
    std::uint32_t send(std::uint32_t first, std::span<const std::uint32_t> bytes) noexcept override {
        const auto count = std::min<std::uint32_t>(static_cast<std::uint32_t>(bytes.size()), takes);
        for (std::uint32_t i = 0; i < count; ++i) take(slot(first + i).first(bytes[i]));
        frames += count;
        if (stops != nullptr) *stops = true;
        return count;
    }
    std::uint32_t receive(std::span<std::span<const std::byte>> out) noexcept override {
        given_.clear();
        std::swap(given_, answers_);
        for (std::size_t i = 0; i < given_.size() && i < out.size(); ++i) out[i] = given_[i];
        if (given_.size() > out.size()) answers_.assign(given_.begin() + static_cast<long>(out.size()), given_.end());
        return static_cast<std::uint32_t>(std::min(given_.size(), out.size()));
    }
    void give(std::vector<std::byte> frame) { answers_.push_back(std::move(frame)); }

    struct QueuePair {
        std::uint32_t expected = 0;
        std::uint32_t msn = 0;
        bool nak_sent = false;
        std::vector<std::byte> message;
        std::vector<std::vector<std::byte>> messages;
        std::vector<std::uint64_t> addresses;
    };
    std::map<std::uint32_t, QueuePair> queue_pairs;
    std::uint64_t frames = 0;
    std::uint64_t damaged = 0;
    std::uint32_t takes = slots;            ///< frames per call
    std::uint32_t refuse_psn = 0xffffffff;  ///< answered with refuse_syndrome, refusals times
    std::uint8_t refuse_syndrome = 0;
    std::uint32_t refusals = 0;
    bool mute = false;
    std::atomic<bool>* stops = nullptr;  ///< set when the first frame comes

private:
    void take(std::span<const std::byte> frame) {
        wire::Datagram datagram;
        wire::RocePacket packet;
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        if (wire::parse_frame(frame.data(), bytes, bytes, datagram) != wire::ok ||
            wire::decode_roce(datagram, true, packet) != wire::ok) {
            ++damaged;
            return;
        }
        QueuePair& qp = queue_pairs[packet.qp];
        const auto ahead = static_cast<std::int32_t>((packet.psn - qp.expected) << 8) >> 8;
        if (packet.psn == refuse_psn && refusals > 0 && ahead == 0) {
            --refusals;
            return answer(datagram, packet.qp, packet.psn, refuse_syndrome, qp.msn);
        }
        if (ahead > 0) {
            if (!std::exchange(qp.nak_sent, true)) answer(datagram, packet.qp, qp.expected, 0x60, qp.msn);
            return;
        }
        if (ahead == 0) {
            qp.nak_sent = false;
            qp.expected = (qp.expected + 1) & 0xffffff;
            if (packet.dma_length != 0) qp.addresses.push_back(packet.va);
            qp.message.insert(qp.message.end(), packet.payload, packet.payload + packet.bytes);
            if (packet.place == wire::RocePlace::last || packet.place == wire::RocePlace::only) {
                qp.messages.push_back(std::exchange(qp.message, {}));
                ++qp.msn;
            }
        }
        if (packet.ack_request) answer(datagram, packet.qp, (qp.expected - 1) & 0xffffff, 0x1f, qp.msn);
    }

    void answer(const wire::Datagram& request, std::uint32_t qp, std::uint32_t psn, std::uint8_t syndrome,
                std::uint32_t msn) {
        if (mute) return;
        wire::FrameSpec spec;
        spec.src = request.dst;
        spec.dst = request.src;
        spec.sport = request.sport;
        spec.dport = wire::roce_port;
        wire::RocePacket packet;
        packet.opcode = 0x11;
        packet.qp = qp;
        packet.psn = psn;
        std::vector<std::byte> frame = wire::make_roce_frame(spec, packet);
        std::byte* aeth = frame.data() + wire::frame_header_bytes(spec) + wire::roce_bth_bytes;
        wire::store_be(aeth, std::uint32_t{syndrome} << 24 | (msn & 0xffffff));
        const std::byte* ip = frame.data() + wire::ethernet_header_bytes;
        const auto covered = static_cast<std::uint32_t>(frame.size() - wire::ethernet_header_bytes - 4);
        wire::store_le(frame.data() + frame.size() - 4, wire::roce_icrc(ip, covered));
        answers_.push_back(std::move(frame));
    }

    std::size_t slot_bytes_;
    std::vector<std::byte> memory_;
    std::vector<std::vector<std::byte>> answers_;
    std::vector<std::vector<std::byte>> given_;
};

SimulatorConfig roce(std::uint64_t events) {
    SimulatorConfig config;
    config.format = "message";
    config.transport = SimulatedTransport::roce_write;
    config.service = wire::RoceTransport::rc;
    config.sources = 2;
    config.events = events;
    config.mtu = 1024;
    config.bytes_max = 5000;
    return config;
}

RcSender::Config quick() {
    RcSender::Config config;
    config.timeout_ns = core::ns_per_ms;
    config.retries = 100;
    return config;
}

struct Sending {
    explicit Sending(const SimulatorConfig& config, const RcSender::Config& rc = quick())
        : simulator(config), link(simulator.frame_bytes_max()), rc_config(rc) {}
    RcSender::Result send() {
        for (std::uint32_t source = 0; source < simulator.config().sources; ++source)
            link.queue_pairs[simulator.endpoint(source)].expected = simulator.config().first_psn;
        return RcSender(simulator, link, rc_config, {2, 0, 0, 0, 0, 2}, stop).send();
    }
    /// Every message that the responder has is what it should be, and each is there once, in order.
    void expect_messages(std::uint64_t count) {
        for (std::uint32_t source = 0; source < simulator.config().sources; ++source) {
            const auto& messages = link.queue_pairs[simulator.endpoint(source)].messages;
            ASSERT_EQ(messages.size(), count);
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t event = simulator.config().first_event + i;
                std::vector<std::byte> expected(simulator.message_bytes(event, source));
                simulator.message_content(event, source, 0, expected);
                ASSERT_EQ(messages[i], expected) << "event " << event << " of source " << source;
            }
        }
    }

    Simulator simulator;
    PlainResponder link;
    RcSender::Config rc_config;
    std::atomic<bool> stop{false};
};

TEST(RcSender, EveryMessageIsAcknowledgedAndWhole) {
    RcSender::Config rc = quick();
    rc.timeout_ns = 100 * core::ns_per_s;  // nothing is lost, however slow the machine is
    Sending sending(roce(50), rc);
    sending.link.takes = 5;
    const RcSender::Result result = sending.send();
    sending.expect_messages(50);
    EXPECT_EQ(result.events, 50);
    EXPECT_EQ(result.events_acknowledged, 50);
    const RcSender::Source total = result.total();
    EXPECT_EQ(total.acknowledged, 100);
    EXPECT_EQ(total.account.retransmitted, 0);
    EXPECT_EQ(total.emitted, total.account.packets);
    EXPECT_EQ(sending.link.frames, total.emitted);
    EXPECT_EQ(sending.link.queue_pairs[0x12].addresses.front(), 0x20000000);
    for (std::uint32_t source = 0; source < 2; ++source)
        EXPECT_EQ(result.sources[source].next_psn, sending.link.queue_pairs[0x11 + source].expected);
}

TEST(RcSender, WhatTheNetworkDoesIsMadeUpForAndCounted) {
    SimulatorConfig config = roce(60);
    config.drop = config.duplicate = config.truncate = config.corrupt = 0.03;
    config.reorder = 4;
    config.first_psn = 0xffff00;
    RcSender::Config rc = quick();
    rc.drop_answers = 0.05;
    Sending sending(config, rc);
    const RcSender::Result result = sending.send();
    sending.expect_messages(60);
    const RcSender::Source total = result.total();
    EXPECT_EQ(total.acknowledged, 120);
    EXPECT_GT(total.dropped, 0);
    EXPECT_GT(total.duplicated, 0);
    EXPECT_GT(total.answers_dropped, 0);
    EXPECT_GT(total.account.retransmitted, total.dropped);
    EXPECT_EQ(total.account.packets - total.dropped + total.duplicated, total.emitted);
    EXPECT_EQ(sending.link.frames, total.emitted);
    EXPECT_GE(sending.link.damaged, 1);
    EXPECT_LE(sending.link.damaged, total.truncated + total.corrupted);
}

TEST(RcSender, FlippedBitsAreAlwaysFoundByTheChecksum) {
    SimulatorConfig config = roce(40);
    config.corrupt = 0.2;
    Sending sending(config);
    const RcSender::Result result = sending.send();
    sending.expect_messages(40);
    EXPECT_EQ(sending.link.damaged, result.total().corrupted);
}

TEST(RcSender, ARefusedMessageFailsItsQueuePairAndNoOther) {
    Sending sending(roce(20));
    sending.link.refuse_psn = 0;
    sending.link.refuse_syndrome = 0x62;
    sending.link.refusals = 1;
    const RcSender::Result result = sending.send();
    const bool first_failed = result.sources[0].status == roce::SendStatus::access_error;
    const RcSender::Source& failed = result.sources[first_failed ? 0 : 1];
    const RcSender::Source& other = result.sources[first_failed ? 1 : 0];
    EXPECT_EQ(failed.status, roce::SendStatus::access_error);
    EXPECT_EQ(failed.acknowledged, 0);
    EXPECT_GT(failed.account.failed, 0);
    EXPECT_EQ(other.acknowledged, 20);
    EXPECT_EQ(result.events_acknowledged, 0);
}

TEST(RcSender, WaitsForAReceiverThatIsNotReady) {
    Sending sending(roce(20));
    sending.link.refuse_psn = 10;
    sending.link.refuse_syndrome = 0x20 | 13;  // 960 us
    sending.link.refusals = 3;
    const RcSender::Result result = sending.send();
    sending.expect_messages(20);
    EXPECT_EQ(result.total().account.rnr_waits, 3);
    EXPECT_EQ(result.events_acknowledged, 20);
}

TEST(RcSender, SilenceFailsAfterTheLastRetry) {
    RcSender::Config rc = quick();
    rc.retries = 2;
    Sending sending(roce(20), rc);
    sending.link.mute = true;
    const RcSender::Result result = sending.send();
    EXPECT_EQ(result.events_acknowledged, 0);
    EXPECT_EQ(result.events, rc.depth) << "no further ones were begun";
    for (const RcSender::Source& source : result.sources) {
        EXPECT_EQ(source.status, roce::SendStatus::retries_exceeded);
        EXPECT_EQ(source.account.timeouts, 3);
        EXPECT_EQ(source.account.failed, rc.depth);
    }
}

TEST(RcSender, StopsWhenAskedAndFinishesWhatIsUnderWay) {
    Sending sending(roce(0));
    RcSender::Result result;
    std::thread sender([&] { result = sending.send(); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // any moment will do
    sending.stop = true;
    sender.join();
    EXPECT_TRUE(result.interrupted);
    EXPECT_EQ(result.events_acknowledged, result.events);
    sending.expect_messages(result.events);
}

TEST(RcSender, GivesUpSomeTimeAfterBeingAskedToStop) {
    RcSender::Config rc = quick();
    rc.timeout_ns = 60 * core::ns_per_s;
    rc.grace_s = 0.02;
    Sending sending(roce(0), rc);
    sending.link.mute = true;
    sending.link.stops = &sending.stop;
    const RcSender::Result result = sending.send();
    EXPECT_EQ(result.events_acknowledged, 0);
    EXPECT_EQ(result.sources[0].status, roce::SendStatus::flushed);
}

TEST(RcSender, AnswersThatAreNotForUsAreCountedAndIgnored) {
    Sending sending(roce(5));
    wire::FrameSpec spec;
    spec.dport = wire::roce_port;
    wire::RocePacket packet;
    packet.opcode = 0x11;
    packet.qp = 0x99;  // nobody's
    sending.link.give(wire::make_roce_frame(spec, packet));
    packet.qp = 0x11;
    packet.psn = 0x700000;  // never sent
    sending.link.give(wire::make_roce_frame(spec, packet));
    std::vector<std::byte> damaged = wire::make_roce_frame(spec, packet);
    damaged.back() ^= std::byte{1};
    sending.link.give(damaged);
    spec.dport = 9;
    sending.link.give(wire::make_roce_frame(spec, packet));
    const RcSender::Result result = sending.send();
    EXPECT_EQ(result.events_acknowledged, 5);
    EXPECT_EQ(result.bad_answers, 1);
    EXPECT_EQ(result.other_frames, 1);
    EXPECT_EQ(result.stray_answers, 1);
    EXPECT_EQ(result.stray_qp, 0x99U);
    const roce::Initiator::Account account = result.total().account;
    EXPECT_EQ(account.ghost_answers + account.stale_answers, 1);
}

TEST(RcSender, OptionsOutsideTheirRangeAreRefusedByName) {
    const auto refused = [](auto change, const char* name) {
        RcSender::Config rc = quick();
        change(rc);
        Sending sending(roce(1), rc);
        try {
            sending.send();
            FAIL() << name;
        } catch (const core::UsageError& error) {
            EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
        }
    };
    refused([](RcSender::Config& rc) { rc.window = 0; }, "--window 0");
    refused([](RcSender::Config& rc) { rc.depth = 0; }, "--depth 0");
    refused([](RcSender::Config& rc) { rc.rnr_retries = 8; }, "--rnr-retry 8");
    refused([](RcSender::Config& rc) { rc.drop_answers = 1; }, "--drop-answers 1");
    refused([](RcSender::Config& rc) { rc.local_qp = 0xffffff; }, "--local-qp");
}

/// What one asks, the other answers: weir's own responders for ARP and neighbour solicitations.
class Neighbour : public FrameLink {
public:
    explicit Neighbour(const port::PortAddress& own) : own_(own) {}
    std::span<std::byte> slot(std::uint32_t /*index*/) noexcept override { return out_; }
    std::uint32_t send(std::uint32_t /*first*/, std::span<const std::uint32_t> bytes) noexcept override {
        // A question is lost now and then.
        if (++asked > 1) reply_ = answer(std::span(out_).first(bytes[0]), own_, in_);
        return 1;
    }
    std::uint32_t receive(std::span<std::span<const std::byte>> frames) noexcept override {
        if (reply_ == 0) return 0;
        frames[0] = std::span(in_).first(std::exchange(reply_, 0));
        return 1;
    }
    int asked = 0;

private:
    port::PortAddress own_;
    std::array<std::byte, 128> out_{};
    std::array<std::byte, 128> in_{};
    std::size_t reply_ = 0;
};

TEST(Neighbour, IsFoundByArpAndBySolicitation) {
    const std::atomic<bool> stop{false};
    const port::MacAddress mac{2, 9, 8, 7, 6, 5};
    for (const bool vlan : {false, true})
        for (const bool ipv6 : {false, true}) {
            wire::FrameSpec spec;
            if (vlan) spec.vlan = 100;
            port::PortAddress own{.mac = mac, .ip = spec.dst};
            if (ipv6) {
                spec.ipv6 = wire::Ipv6Addresses{{0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
                                                {0xfd, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xab, 0xcd, 2}};
                own = {.mac = mac, .ip = 0, .ipv6 = spec.ipv6->dst, .has_ipv6 = true};
            }
            Neighbour there(own);
            EXPECT_EQ(resolve_neighbour(spec, there, 5, stop), mac)
                << (ipv6 ? "IPv6" : "IPv4") << (vlan ? " tagged" : "");
            EXPECT_EQ(there.asked, 2);
            Neighbour somebody_else(port::PortAddress{.mac = mac, .ip = spec.dst + 1});
            EXPECT_EQ(resolve_neighbour(spec, somebody_else, 0.005, stop), std::nullopt);
        }
}

TEST(Neighbour, NothingIsReadBehindTheEndOfAFrame) {
    wire::FrameSpec spec;
    for (const bool ipv6 : {false, true}) {
        if (ipv6) spec.ipv6 = wire::Ipv6Addresses{};
        std::vector<std::byte> question(94);
        question.resize(ask_neighbour(spec, question));
        for (std::size_t bytes = 0; bytes <= question.size(); ++bytes)
            EXPECT_EQ(neighbour_of(
                          spec, std::vector<std::byte>(question.begin(), question.begin() + static_cast<long>(bytes))),
                      std::nullopt);
    }
}

}  // namespace
}  // namespace weir::simulate

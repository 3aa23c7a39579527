// weir's initiator against weir's responder, with a network between them that loses, doubles, delays and damages
// packets in both directions. Everything is drawn from a seed and time is counted, not measured, so a failure can be
// repeated: the seed is printed. Frames are real ones: addresses, iCRC and all.
#include <algorithm>
#include <deque>
#include <queue>
#include <random>
#include <set>

#include "effort.hpp"
#include "listener_harness.hpp"
#include "roce/initiator/initiator.hpp"
#include "roce/responder/responder.hpp"
#include "wire/encode.hpp"
#include "wire/network.hpp"
#include "wire/roce_answer.hpp"

namespace weir::roce::test {
namespace {

using core::ns_per_ms;

constexpr std::uint32_t responder_qp = 0x11;
constexpr std::uint32_t initiator_qp = 0x55;
constexpr std::uint32_t rkey = 0x77;
constexpr std::uint64_t va = 0x4000;
constexpr std::uint32_t bytes_max = 3000;

struct Weather {
    double loss = 0;
    double twice = 0;
    double damage = 0;
    core::TimeNs jitter_ns = 0;
    double not_ready = 0;  ///< of the responder, per packet
};

/// One direction. Frames keep their place in memory: messages refer to them.
class Way {
public:
    Way(std::mt19937_64& random, const Weather& weather) : random_(random), weather_(weather) {}

    void send(std::vector<std::byte> frame, core::TimeNs now) {
        ++sent;
        if (draw() < weather_.loss) {
            ++lost;
            return;
        }
        const bool twice = draw() < weather_.twice;
        if (twice) travel(frame, now);
        if (draw() < weather_.damage) {
            // Anything after the IP header; what the iCRC does not cover (UDP checksum, a byte of the BTH) does no
            // harm.
            const std::size_t at = 34 + random_() % (frame.size() - 34);
            frame[at] ^= std::byte{1} << static_cast<int>(random_() % 8);
        }
        travel(std::move(frame), now);
    }
    [[nodiscard]] core::TimeNs next_ns() const { return travelling_.empty() ? Initiator::never : travelling_.top().at; }
    std::vector<std::byte>& arrive() {
        const std::size_t index = travelling_.top().frame;
        travelling_.pop();
        ++arrived;
        return frames_[index];
    }
    std::uint64_t sent = 0;
    std::uint64_t lost = 0;
    std::uint64_t arrived = 0;

private:
    struct Travelling {
        core::TimeNs at = 0;
        std::size_t frame = 0;
        bool operator>(const Travelling& other) const {
            return std::pair(at, frame) > std::pair(other.at, other.frame);
        }
    };
    double draw() { return std::uniform_real_distribution<double>(0, 1)(random_); }
    void travel(std::vector<std::byte> frame, core::TimeNs now) {
        constexpr core::TimeNs wire_ns = 3000;
        const core::TimeNs more =
            weather_.jitter_ns == 0
                ? 0
                : static_cast<core::TimeNs>(random_() % static_cast<std::uint64_t>(weather_.jitter_ns));
        frames_.push_back(std::move(frame));
        travelling_.push({now + wire_ns + more, frames_.size() - 1});
    }

    std::mt19937_64& random_;
    const Weather& weather_;
    std::deque<std::vector<std::byte>> frames_;
    std::priority_queue<Travelling, std::vector<Travelling>, std::greater<>> travelling_;
};

struct Setting {
    wire::RoceTransport service = wire::RoceTransport::rc;
    bool is_write = false;
    bool ipv6 = false;
    std::uint32_t psn = 0;
    std::uint32_t messages = 40;
    std::uint32_t retries = 1000;
    Weather weather;
};

class Conversation {
public:
    Conversation(const Setting& setting, std::uint64_t seed)
        : setting_(setting),
          random_(seed),
          forth_(random_, setting_.weather),
          back_(random_, setting_.weather),
          harness_(harness_config()),
          initiator_(initiator_config()),
          responder_(responder_config()) {
        spec_.dport = wire::roce_port;
        if (setting.ipv6) spec_.ipv6 = wire::Ipv6Addresses{{0xfd, 1}, {0xfd, 2}};
        for (std::uint32_t id = 0; id < setting.messages; ++id)
            payloads_.push_back(payload_of(id, random_() % bytes_max));
    }

    void run() {
        while (now_ < 3600 * core::ns_per_s) {
            take();
            while (post()) {
                send();
                take();
            }
            send();
            take();
            if (initiator_.idle() && forth_.next_ns() == Initiator::never && back_.next_ns() == Initiator::never) break;
            const core::TimeNs next = std::min({forth_.next_ns(), back_.next_ns(), initiator_.next_ns()});
            ASSERT_NE(next, Initiator::never) << "nothing will ever happen again";
            now_ = std::max(now_ + 1, next);
            while (forth_.next_ns() <= now_) respond(forth_.arrive());
            while (back_.next_ns() <= now_) hear(back_.arrive());
        }
        take();
        harness_.finish(now_);
        check_account();
    }

    std::vector<SendResult> results;
    std::uint64_t refused = 0;  ///< packets that the responder did not let through
    std::uint64_t damaged = 0;  ///< that arrived at the responder so
    std::uint64_t answers = 0;
    [[nodiscard]] const std::vector<Delivered>& delivered() const { return harness_.delivered; }
    [[nodiscard]] const Initiator& initiator() const { return initiator_; }
    [[nodiscard]] const std::vector<std::byte>& payload(std::uint64_t id) const { return payloads_[id]; }
    [[nodiscard]] std::uint64_t lost() const { return forth_.lost; }

private:
    HarnessConfig harness_config() {
        HarnessConfig config;
        config.sources[0].number_by = NumberBy::immediate;
        config.in_order = setting_.service == wire::RoceTransport::rc;
        return config;
    }
    Initiator::Config initiator_config() {
        Initiator::Config config;
        config.service = setting_.service;
        config.is_write = setting_.is_write;
        config.qp = responder_qp;
        config.source_qp = initiator_qp;
        config.psn = setting_.psn;
        config.path_mtu = setting_.service == wire::RoceTransport::ud ? 4096 : 256;
        config.rkey = rkey;
        config.qkey = 5;
        config.window = 1 + static_cast<std::uint32_t>(random_() % 60);
        config.ack_every = 1 + static_cast<std::uint32_t>(random_() % 20);
        config.messages_max = 1 + static_cast<std::uint32_t>(random_() % 8);
        config.timeout_ns = ns_per_ms;
        config.retries = setting_.retries;
        return config;
    }
    Responder::Config responder_config() {
        QueuePair qp;
        qp.service = setting_.service == wire::RoceTransport::rc   ? Service::rc
                     : setting_.service == wire::RoceTransport::uc ? Service::uc
                                                                   : Service::ud;
        qp.peer_qp = initiator_qp;
        qp.psn = setting_.psn;
        qp.path_mtu = initiator_.config().path_mtu;
        qp.qkey = 5;
        qp.rnr_timer = rnr_timer_code(40);
        qp.ack_every = static_cast<std::uint32_t>(random_() % 4);
        qp.needs_immediate = true;
        qp.region_count = 1;
        qp.regions[0] = {.va = va, .bytes = bytes_max, .rkey = rkey};
        Responder::Config config;
        config.sources.push_back({.source = 0, .queue_pair = qp});
        return config;
    }

    /// True if there was something to be posted, and room for it.
    bool post() {
        const std::uint32_t before = posted_;
        while (posted_ < setting_.messages &&
               initiator_.post({.id = posted_,
                                .bytes = static_cast<std::uint32_t>(payloads_[posted_].size()),
                                .immediate = posted_,
                                .va = va}))
            ++posted_;
        return posted_ > before;
    }
    void send() {
        for (SendPacket packet; initiator_.next(now_, packet);) {
            packet.packet.payload = payloads_[packet.id].data() + packet.offset;
            forth_.send(wire::make_roce_frame(spec_, packet.packet), now_);
            now_ += 100;
        }
    }
    void respond(const std::vector<std::byte>& frame) {
        wire::Datagram datagram;
        wire::RocePacket packet;
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        wire::Verdict verdict = wire::parse_frame(frame.data(), bytes, bytes, datagram);
        if (verdict == wire::ok && datagram.dport == wire::roce_port)
            verdict = wire::decode_roce(datagram, true, packet);
        if (verdict != wire::ok || datagram.dport != wire::roce_port) {
            ++damaged;
            return;
        }
        Room room;
        room.packet = draw() >= setting_.weather.not_ready;
        room.message = draw() >= setting_.weather.not_ready;
        const Ruling ruling = responder_.rule(0, packet, verdict, room, now_);
        EXPECT_FALSE(ruling.failed) << "nothing here is a reason to fail";
        if (ruling.answers()) {
            ++answers;
            std::vector<std::byte> out(wire::roce_answer_bytes_max);
            out.resize(wire::write_roce_answer(frame.data(), datagram, ruling.answer, out));
            back_.send(std::move(out), now_);
        }
        if (ruling.accepted())
            harness_.add(packet, now_);
        else
            ++refused;
    }
    void hear(const std::vector<std::byte>& frame) {
        wire::Datagram datagram;
        wire::RocePacket packet;
        const auto bytes = static_cast<std::uint32_t>(frame.size());
        if (wire::parse_frame(frame.data(), bytes, bytes, datagram) != wire::ok || datagram.dport != wire::roce_port ||
            wire::decode_roce(datagram, true, packet) != wire::Verdict::not_for_us_roce_response)
            return;
        EXPECT_EQ(packet.qp, initiator_qp);
        initiator_.answered({.psn = packet.psn, .syndrome = packet.syndrome, .msn = packet.msn}, now_);
    }
    /// What is acknowledged is there already when the acknowledgement comes.
    void take() {
        for (SendResult result; initiator_.take(result); results.push_back(result)) {
            if (result.status != SendStatus::acknowledged) continue;
            const auto is = [&](const Delivered& message) { return message.number == result.id && message.complete; };
            EXPECT_TRUE(std::ranges::any_of(harness_.delivered, is)) << "message " << result.id;
        }
    }
    /// Every frame that arrived is in one place: damaged, refused, or (Harness::finish counts those) handed on.
    void check_account() {
        EXPECT_EQ(damaged + refused + released().size(), forth_.arrived);
        EXPECT_EQ(initiator_.account().packets, forth_.sent);
        EXPECT_EQ(results.size(), initiator_.account().posted);
    }
    double draw() { return std::uniform_real_distribution<double>(0, 1)(random_); }

    Setting setting_;
    std::mt19937_64 random_;
    Way forth_;
    Way back_;
    Harness harness_;
    Initiator initiator_;
    Responder responder_;
    wire::FrameSpec spec_;
    std::vector<std::vector<std::byte>> payloads_;
    std::uint32_t posted_ = 0;
    core::TimeNs now_ = core::ns_per_s;
};

Setting setting_of(std::uint64_t seed, wire::RoceTransport service) {
    std::mt19937_64 random(seed * 7919);
    const auto up_to = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
    Setting setting;
    setting.service = service;
    setting.is_write = service != wire::RoceTransport::ud && random() % 2 == 0;
    setting.ipv6 = random() % 4 == 0;
    // Half of them wrap.
    setting.psn = static_cast<std::uint32_t>(random() % 2 == 0 ? random() & 0xffffff : 0xffffff - random() % 100);
    setting.weather = {.loss = up_to(0.2), .twice = up_to(0.2), .damage = up_to(0.1)};
    if (random() % 2 == 0) setting.weather.jitter_ns = static_cast<core::TimeNs>(random() % 20'000);
    if (service == wire::RoceTransport::rc && random() % 2 == 0) setting.weather.not_ready = up_to(0.3);
    return setting;
}

TEST(RoceConvergence, ReliableConnectionsDeliverEverythingOnceAndWhole) {
    std::uint64_t retransmitted = 0, waits = 0;
    for (std::uint64_t seed = 1; seed <= weir::test::repeated(std::uint64_t{300}); ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        const Setting setting = setting_of(seed, wire::RoceTransport::rc);
        Conversation conversation(setting, seed);
        ASSERT_NO_FATAL_FAILURE(conversation.run());
        ASSERT_EQ(conversation.results.size(), setting.messages);
        for (const SendResult& result : conversation.results) ASSERT_EQ(result.status, SendStatus::acknowledged);
        ASSERT_EQ(conversation.delivered().size(), setting.messages);
        for (std::uint32_t id = 0; id < setting.messages; ++id) {
            const Delivered& message = conversation.delivered()[id];
            ASSERT_EQ(message.number, id) << "in order";
            ASSERT_TRUE(message.complete);
            ASSERT_EQ(message.bytes, conversation.payload(id));
        }
        retransmitted += conversation.initiator().account().retransmitted;
        waits += conversation.initiator().account().rnr_waits;
        if (HasFailure()) return;
    }
    EXPECT_GT(retransmitted, weir::test::repeated(10'000));
    EXPECT_GT(waits, 1000);
}

TEST(RoceConvergence, AGoodNetworkNeedsNothingTwice) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Setting setting = setting_of(seed, wire::RoceTransport::rc);
        setting.weather = {};
        Conversation conversation(setting, seed);
        ASSERT_NO_FATAL_FAILURE(conversation.run());
        const Initiator::Account& account = conversation.initiator().account();
        EXPECT_EQ(account.retransmitted + account.timeouts + account.sequence_naks + account.rnr_waits, 0) << seed;
        EXPECT_EQ(account.stale_answers + account.ghost_answers, 0) << seed;
        EXPECT_EQ(account.acknowledged, setting.messages);
    }
}

TEST(RoceConvergence, WhatIsGivenUpIsSaidSoAndNothingElseIs) {
    std::uint64_t failed = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        Setting setting = setting_of(seed, wire::RoceTransport::rc);
        setting.weather.loss = 0.5;
        setting.retries = 2;
        Conversation conversation(setting, seed);
        ASSERT_NO_FATAL_FAILURE(conversation.run());
        std::set<std::uint64_t> acknowledged;
        for (const SendResult& result : conversation.results) {
            if (result.status == SendStatus::acknowledged)
                acknowledged.insert(result.id);
            else
                ++failed;
        }
        std::set<std::uint64_t> there;
        for (const Delivered& message : conversation.delivered()) {
            if (!message.complete) continue;
            EXPECT_TRUE(there.insert(message.number).second) << "message " << message.number << " twice";
            EXPECT_EQ(message.bytes, conversation.payload(message.number));
        }
        // More may be there than was acknowledged (the acknowledgement was lost), never less.
        EXPECT_TRUE(std::ranges::includes(there, acknowledged));
        if (HasFailure()) return;
    }
    EXPECT_GT(failed, 100);
}

void expect_no_mixture(const Conversation& conversation) {
    std::set<std::uint64_t> there;
    for (const Delivered& message : conversation.delivered()) {
        ASSERT_LT(message.number, conversation.initiator().account().posted);
        ASSERT_TRUE(there.insert(message.number).second) << "message " << message.number << " twice";
        const std::vector<std::byte>& expected = conversation.payload(message.number);
        if (message.complete) {
            ASSERT_EQ(message.bytes, expected);
        }
        for (const ByteRange& range : message.ranges) {
            ASSERT_LE(range.end, expected.size());
            ASSERT_TRUE(std::equal(message.bytes.begin() + range.begin, message.bytes.begin() + range.end,
                                   expected.begin() + range.begin))
                << "message " << message.number;
        }
    }
}

TEST(RoceConvergence, UnreliableConnectionsNeverMixMessages) {
    std::uint64_t complete = 0, refused = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        Conversation conversation(setting_of(seed, wire::RoceTransport::uc), seed);
        ASSERT_NO_FATAL_FAILURE(conversation.run());
        ASSERT_NO_FATAL_FAILURE(expect_no_mixture(conversation));
        EXPECT_EQ(conversation.answers, 0);
        for (const Delivered& message : conversation.delivered()) complete += message.complete ? 1 : 0;
        refused += conversation.refused;
        if (HasFailure()) return;
    }
    EXPECT_GT(complete, 500);
    EXPECT_GT(refused, 1000);
}

TEST(RoceConvergence, DatagramsArriveWholeOrNotAtAll) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        const Setting setting = setting_of(seed, wire::RoceTransport::ud);
        Conversation conversation(setting, seed);
        ASSERT_NO_FATAL_FAILURE(conversation.run());
        ASSERT_NO_FATAL_FAILURE(expect_no_mixture(conversation));
        for (const Delivered& message : conversation.delivered()) EXPECT_TRUE(message.complete);
        EXPECT_GE(conversation.delivered().size() + conversation.lost() + conversation.damaged, setting.messages);
        if (HasFailure()) return;
    }
}

TEST(RoceConvergence, TheSameSeedIsTheSameConversation) {
    const Setting setting = setting_of(11, wire::RoceTransport::rc);
    Conversation first(setting, 11);
    ASSERT_NO_FATAL_FAILURE(first.run());
    Conversation second(setting, 11);
    ASSERT_NO_FATAL_FAILURE(second.run());
    EXPECT_EQ(first.initiator().account().packets, second.initiator().account().packets);
    EXPECT_EQ(first.answers, second.answers);
}

}  // namespace
}  // namespace weir::roce::test

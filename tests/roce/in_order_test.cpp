// The in-order path: what ends a message before its last packet, where numbers come from, and that it makes the same of
// packets in order as the listener does.
#include <algorithm>
#include <random>
#include <tuple>

#include "effort.hpp"
#include "listener_harness.hpp"
#include "roce/responder/responder.hpp"

namespace weir::roce::test {
namespace {

using Bytes = std::vector<std::byte>;
using C = PacketCounter;

class InOrderTest : public ::testing::Test {
protected:
    InOrderTest() { config.in_order = true; }
    void start(NumberBy by = NumberBy::immediate) {
        for (MessageSource& source : config.sources) source.number_by = by;
        harness = std::make_unique<Harness>(config);
    }
    /// The packets of a message of `packets` packets (the last one short), kept alive here.
    std::vector<wire::RocePacket> message(std::uint32_t id, std::uint32_t packets, std::uint32_t psn) {
        payloads.push_back(payload_of(id, packets * pmtu - 100));
        spec.immediate = id;
        return packets_of(spec, payloads.back(), psn);
    }
    void send(const std::vector<wire::RocePacket>& packets, std::uint32_t source = 0) {
        for (const wire::RocePacket& packet : packets) harness->add(packet, now += 1000, source);
    }
    /// Its packets up to but not including `end`.
    void send_part(const std::vector<wire::RocePacket>& packets, std::size_t begin, std::size_t end) {
        send(
            {packets.begin() + static_cast<std::ptrdiff_t>(begin), packets.begin() + static_cast<std::ptrdiff_t>(end)});
    }
    void time_out() { harness->expire(now += config.timeout_ns); }
    void finish() { harness->finish(now); }
    std::uint64_t count(C counter) const { return harness->packets.get(counter); }
    /// Of the whole messages.
    std::vector<std::uint64_t> numbers() const {
        std::vector<std::uint64_t> out;
        for (const Delivered& got : harness->delivered)
            if (got.complete) out.push_back(got.number);
        return out;
    }
    /// A header of 300 bytes, more than one packet, with the number in its last 8.
    void use_declared() {
        wire::FormatOptions options;
        options.declared.name = "d";
        options.declared.header_bytes = 300;
        options.declared.event.emplace();
        options.declared.event->offset = 292;
        options.declared.event->bytes = 8;
        config.sources[0].format = wire::find_format("declared");
        ASSERT_NE(config.sources[0].format, nullptr);
        config.sources[0].context = config.sources[0].format->make_context(options);
    }
    void set_number(std::uint64_t number) { std::memcpy(payloads.back().data() + 292, &number, 8); }

    HarnessConfig config;
    MessageSpec spec{wire::RoceTransport::rc, false, std::nullopt, pmtu};
    std::deque<Bytes> payloads;
    std::unique_ptr<Harness> harness;
    core::TimeNs now = 0;
};
using Numbers = std::vector<std::uint64_t>;

TEST_F(InOrderTest, AMessageIsDeliveredAtItsLastPacketAndPsnsWrap) {
    start();
    const auto packets = message(7, 9, 0xfffffc);
    send_part(packets, 0, 8);
    EXPECT_TRUE(harness->delivered.empty());
    EXPECT_EQ(harness->receiver.collecting(), 1U);
    send_part(packets, 8, 9);
    ASSERT_EQ(harness->delivered.size(), 1U);
    send(message(8, 1, 5));
    finish();
    EXPECT_EQ(numbers(), (Numbers{7, 8}));
    EXPECT_EQ(harness->delivered[0].bytes, payloads[0]);
    EXPECT_EQ(harness->delivered[0].total, payloads[0].size());
    const PsnCounts::Values counts = harness->psn_counts();
    EXPECT_EQ(counts.seen, 10U);
    EXPECT_EQ(counts.missing(), 0U);
    EXPECT_EQ(counts.senders, 1U);
    EXPECT_EQ(counts.transport, wire::RoceTransport::rc);
}

TEST_F(InOrderTest, AMessageWithoutPayloadIsDelivered) {
    start();
    wire::RocePacket packet = message(3, 1, 0)[0];
    packet.bytes = 0;
    send({packet});
    finish();
    ASSERT_EQ(numbers(), (Numbers{3}));
    EXPECT_EQ(harness->delivered[0].total, 0U);
}

TEST_F(InOrderTest, ATimeOutInMidMessageLeavesItWithoutItsNumberAndTheRestLate) {
    config.timeout_ns = 100'000;
    start();
    const auto packets = message(1, 6, 0);
    send_part(packets, 0, 3);
    time_out();
    EXPECT_EQ(count(C::unbound), 3U);
    EXPECT_EQ(harness->receiver.collecting(), 0U);
    send_part(packets, 3, 6);
    EXPECT_EQ(count(C::late), 3U);
    send(message(2, 2, 6));
    finish();
    EXPECT_EQ(numbers(), (Numbers{2}));
}

TEST_F(InOrderTest, APacketEndsWhatIsDueBeforeItIsTaken) {
    config.timeout_ns = 100'000;
    start();
    const auto packets = message(1, 3, 0);
    send_part(packets, 0, 2);
    now += config.timeout_ns;
    send_part(packets, 2, 3);
    EXPECT_EQ(count(C::unbound), 2U);
    EXPECT_EQ(count(C::late), 1U);
    finish();
}

TEST_F(InOrderTest, AWriteThatEndsEarlyIsDeliveredWithWhatCame) {
    config.timeout_ns = 100'000;
    spec.is_write = true;
    start(NumberBy::arrival);
    const auto packets = message(1, 6, 0);
    send_part(packets, 0, 3);
    time_out();
    ASSERT_EQ(harness->delivered.size(), 1U);
    const Delivered& got = harness->delivered[0];
    EXPECT_FALSE(got.complete);
    EXPECT_EQ(got.total, payloads[0].size());
    ASSERT_EQ(got.ranges.size(), 1U);
    EXPECT_EQ(got.ranges[0].end, 3 * pmtu);
    send_part(packets, 3, 6);
    EXPECT_EQ(count(C::late), 3U);
    send(message(2, 2, 6));
    finish();
    EXPECT_EQ(numbers(), (Numbers{1}));
}

TEST_F(InOrderTest, ASendOfUnknownSizeIsDeliveredWithWhatCameIfItHasANumber) {
    start(NumberBy::arrival);
    send_part(message(1, 6, 0), 0, 3);
    EXPECT_TRUE(harness->receiver.evict_oldest(now));
    EXPECT_FALSE(harness->receiver.evict_oldest(now));
    harness->drain(now);
    ASSERT_EQ(harness->delivered.size(), 1U);
    EXPECT_FALSE(harness->delivered[0].total_known);
    EXPECT_EQ(harness->delivered[0].bytes.size(), 3 * pmtu);
    finish();
}

TEST_F(InOrderTest, CountGoesOnAfterAWriteAndIsLostAfterASendThatEndedEarly) {
    config.timeout_ns = 100'000;
    spec.is_write = true;
    start(NumberBy::count);
    send(message(0, 2, 50));
    const auto write = message(1, 4, 52);
    send_part(write, 0, 2);
    time_out();
    send_part(write, 2, 4);
    send(message(2, 2, 56));
    EXPECT_EQ(numbers(), (Numbers{0, 2}));
    EXPECT_EQ(harness->delivered[1].number, 1U);
    spec.is_write = false;
    const auto lost = message(3, 4, 58);
    send_part(lost, 0, 2);
    time_out();
    send_part(lost, 2, 4);
    send(message(4, 2, 62));
    EXPECT_EQ(count(C::unbound), 4U) << "how many there were before it is not known";
    harness->forget(now);
    send(message(3, 2, 9000));
    finish();
    EXPECT_EQ(numbers(), (Numbers{0, 2, 3})) << "after the highest number so far";
}

TEST_F(InOrderTest, MessagesOfOneSizeAreNumberedByTheirPsns) {
    config.timeout_ns = 100'000;
    config.sources[0].message_bytes = 4 * pmtu - 100;
    config.sources[0].first_psn = 0xfffffe;
    start(NumberBy::count);
    send(message(0, 4, 0xfffffe));
    const auto cut = message(1, 4, 2);
    send_part(cut, 0, 1);
    time_out();
    send_part(cut, 1, 4);
    send(message(2, 4, 6));
    finish();
    EXPECT_EQ(numbers(), (Numbers{0, 2}));
    ASSERT_EQ(harness->delivered.size(), 3U);
    EXPECT_EQ(harness->delivered[1].number, 1U);
    EXPECT_EQ(harness->delivered[1].total, 4 * pmtu - 100);
    EXPECT_EQ(count(C::late), 3U);
}

TEST_F(InOrderTest, WhatIsNotOfTheSizeThatWasSaidIsAConflict) {
    config.sources[0].message_bytes = 4 * pmtu - 100;
    start();
    send(message(1, 3, 0));
    EXPECT_EQ(count(C::conflict), 3U);
    const auto longer = message(2, 6, 3);
    send_part(longer, 0, 5);
    harness->receiver.finish(now);
    EXPECT_EQ(count(C::conflict), 8U) << "it had more than a message has";
    send_part(longer, 5, 6);
    send(message(3, 4, 9));
    finish();
    EXPECT_EQ(numbers(), (Numbers{3}));
    EXPECT_EQ(count(C::late), 1U);
}

TEST_F(InOrderTest, ANumberFromTheHeaderIsStripped) {
    use_declared();
    spec.is_write = true;
    start(NumberBy::format);
    auto whole = message(1, 5, 0);
    set_number(4242);
    send(whole);
    auto cut = message(2, 5, 5);
    set_number(4243);
    send_part(cut, 0, 3);
    harness->receiver.finish(now);
    auto too_short = message(3, 5, 8);
    send_part(too_short, 0, 1);
    finish();
    ASSERT_EQ(harness->delivered.size(), 2U);
    EXPECT_EQ(harness->delivered[0].number, 4242U);
    EXPECT_EQ(harness->delivered[0].bytes, Bytes(payloads[0].begin() + 300, payloads[0].end()));
    EXPECT_EQ(harness->delivered[1].number, 4243U);
    EXPECT_EQ(harness->delivered[1].ranges[0].end, 3 * pmtu - 300);
    EXPECT_EQ(harness->delivered[1].total, 5 * pmtu - 400);
    EXPECT_EQ(count(C::unbound), 1U) << "its header had not come";
}

TEST_F(InOrderTest, AWholeMessageWithoutTheImmediateThatWouldNumberItIsUnbound) {
    start();
    auto packets = message(1, 3, 0);
    packets[2].has_immediate = false;
    send(packets);
    finish();
    EXPECT_EQ(count(C::unbound), 3U);
    EXPECT_EQ(harness->psn_counts().unnumbered, 3U);
}

TEST_F(InOrderTest, WithoutRoomTheWholeMessageGoesAndTheNextOneComes) {
    config.buffers_max = 4;
    start();
    send(message(1, 8, 0));
    send(message(2, 3, 8));
    finish();
    EXPECT_EQ(numbers(), (Numbers{2}));
    EXPECT_EQ(count(C::unbound), 4U) << "it was itself the oldest";
    EXPECT_EQ(count(C::late), 4U);
}

TEST_F(InOrderTest, WithoutRoomTheOldestMessageOfAllMakesPlace) {
    config.sources.resize(3);
    for (std::uint32_t i = 0; i < 3; ++i) config.sources[i].source = i;
    config.messages_max = 2;
    start();
    const auto a = message(1, 3, 0), b = message(2, 3, 100), c = message(3, 3, 200);
    harness->add(a[0], now += 1000, 0);
    harness->add(b[0], now += 1000, 1);
    EXPECT_EQ(harness->receiver.oldest_ns(), 1000);
    send(c, 2);
    EXPECT_EQ(harness->receiver.oldest_ns(), 2000);
    harness->add(a[1], now += 1000, 0);
    harness->add(b[1], now += 1000, 1);
    harness->add(b[2], now += 1000, 1);
    EXPECT_EQ(harness->receiver.oldest_ns(), InOrderReceiver::never);
    finish();
    EXPECT_EQ(numbers(), (Numbers{3, 2}));
    EXPECT_EQ(count(C::unbound), 1U);
    EXPECT_EQ(count(C::late), 1U);
}

TEST_F(InOrderTest, WhatFindsNoRoomAtAllIsCountedSoAndLosesTheCount) {
    config.messages_max = 1;
    start(NumberBy::count);
    send(message(0, 1, 0));
    // Somebody else has the only slot, and does not give it back.
    assemble::Message* taken = harness->table().open_unbound(0, now);
    ASSERT_NE(taken, nullptr);
    send(message(1, 3, 1));
    EXPECT_EQ(count(C::no_room), 3U);
    harness->table().abandon(*taken, C::unbound);
    send(message(2, 2, 4));
    EXPECT_EQ(count(C::unbound), 2U);
    harness->forget(now, 70);
    send(message(1, 2, 70));
    finish();
    EXPECT_EQ(numbers(), (Numbers{0, 1}));
}

TEST_F(InOrderTest, AnEventThatTheBuilderHasClosedTakesNoMessageThatEndsLater) {
    start();
    const auto packets = message(5, 4, 0);
    send_part(packets, 0, 2);
    harness->table().execute({.kind = assemble::Command::Kind::close, .source = 0, .number = 5}, now);
    send_part(packets, 2, 4);
    send(message(6, 2, 4));
    finish();
    EXPECT_EQ(numbers(), (Numbers{6}));
    EXPECT_EQ(count(C::late), 4U);
}

TEST_F(InOrderTest, APeerThatConnectsAnewEndsWhatItHadBegun) {
    start();
    const auto packets = message(1, 4, 7);
    send_part(packets, 0, 2);
    harness->forget(now, 0xabcdef);
    EXPECT_EQ(count(C::unbound), 2U);
    EXPECT_EQ(harness->receiver.collecting(), 0U);
    send(message(2, 3, 0xabcdef));
    finish();
    EXPECT_EQ(numbers(), (Numbers{2}));
    EXPECT_EQ(harness->psn_counts().missing(), 0U);
    EXPECT_EQ(harness->psn_counts().senders, 1U);
}

TEST_F(InOrderTest, AnotherPassCountsFromNought) {
    for (const NumberBy by : {NumberBy::count, NumberBy::arrival}) {
        start(by);
        send(message(0, 3, 100));
        send_part(message(1, 3, 103), 0, 1);
        harness->receiver.begin_pass(now);
        harness->table().begin_pass(1000, 1, now);
        send(message(0, 3, 100));
        finish();
        EXPECT_EQ(numbers(), (Numbers{0, 1000}));
    }
}

TEST_F(InOrderTest, WhatHadBeenBegunComesAgainIfThePeerTurnsOutToHaveBegunEarlier) {
    start(NumberBy::count);
    const auto a = message(0, 2, 100), b = message(1, 3, 102);
    send_part(b, 0, 2);
    send(a);
    send(b);
    finish();
    EXPECT_EQ(numbers(), (Numbers{0, 1}));
    EXPECT_EQ(count(C::duplicate), 2U);
    const PsnCounts::Values counts = harness->psn_counts();
    EXPECT_EQ(counts.expected, 5U);
    EXPECT_EQ(counts.seen, 5U);
    EXPECT_EQ(counts.repeated, 2U);
}

TEST_F(InOrderTest, WhatHadBeenTakenBeforeAnEarlierBeginningIsADuplicate) {
    start();
    const auto a = message(1, 2, 0xffffff), b = message(2, 3, 1), c = message(3, 2, 4);
    send(b);
    send_part(c, 0, 1);
    send(a);
    send(b);
    send(c);
    finish();
    EXPECT_EQ(numbers(), (Numbers{2, 1, 3}));
    EXPECT_EQ(count(C::duplicate), 4U);
    EXPECT_EQ(count(C::placed), 7U);
}

TEST_F(InOrderTest, AMessageBeforeTheCountedOnesHasNoNumber) {
    start(NumberBy::count);
    const auto a = message(9, 2, 8), b = message(0, 2, 10), c = message(1, 2, 12);
    send(b);
    send(a);
    send(b);
    send(c);
    finish();
    EXPECT_EQ(numbers(), (Numbers{0, 1}));
    EXPECT_EQ(count(C::unbound), 2U);
    EXPECT_EQ(count(C::duplicate), 2U);
}

TEST_F(InOrderTest, AnEarlierBeginningBeforeAnotherTakesNothingTwice) {
    start();
    const auto a = message(1, 2, 10), b = message(2, 2, 12), c = message(3, 2, 14);
    send(c);
    send_part(b, 0, 1);
    send(a);  // which begins before b, of which a packet had come
    send(b);
    send(c);
    finish();
    EXPECT_EQ(numbers(), (Numbers{3, 1, 2}));
    EXPECT_EQ(count(C::duplicate), 3U);
}

TEST_F(InOrderTest, AMessageThatReachesIntoWhatWasTakenIsNotMadeWholeByWhatComesAfter) {
    start();
    send(message(1, 4, 1000));
    send(message(2, 4, 1004));
    for (const std::uint32_t i : {0U, 1U, 2U}) send(message(3 + i, 4, 998 + 4 * i));
    finish();
    EXPECT_EQ(numbers(), (Numbers{1, 2}));
    EXPECT_EQ(count(C::unbound), 2U);    // 998, 999
    EXPECT_EQ(count(C::duplicate), 8U);  // 1000 to 1007
    EXPECT_EQ(count(C::late), 2U);       // 1008, 1009
}

TEST_F(InOrderTest, BeginningsWithGapsBetweenThemTakeNothingTwice) {
    start(NumberBy::arrival);
    const auto a = message(0, 1, 10), b = message(0, 2, 11), c = message(0, 2, 14);
    send(c);
    send(b);
    send(a);
    send(b);
    send(message(0, 1, 13));
    send(c);
    finish();
    EXPECT_EQ(numbers(), (Numbers{0, 1, 2, 3}));
    EXPECT_EQ(count(C::duplicate), 4U);
}

TEST_F(InOrderTest, ASenderThatBeginsAnewFarBeforeIsCountedAsTheListenerDoesIt) {
    config.psn_window = 1024;
    std::vector<Numbers> got;
    for (const bool in_order : {true, false}) {
        config.in_order = in_order;
        start(NumberBy::count);
        for (std::uint32_t i = 0; i < 8; ++i) send(message(0, 8, 100'000 + 8 * i));
        for (std::uint32_t i = 0; i < 8; ++i) send(message(0, 8, 50'000 + 8 * i));
        finish();
        got.push_back(numbers());
        EXPECT_EQ(harness->psn_counts().restarts, 1U);
        EXPECT_EQ(harness->psn_counts().missing(), 0U);
        EXPECT_EQ(count(C::placed), 128U);
    }
    EXPECT_EQ(got[0], got[1]);
}

TEST_F(InOrderTest, HalfTheCircleBeforeIsFarBeforeToo) {
    start();
    send(message(1, 1, 0));
    send(message(2, 1, 0x800000));
    send(message(3, 1, 0x800001));
    finish();
    EXPECT_EQ(numbers(), (Numbers{1, 2, 3}));
    EXPECT_EQ(harness->psn_counts().restarts, 1U);
    EXPECT_EQ(harness->psn_counts().missing(), 0U);
}

TEST_F(InOrderTest, AnEarlierBeginningAfterATimeOutLeavesTheRestLate) {
    config.timeout_ns = 100'000;
    start();
    const auto a = message(1, 1, 9), b = message(2, 4, 10);
    send_part(b, 0, 2);
    time_out();
    send(a);
    send(b);
    send(message(3, 1, 14));
    finish();
    EXPECT_EQ(numbers(), (Numbers{1, 3}));
    EXPECT_EQ(count(C::unbound), 2U);
    EXPECT_EQ(count(C::duplicate), 2U);
    EXPECT_EQ(count(C::late), 2U);
}

TEST_F(InOrderTest, ABeginningFarBeforeBeginsTheAccountAnew) {
    config.psn_window = 1024;
    start();
    send(message(1, 1, 100'000));
    send(message(2, 1, 10));
    finish();
    EXPECT_EQ(numbers(), (Numbers{1, 2}));
    EXPECT_EQ(harness->psn_counts().restarts, 1U);
    EXPECT_EQ(harness->psn_counts().missing(), 0U);
}

TEST_F(InOrderTest, PsnsThatOthersUseAreInTheirTurn) {
    start();
    send(message(1, 2, 0));
    harness->receiver.skip(0, message(0, 1, 2)[0], now);
    send(message(2, 2, 3));
    harness->receiver.note(0, message(0, 1, 3)[0]);
    finish();
    EXPECT_EQ(numbers(), (Numbers{1, 2}));
    const PsnCounts::Values counts = harness->psn_counts();
    EXPECT_EQ(counts.seen, 5U);
    EXPECT_EQ(counts.repeated, 1U);
    EXPECT_EQ(counts.missing(), 0U);
}

// What happens to a source's packets, drawn from a seed: the same for a listener and for the in-order path.
class Play {
public:
    Play(std::uint64_t seed, bool in_order) : random_(seed) {
        config_.in_order = in_order;
        config_.sources.resize(2);
        config_.timeout_ns = 60'000;
        config_.messages_max = 64;
        config_.buffers_max = 1024;
        config_.horizon = 512;
        config_.psn_window = 4096;
        for (std::uint32_t i = 0; i < 2; ++i) {
            MessageSource& source = config_.sources[i];
            source.source = i;
            source.number_by = static_cast<NumberBy>(draw(4));
            if (source.number_by == NumberBy::format) use_header(source);
            if (draw(2) == 0) source.message_bytes = 700 + 4 * draw(500);
            if (draw(2) == 0) psn_[i] = 0xffffff - draw(50);
            source.in_order = true;
            if (draw(2) == 0) source.first_psn = psn_[i];
        }
        harness_ = std::make_unique<Harness>(config_);
    }
    void run() {
        for (int step = 0; step < 300; ++step) {
            now_ += 1 + draw(3000);
            const std::uint32_t what = draw(100), source = draw(2);
            if (what < 90) {
                packet(source);
            } else if (what < 94) {
                harness_->expire(now_ += draw(80'000));
            } else if (what < 97) {
                static_cast<void>(config_.in_order ? harness_->receiver.evict_oldest(now_)
                                                   : harness_->listener.evict_oldest(now_));
                harness_->drain(now_);
            } else if (what < 98) {
                left_[source].clear();
                psn_[source] = draw(1U << 24U);
                harness_->forget(now_, draw(2) == 0 ? std::optional(psn_[source]) : std::nullopt, source);
            } else if (!sent_[source].empty()) {
                note(source, sent_[source][draw(static_cast<std::uint32_t>(sent_[source].size()))]);
            }
        }
        harness_->finish(now_);
    }
    [[nodiscard]] const Harness& harness() const { return *harness_; }

private:
    std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
    static void use_header(MessageSource& source) {
        wire::FormatOptions options;
        options.declared.name = "d";
        options.declared.header_bytes = 300;
        options.declared.event.emplace();
        options.declared.event->bytes = 4;
        source.format = wire::find_format("declared");
        source.context = source.format->make_context(options);
    }
    /// The next one of this source.
    void packet(std::uint32_t source) {
        std::deque<wire::RocePacket>& left = left_[source];
        if (left.empty()) {
            const std::uint32_t expected = config_.sources[source].message_bytes;
            payloads_.push_back(payload_of(id_++, expected != 0 ? expected : 1 + draw(2000)));
            if (draw(2) == 0) spec_.immediate = id_ / 2;
            const auto packets = packets_of(spec_, payloads_.back(), psn_[source]);
            spec_ = {wire::RoceTransport::rc, draw(2) == 0, std::nullopt, pmtu};
            left.assign(packets.begin(), packets.end());
            psn_[source] = (psn_[source] + static_cast<std::uint32_t>(packets.size())) & 0xffffff;
        }
        harness_->add(left.front(), now_, source);
        sent_[source].push_back(left.front());
        left.pop_front();
    }
    void note(std::uint32_t source, const wire::RocePacket& packet) {
        if (config_.in_order)
            harness_->receiver.note(source, packet);
        else
            harness_->listener.note(source, packet, now_);
    }

    std::mt19937_64 random_;
    HarnessConfig config_;
    MessageSpec spec_{wire::RoceTransport::rc, false, std::nullopt, pmtu};
    std::deque<Bytes> payloads_;
    std::deque<wire::RocePacket> left_[2];
    std::vector<wire::RocePacket> sent_[2];
    std::uint32_t psn_[2] = {0, 100};
    std::uint32_t id_ = 0;
    core::TimeNs now_ = 0;
    std::unique_ptr<Harness> harness_;
};

void expect_same_messages(const Harness& a, const Harness& b) {
    for (std::size_t i = 0; i < core::count_of<assemble::MessageCounter>; ++i) {
        const auto counter = static_cast<assemble::MessageCounter>(i);
        ASSERT_EQ(a.messages.get(counter), b.messages.get(counter)) << i;
    }
}

void expect_same(const Harness& a, const Harness& b, std::uint32_t sources) {
    ASSERT_EQ(a.delivered.size(), b.delivered.size());
    for (std::size_t i = 0; i < a.delivered.size(); ++i) {
        const Delivered &x = a.delivered[i], &y = b.delivered[i];
        ASSERT_EQ(std::tuple(x.source, x.number, x.epoch, x.complete, x.total_known, x.total),
                  std::tuple(y.source, y.number, y.epoch, y.complete, y.total_known, y.total));
        ASSERT_TRUE(std::ranges::equal(x.ranges, y.ranges, [](const ByteRange& one, const ByteRange& other) {
            return one.begin == other.begin && one.end == other.end;
        }));
        ASSERT_EQ(x.bytes, y.bytes);
        ASSERT_EQ(x.meta, y.meta);
    }
    for (std::size_t i = 0; i < core::count_of<C>; ++i)
        ASSERT_EQ(a.packets.get(static_cast<C>(i)), b.packets.get(static_cast<C>(i))) << i;
    for (std::uint32_t source = 0; source < sources; ++source) {
        const PsnCounts::Values x = a.psn_counts(source), y = b.psn_counts(source);
        ASSERT_EQ(std::tuple(x.transport, x.expected, x.seen, x.out_of_order, x.repeated, x.restarts, x.jumps),
                  std::tuple(y.transport, y.expected, y.seen, y.out_of_order, y.repeated, y.restarts, y.jumps));
        ASSERT_EQ(std::tuple(x.jump_psns, x.unnumbered, x.senders, x.sender),
                  std::tuple(y.jump_psns, y.unnumbered, y.senders, y.sender));
    }
}

TEST(InOrder, MakesTheSameOfPacketsInOrderAsTheListener) {
    std::size_t delivered = 0, partial = 0;
    for (std::uint64_t seed = 1; seed <= weir::test::repeated(std::uint64_t{100}); ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        Play listened(seed, false);
        listened.run();
        Play in_order(seed, true);
        in_order.run();
        ASSERT_NO_FATAL_FAILURE(expect_same(listened.harness(), in_order.harness(), 2));
        ASSERT_NO_FATAL_FAILURE(expect_same_messages(listened.harness(), in_order.harness()));
        delivered += in_order.harness().delivered.size();
        for (const Delivered& got : in_order.harness().delivered) partial += got.complete ? 0 : 1;
        if (HasFailure()) return;
    }
    EXPECT_GT(delivered, weir::test::repeated(2000U));
    EXPECT_GT(partial, weir::test::repeated(50U));
}

// A responder in front of either: packets that are lost, come again, come too soon, and break the rules.
class Answered {
public:
    Answered(std::uint64_t seed, bool in_order, bool start_known)
        : random_(seed), psn_(draw(2) == 0 ? draw(1U << 24U) : 0xffffff - draw(30)) {
        QueuePair qp;
        qp.peer_qp = draw(2) == 0 ? std::optional<std::uint32_t>(7) : std::nullopt;
        if (start_known) qp.psn = psn_;
        qp.max_message_bytes = 4096;
        qp.region_count = 1;
        qp.regions[0] = {.va = 0, .bytes = 4096, .rkey = 0, .stride = 4096};
        responder_.configure(0, qp);
        config_.in_order = in_order;
        config_.sources[0].number_by = draw(2) == 0 ? NumberBy::immediate : NumberBy::count;
        config_.sources[0].in_order = true;
        config_.sources[0].max_message_bytes = 4096;
        config_.sources[0].first_psn = qp.psn;
        config_.messages_max = 64;
        config_.buffers_max = 1024;
        config_.horizon = 512;
        config_.psn_window = 4096;
        harness_ = std::make_unique<Harness>(config_);
        for (std::uint32_t id = 0; id < 60; ++id) {
            payloads_.push_back(payload_of(id, 1 + draw(1500)));
            const MessageSpec spec{wire::RoceTransport::rc, draw(2) == 0, id, pmtu};
            for (wire::RocePacket packet : packets_of(spec, payloads_.back(), psn_)) {
                packet.ack_request = packet.ends() && draw(4) == 0;
                packets_.push_back(packet);
                psn_ = (psn_ + 1) & 0xffffff;
            }
        }
    }
    /// Packets are lost, and the sender goes back now and then: to what is due, or to some packet before it.
    void run() {
        for (std::size_t at = draw(6), steps = 0; steps < 2000; ++at, ++steps) {
            if (at >= packets_.size() || draw(6) == 0) at = due();
            if (at >= packets_.size()) break;
            if (draw(12) == 0) at -= std::min<std::size_t>(at, draw(8));
            if (draw(10) > 0) take(packets_[at]);
            if (draw(200) == 0) take(packets_[draw(static_cast<std::uint32_t>(packets_.size()))]);
        }
        harness_->finish(now_);
    }
    [[nodiscard]] const Harness& harness() const { return *harness_; }
    wire::PacketTally refused;

private:
    std::uint32_t draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
    std::size_t due() const {
        const Responder::Status status = responder_.status(0);
        return status.psn_known ? (status.psn - packets_.front().psn) & 0xffffff : 0;
    }
    void take(const wire::RocePacket& packet) {
        now_ += 1000;
        const Room room{.packet = draw(20) > 0, .message = draw(20) > 0};
        const Ruling ruling = responder_.rule(0, packet, wire::ok, room, now_);
        if (ruling.accepted())
            harness_->add(packet, now_);
        else
            refused.add(ruling.counter);
        if (ruling.failed) harness_->forget(now_);
    }

    std::mt19937_64 random_;
    std::uint32_t psn_;
    Responder responder_{{.sources = {{.source = 0, .queue_pair = {}, .ready = false}}}};
    HarnessConfig config_;
    std::unique_ptr<Harness> harness_;
    std::deque<Bytes> payloads_;
    std::vector<wire::RocePacket> packets_;
    core::TimeNs now_ = 0;
};

TEST(InOrder, BehindAResponderMakesTheSameAsTheListener) {
    std::size_t delivered = 0, repeated = 0;
    for (std::uint64_t seed = 1; seed <= weir::test::repeated(std::uint64_t{100}); ++seed) {
        SCOPED_TRACE(testing::Message() << "seed " << seed);
        const bool start_known = seed % 2 == 0;
        Answered listened(seed, false, start_known);
        listened.run();
        Answered in_order(seed, true, start_known);
        in_order.run();
        for (std::size_t i = 0; i < core::count_of<C>; ++i)
            ASSERT_EQ(listened.refused.get(static_cast<C>(i)), in_order.refused.get(static_cast<C>(i)));
        ASSERT_NO_FATAL_FAILURE(expect_same(listened.harness(), in_order.harness(), 1));
        // Otherwise a message that comes again from its start is opened again.
        if (start_known) {
            ASSERT_NO_FATAL_FAILURE(expect_same_messages(listened.harness(), in_order.harness()));
        }
        delivered += in_order.harness().delivered.size();
        repeated += in_order.harness().packets.get(C::duplicate);
        if (HasFailure()) return;
    }
    EXPECT_GT(delivered, weir::test::repeated(1000U));
    EXPECT_GT(repeated, 0U) << "where the peer turned out to have begun earlier";
}

}  // namespace
}  // namespace weir::roce::test

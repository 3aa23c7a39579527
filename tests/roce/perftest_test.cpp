// The exchange of perftest's programs, against a client written from what stock ib_send_bw and ib_write_bw say.
#include "roce/perftest.hpp"

#include <gtest/gtest.h>

#include <string>

namespace weir::roce::test {
namespace {

using State = PerftestSession::State;
using namespace std::string_literals;

/// An end as perftest 4.5 writes it for a GID of 10.9.0.1.
const std::string seen =
    "0000:0001:000011:237102:00000203:00007f1bd7c53000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:09:00:01:00000000:\0"s;

PerftestEnd end_of(std::uint32_t qp) {
    PerftestEnd end;
    end.qp = qp;
    end.psn = 0x100 + qp;
    end.reads = 1;
    end.set_ipv4(0x0a010002);
    return end;
}

/// A client that stands where the queue pairs begin.
class SessionTest : public ::testing::Test {
protected:
    void greet() {
        exchange("6.06"s + std::string(12, '\0'));
        exchange("\0\0\x10\0"s);
        exchange("\0\0\0\x40"s);
        exchange("5\0"s);
    }
    /// What the server answers to `text`.
    std::string exchange(const std::string& text) {
        session.receive(text);
        std::string answer;
        answer.swap(session.output());
        return answer;
    }
    void open(std::uint32_t theirs, std::uint32_t ours) {
        EXPECT_EQ(exchange(end_of(theirs).text()), "");
        ASSERT_EQ(session.state(), State::asking);
        EXPECT_EQ(session.peer().qp, theirs);
        session.open(end_of(ours));
        EXPECT_EQ(exchange(""), end_of(ours).text());
    }
    void expect_failed(std::string_view with) {
        EXPECT_EQ(session.state(), State::failed);
        EXPECT_NE(session.reason().find(with), std::string::npos) << session.reason();
    }

    PerftestSession session{1024};
};

TEST(PerftestEnd, ReadsAndWritesTheSameBytes) {
    ASSERT_EQ(seen.size(), PerftestEnd::text_bytes_gid);
    const auto end = PerftestEnd::parse(seen);
    ASSERT_TRUE(end);
    EXPECT_EQ(end->reads, 1U);
    EXPECT_EQ(end->qp, 0x11U);
    EXPECT_EQ(end->psn, 0x237102U);
    EXPECT_EQ(end->rkey, 0x203U);
    EXPECT_EQ(end->va, 0x7f1bd7c53000U);
    EXPECT_EQ(end->ipv4(), 0x0a090001U);
    EXPECT_EQ(end->text(), seen);
}

TEST(PerftestEnd, HasAShorterTextWithoutAGid) {
    const std::string text = "0012:0001:000011:237102:00000203:00007f1bd7c53000:00000007\0"s;
    ASSERT_EQ(text.size(), PerftestEnd::text_bytes);
    const auto end = PerftestEnd::parse(text);
    ASSERT_TRUE(end);
    EXPECT_FALSE(end->has_gid);
    EXPECT_FALSE(end->ipv4());
    EXPECT_EQ(end->lid, 0x12U);
    EXPECT_EQ(end->srq, 7U);
    EXPECT_EQ(end->text(), text);
}

TEST(PerftestEnd, RefusesEveryTextWithOneBadByte) {
    for (std::size_t i = 0; i < seen.size(); ++i) {
        std::string text = seen;
        text[i] = 'g';
        // The zero after the last colon says nothing: the client does not look at it either.
        EXPECT_EQ(PerftestEnd::parse(text).has_value(), i == seen.size() - 1) << i;
    }
    std::string wide = seen;
    wide.replace(10, 7, "1000011");
    EXPECT_FALSE(PerftestEnd::parse(wide));
    for (std::size_t bytes = 0; bytes < seen.size(); ++bytes)
        EXPECT_FALSE(PerftestEnd::parse(std::string_view(seen).substr(0, bytes)));
}

TEST(PerftestEnd, TakesOnlyMappedAddressesForIpv4) {
    PerftestEnd end = end_of(1);
    EXPECT_EQ(end.ipv4(), 0x0a010002U);
    end.gid[0] = 0xfe;
    EXPECT_FALSE(end.ipv4());
}

TEST(PerftestMtu, HasTheNumbersOfVerbs) {
    EXPECT_EQ(mtu_number(256), 1U);
    EXPECT_EQ(mtu_number(1024), 3U);
    EXPECT_EQ(mtu_number(4096), 5U);
    EXPECT_EQ(mtu_number(9000), 0U);
    EXPECT_EQ(mtu_number(0), 0U);
}

TEST_F(SessionTest, GreetsAsAStockServerDoes) {
    EXPECT_EQ(exchange("6.06"s + std::string(12, '\0')), "6.06"s + std::string(12, '\0'));
    EXPECT_EQ(exchange("\0\0\x10\0"s), "\0\0\x10\0"s);
    EXPECT_EQ(exchange("\0\0\0\x40"s), "\0\0\0\x40"s);
    EXPECT_EQ(session.path_mtu(), 0U);
    EXPECT_EQ(exchange("5\0"s), "3\0"s);
    EXPECT_EQ(session.path_mtu(), 1024U);
    EXPECT_EQ(session.state(), State::listening);
}

TEST_F(SessionTest, TakesTheClientsPathMtuWhenThatIsTheSmallerOne) {
    exchange("6.06"s + std::string(12, '\0') + "\0\0\x10\0\0\0\0\x40"s);
    EXPECT_EQ(exchange("1\0"s), "3\0"s);
    EXPECT_EQ(session.path_mtu(), 256U);
}

TEST_F(SessionTest, GoesThroughAnIbSendBwOfTwoQueuePairs) {
    greet();
    open(0x11, 0x21);
    open(0x12, 0x22);
    EXPECT_FALSE(session.running());
    // Ready, both again for the table that it prints, ready, [the messages], closing.
    for (const std::uint32_t qp : {0x11U, 0x11U, 0x12U, 0x11U, 0x11U})
        EXPECT_EQ(exchange(end_of(qp).text()), end_of(qp + 0x10).text());
    EXPECT_TRUE(session.running());
    EXPECT_EQ(exchange("done\0"s), "");
    EXPECT_EQ(session.state(), State::ended);
    EXPECT_EQ(session.queue_pairs(), 2U);
}

TEST_F(SessionTest, GoesThroughAnIbWriteBwAndItsResults) {
    greet();
    open(0x11, 0x21);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(exchange(end_of(0x11).text()).size(), PerftestEnd::text_bytes_gid);
    const std::string zeros(8, '\0');
    for (const std::string& result :
         {"\0\0\0\0\0\1\0\0"s, "\0\0\0\0\0\0\x13\x88"s, "\x40\x4f\0\0\0\0\0\0"s, zeros, "\x3f\x50\0\0\0\0\0\0"s})
        EXPECT_EQ(exchange(result), zeros);
    EXPECT_EQ(exchange(end_of(0x11).text()), end_of(0x21).text());
    exchange("done\0"s);
    EXPECT_EQ(session.state(), State::ended);
}

TEST_F(SessionTest, DoesNotMindHowTheBytesAreCut) {
    std::string all = "6.06"s + std::string(12, '\0') + "\0\0\x10\0\0\0\0\x40\x35\0"s + seen + seen + seen + "done\0"s;
    std::string answers;
    for (const char byte : all) {
        answers += exchange({byte});
        if (session.state() == State::asking) session.open(end_of(7));
    }
    answers += exchange("");
    EXPECT_EQ(session.state(), State::ended);
    EXPECT_EQ(answers.size(), 16 + 4 + 4 + 2 + 3 * PerftestEnd::text_bytes_gid);
    EXPECT_TRUE(answers.ends_with(end_of(7).text()));
}

TEST_F(SessionTest, AnswersNothingWhileItsQueuePairIsNotReady) {
    greet();
    exchange(end_of(1).text());
    EXPECT_EQ(exchange(end_of(1).text()), "");
    session.open(end_of(2));
    EXPECT_EQ(exchange(""), end_of(2).text() + end_of(2).text());
}

TEST_F(SessionTest, SaysWhyItRefuses) {
    greet();
    exchange(end_of(1).text());
    session.refuse("no queue pair is free");
    expect_failed("no queue pair is free");
    EXPECT_EQ(exchange(end_of(1).text()), "");
}

TEST_F(SessionTest, RefusesOldVersionsAndWhatIsNoVersion) {
    exchange("5.60"s + std::string(12, '\0'));
    expect_failed("5.60");
    session = PerftestSession(1024);
    exchange("GET / HTTP/1.1\r\n"s);
    expect_failed("no version");
    session = PerftestSession(1024);
    exchange(seen);
    expect_failed("no version");
}

TEST_F(SessionTest, RefusesPathMtusThatDoNotExist) {
    for (const char number : {'0', '6', '\0'}) {
        session = PerftestSession(1024);
        exchange("6.06"s + std::string(12, '\0') + "\0\0\x10\0\0\0\0\x40"s + std::string{number, '\0'});
        expect_failed("path MTU");
    }
}

TEST_F(SessionTest, RefusesNoiseAtEveryStep) {
    greet();
    exchange("\0\0\0\0\0\0\0\0"s);
    expect_failed("no queue pair");
    session = PerftestSession(1024);
    greet();
    exchange(std::string(60, 'f'));
    expect_failed("cannot be read");
    session = PerftestSession(1024);
    greet();
    open(1, 2);
    exchange(end_of(1).text());
    exchange("dome\0"s);
    expect_failed("done");
    session = PerftestSession(1024);
    greet();
    open(1, 2);
    exchange(end_of(1).text());
    exchange(end_of(3).text());
    expect_failed("one more queue pair");
    session = PerftestSession(1024);
    exchange(std::string(5000, 'x'));
    expect_failed("more bytes");
}

}  // namespace
}  // namespace weir::roce::test

#include "bench/control_connection.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/control_listener.hpp"
#include "core/error.hpp"

namespace {

using weir::bench::ControlConnection;
using weir::bench::ControlListener;
using weir::bench::FileDescriptor;
using weir::core::RunError;

std::unique_ptr<ControlConnection> accepted(ControlListener& listener) {
    FileDescriptor socket = listener.accept(5);
    return socket ? std::make_unique<ControlConnection>(std::move(socket)) : nullptr;
}

struct Pair {
    ControlListener listener{"127.0.0.1", 0};
    std::unique_ptr<ControlConnection> client = ControlConnection::connect("127.0.0.1", listener.port(), 0);
    std::unique_ptr<ControlConnection> server = accepted(listener);
};

constexpr std::string_view alive = "{\"type\":\"alive\"}\n";

/// A side that does as it likes.
FileDescriptor raw_client(const ControlListener& listener) {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(listener.port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
}

void tell(const FileDescriptor& client, std::string_view text) {
    EXPECT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

std::string failure_of(ControlConnection& connection, double patience_s) {
    try {
        (void)connection.receive(patience_s);
    } catch (const RunError& error) {
        return error.what();
    }
    return "";
}

TEST(ControlConnection, MessagesArriveInOrder) {
    Pair pair;
    ASSERT_NE(pair.server, nullptr);
    for (int i = 0; i < 100; ++i) pair.client->send({{"type", "n"}, {"i", i}, {"text", std::string(1000, 'x')}});
    for (int i = 0; i < 100; ++i) EXPECT_EQ(pair.server->receive("n", 60)["i"], i);
    EXPECT_EQ(pair.client->other_address(), "127.0.0.1");
}

TEST(ControlConnection, AnErrorOfTheOtherSideIsThrown) {
    Pair pair;
    pair.client->send({{"type", "error"}, {"what", "no such device"}});
    EXPECT_EQ(failure_of(*pair.server, 60), "no such device");
    pair.client->send({{"type", "a"}});
    EXPECT_THROW((void)pair.server->receive("b", 60), RunError);
}

TEST(ControlConnection, ASideThatHangsUpIsNoticed) {
    Pair pair;
    pair.client.reset();
    EXPECT_EQ(failure_of(*pair.server, 60), "the other side has hung up");
    EXPECT_TRUE(pair.server->gone().load());
    EXPECT_THROW(
        {
            for (int i = 0; i < 100; ++i) pair.server->send({{"type", "x"}});
        },
        RunError);
}

TEST(ControlConnection, ASideThatLeavesSaysWhy) {
    Pair pair;
    pair.client->send({{"type", "left"}, {"what", "no memory"}});
    EXPECT_EQ(failure_of(*pair.server, 60), "no memory");
    EXPECT_TRUE(pair.server->gone().load());
    pair.client.reset();
    std::string said;  // also to who only writes
    for (int i = 0; i < 100 && said.empty(); ++i) {
        try {
            pair.server->send({{"type", "x"}});
        } catch (const RunError& error) {
            said = error.what();
        }
    }
    EXPECT_EQ(said, "no memory");
}

TEST(ControlConnection, ASilentSideIsNoticedWithinFiveSeconds) {
    ControlListener listener("127.0.0.1", 0);
    const FileDescriptor silent = raw_client(listener);
    tell(silent, alive);
    const auto server = accepted(listener);
    const auto begun = std::chrono::steady_clock::now();
    EXPECT_EQ(failure_of(*server, 60), "the other side has not been heard for ten seconds");
    EXPECT_GE(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(3500));
}

TEST(ControlConnection, SomebodyWhoSpeaksSomethingElseIsSentAway) {
    // Nesting that would need more stack than there is, beside brackets in a text that seem to close it.
    const std::string deep = R"({"type":"x","a":")" + std::string(100'000, ']') + R"(","b":)" +
                             std::string(100'000, '[') + std::string(100'000, ']') + "}\n";
    for (const std::string& said :
         {std::string("GET / HTTP/1.1\r\n"), std::string("{}\n"), std::string("[1]\n"), std::string("{\"type\": 5}\n"),
          std::string("{\"type\":\"\"}\n"), std::string(2 << 20, 'x'), deep}) {
        ControlListener listener("127.0.0.1", 0);
        const FileDescriptor client = raw_client(listener);
        tell(client, alive);
        const auto server = accepted(listener);
        ASSERT_NE(server, nullptr);
        (void)::send(client.get(), said.data(), said.size(), MSG_NOSIGNAL);
        EXPECT_EQ(failure_of(*server, 10), "the other side does not speak the protocol of weir bench");
    }
}

TEST(ControlConnection, WordsOfAnotherKindThanTextAreNone) {
    for (const auto& [said, failure] : {std::pair(R"({"type":"left","what":5})", "the other side has left"),
                                        std::pair(R"({"type":"left"})", "the other side has left"),
                                        std::pair(R"({"type":"left","what":[[]]})", "the other side has left"),
                                        std::pair(R"({"type":"error","what":{}})", "the other side failed")}) {
        ControlListener listener("127.0.0.1", 0);
        const FileDescriptor client = raw_client(listener);
        tell(client, std::string(said) + "\n");
        const auto server = accepted(listener);
        ASSERT_NE(server, nullptr);
        EXPECT_EQ(failure_of(*server, 60), failure) << said;
    }
}

TEST(ControlListener, WhoIsSilentHoldsNobodyUp) {
    ControlListener listener("127.0.0.1", 0);
    const FileDescriptor silent = raw_client(listener);
    const FileDescriptor half = raw_client(listener);
    tell(half, "{\"type\":");
    { const FileDescriptor gone = raw_client(listener); }
    EXPECT_FALSE(listener.accept(0.05));
    const FileDescriptor client = raw_client(listener);
    tell(client, R"({"type":"hello","n":7})"
                 "\n");
    const auto server = accepted(listener);
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(server->receive("hello", 60)["n"], 7);
    tell(half, "\"late\"}\n");
    const auto other = accepted(listener);
    ASSERT_NE(other, nullptr);
    EXPECT_NO_THROW((void)other->receive("late", 60));
}

TEST(ControlListener, ManySilentOnesDoNotUseUpItsDescriptors) {
    ControlListener listener("127.0.0.1", 0);
    std::vector<FileDescriptor> silent;
    for (int i = 0; i < 200; ++i) {
        silent.push_back(raw_client(listener));
        EXPECT_FALSE(listener.accept(0));
    }
    char byte = 0;
    EXPECT_EQ(::recv(silent.front().get(), &byte, 1, 0), 0) << "it has been let go";
    const FileDescriptor client = raw_client(listener);
    tell(client, alive);
    EXPECT_NE(accepted(listener), nullptr);
}

/// The oldest of 64 was let go, whether it had spoken or not.
TEST(ControlListener, ManySilentOnesDoNotPushOutAClientThatWaits) {
    ControlListener listener("127.0.0.1", 0, std::chrono::hours(1));  // however slow this machine is
    const FileDescriptor client = raw_client(listener);
    tell(client, R"({"type":"hello","n":7})"
                 "\n");
    std::vector<FileDescriptor> silent;
    for (int i = 0; i < 80; ++i) {
        silent.push_back(raw_client(listener));
        if (i % 8 == 7) listener.turn_away_others("busy");  // as while another client is served
    }
    const auto server = accepted(listener);
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(server->receive("hello", 60)["n"], 7);
    EXPECT_FALSE(listener.accept(0)) << "the others have said nothing";
}

/// As while a client is served: each turn looks at the silent ones too, and none of them is waited for.
TEST(ControlListener, SilentOnesDoNotDelayTheWordThatItIsBusy) {
    ControlListener listener("127.0.0.1", 0);
    std::vector<FileDescriptor> silent;
    for (int i = 0; i < 60; ++i) {
        silent.push_back(raw_client(listener));
        if (i % 2 == 0) tell(silent.back(), "{\"type\":");
        if (i % 8 == 7) listener.turn_away_others("busy");
    }
    const auto client = ControlConnection::connect("127.0.0.1", listener.port(), 0);
    client->send({{"type", "hello"}});
    const auto begin = std::chrono::steady_clock::now();
    int turns = 0;
    for (; turns < 60'000 && !client->gone(); ++turns) {
        listener.turn_away_others("busy");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(failure_of(*client, 60), "busy");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1)) << "it may be the same one";
    char byte = 0;
    for (const FileDescriptor& one : silent)
        EXPECT_LT(::recv(one.get(), &byte, 1, MSG_DONTWAIT), 0) << "nobody who is silent is told, or let go";
}

TEST(ControlListener, WhoIsTurnedAwayReadsWhy) {
    ControlListener listener("127.0.0.1", 0);
    const auto client = ControlConnection::connect("127.0.0.1", listener.port(), 0);
    client->send({{"type", "hello"}, {"text", std::string(60'000, 'x')}});
    for (int i = 0; i < 60'000 && !client->gone(); ++i) {
        listener.turn_away_others("busy");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(failure_of(*client, 60), "busy");
    EXPECT_FALSE(listener.accept(0));
}

TEST(ControlListener, WhoComesBackAtOnceIsServedNext) {
    ControlListener listener("127.0.0.1", 0);
    auto client = ControlConnection::connect("127.0.0.1", listener.port(), 0);
    const FileDescriptor first = listener.accept(60);
    ASSERT_TRUE(first);
    EXPECT_TRUE(weir::bench::is_open(first));
    client.reset();
    client = ControlConnection::connect("127.0.0.1", listener.port(), 0);
    client->send({{"type", "hello"}});
    listener.turn_away_others("busy");
    const auto second = accepted(listener);
    ASSERT_NE(second, nullptr);
    EXPECT_NO_THROW((void)second->receive("hello", 60));
}

TEST(ControlListener, WhoHangsUpIsNoticedByWhoDoesNotRead) {
    ControlListener listener("127.0.0.1", 0);
    FileDescriptor client = raw_client(listener);
    tell(client, alive);
    const FileDescriptor socket = listener.accept(60);
    ASSERT_TRUE(socket);
    std::array<char, 100> bytes;
    EXPECT_GT(::recv(socket.get(), bytes.data(), bytes.size(), 0), 0);
    EXPECT_TRUE(weir::bench::is_open(socket));
    client.reset();
    for (int i = 0; i < 60'000 && weir::bench::is_open(socket); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_FALSE(weir::bench::is_open(socket));
}

TEST(ControlConnection, NobodyThereIsSaid) {
    std::uint16_t port = 0;
    { port = ControlListener("127.0.0.1", 0).port(); }
    try {
        (void)ControlConnection::connect("127.0.0.1", port, 0);
        FAIL();
    } catch (const RunError& error) {
        EXPECT_NE(std::string(error.what()).find("is `weir bench --server` running there?"), std::string::npos);
    }
    EXPECT_FALSE(ControlListener("127.0.0.1", 0).accept(0.01));
}

}  // namespace

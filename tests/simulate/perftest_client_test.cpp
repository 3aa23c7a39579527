// The sender's side of perftest's exchange against the server's, over a pair of sockets.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "core/error.hpp"
#include "simulate/perftest_client.hpp"

namespace weir::simulate {
namespace {

/// A server that gives queue pairs 0x11, 0x12, ...; a few bytes at a time.
class Server {
public:
    explicit Server(std::uint32_t path_mtu, std::uint32_t queue_pairs = 100) : session_(path_mtu) {
        std::array<int, 2> both{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both.data()), 0);
        client_socket = both[0];
        thread_ = std::thread([this, socket = both[1], queue_pairs] { serve(socket, queue_pairs); });
    }
    ~Server() { thread_.join(); }
    int client_socket = -1;
    roce::PerftestSession::State state() const { return session_.state(); }
    std::vector<roce::PerftestEnd> peers;

private:
    void serve(int socket, std::uint32_t queue_pairs) {
        using State = roce::PerftestSession::State;
        std::array<char, 7> some{};
        for (ssize_t count = 0; (count = ::read(socket, some.data(), some.size())) > 0;) {
            session_.receive({some.data(), static_cast<std::size_t>(count)});
            while (session_.state() == State::asking) {
                if (session_.queue_pairs() == queue_pairs) {
                    session_.refuse("no more");
                    break;
                }
                peers.push_back(session_.peer());
                roce::PerftestEnd ours;
                ours.qp = 0x11 + session_.queue_pairs();
                ours.rkey = 0x77;
                ours.va = 0x10000;
                ours.set_ipv4(0x0a010002);
                session_.open(ours);
            }
            const std::string out = std::exchange(session_.output(), {});
            if (!out.empty() && ::write(socket, out.data(), out.size()) < 0) break;
            if (session_.state() == State::ended || session_.state() == State::failed) break;
        }
        ::close(socket);
    }
    roce::PerftestSession session_;
    std::thread thread_;
};

std::vector<roce::PerftestEnd> ends(std::uint32_t count) {
    std::vector<roce::PerftestEnd> all(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        all[i].qp = 0x21 + i;
        all[i].psn = 0xfffff0;
        all[i].set_ipv4(0x0a01000a + i);
    }
    return all;
}

TEST(PerftestClient, AgreesOnQueuePairsWithAServer) {
    Server server(1024);
    {
        PerftestClient client(server.client_socket, "test", 5);
        EXPECT_EQ(client.greet(4096), 1024);
        const std::vector<roce::PerftestEnd> ours = ends(3);
        const std::vector<roce::PerftestEnd> theirs = client.exchange(ours);
        ASSERT_EQ(theirs.size(), 3);
        for (std::uint32_t i = 0; i < 3; ++i) {
            EXPECT_EQ(theirs[i].qp, 0x11 + i);
            EXPECT_EQ(theirs[i].rkey, 0x77);
            EXPECT_EQ(theirs[i].ipv4(), 0x0a010002);
        }
        client.meet(ours[0]);
        client.done();
        EXPECT_EQ(server.peers, ours);
    }
}

TEST(PerftestClient, AServerThatHangsUpIsAnErrorThatSaysSo) {
    Server server(4096, 1);
    PerftestClient client(server.client_socket, "there", 5);
    EXPECT_EQ(client.greet(1024), 1024);
    const std::vector<roce::PerftestEnd> ours = ends(2);
    try {
        static_cast<void>(client.exchange(ours));
        FAIL();
    } catch (const core::RunError& error) {
        EXPECT_NE(std::string(error.what()).find("--connect there: "), std::string::npos) << error.what();
    }
    client.done();
}

TEST(PerftestClient, SilenceEnds) {
    std::array<int, 2> both{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both.data()), 0);
    PerftestClient client(both[0], "there", 0.01);
    EXPECT_THROW(static_cast<void>(client.greet(4096)), core::RunError);
    ::close(both[1]);
}

TEST(PerftestClient, SomethingElseThatAnswersIsRefused) {
    for (const std::string_view said : {std::string_view{"220 mail.example.org ESMTP\r\n......................"},
                                        std::string_view{"6.06\0\0\0\0\0\0\0\0\0\0\0\0aaaabbbb9\0", 26}}) {
        std::array<int, 2> both{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, both.data()), 0);
        ASSERT_EQ(::write(both[1], said.data(), said.size()), static_cast<ssize_t>(said.size()));
        PerftestClient client(both[0], "there", 0.1);
        EXPECT_THROW(static_cast<void>(client.greet(4096)), core::RunError);
        ::close(both[1]);
    }
}

TEST(PerftestClient, AddressesThatAreNoneAreRefused) {
    for (const char* text : {"", ":18515", "host:", "host:x", "host:123456"})
        EXPECT_THROW(PerftestClient(text, 1), core::UsageError) << text;
    // A port that nobody listens at: bound, and not listening.
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
    EXPECT_THROW(PerftestClient("127.0.0.1:" + std::to_string(ntohs(address.sin_port)), 1), core::RunError);
    ::close(socket);
}

}  // namespace
}  // namespace weir::simulate

// The server for perftest's programs, with clients over the loopback interface and queue pairs that a
// test can have refused.
#include "run/perftest_server.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>

#include "core/error.hpp"

namespace weir::run {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

struct FakeQueuePairs final : QueuePairs {
    bool connect(std::uint32_t source, const Peer& peer) override {
        peers[source] = peer;
        return ready;
    }
    void give_up(std::uint32_t source) override { given_up.push_back(source); }
    std::vector<std::uint32_t> given_up;
    std::map<std::uint32_t, Peer> peers;
    bool ready = true;
};

roce::PerftestEnd end_of(std::uint32_t qp) {
    roce::PerftestEnd end;
    end.qp = qp;
    end.psn = 0x1000 + qp;
    end.set_ipv4(0x0a01000a);
    return end;
}

class PerftestServerTest : public ::testing::Test {
protected:
    /// A socket that is connected to the server.
    struct Client {
        explicit Client(PerftestServerTest& from) : test(from), socket(::socket(AF_INET, SOCK_STREAM, 0)) {
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_port = htons(test.server->port());
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        }
        ~Client() { hang_up(); }
        Client(const Client&) = delete;
        Client& operator=(const Client&) = delete;
        void hang_up() {
            if (socket >= 0) ::close(socket);
            socket = -1;
        }
        void send(const std::string& text) const {
            EXPECT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
        }
        /// Whether bytes, or the end, come while the server works.
        bool readable() const {
            pollfd entry{socket, POLLIN, 0};
            for (int i = 0; i < 200; ++i) {
                test.server->serve(test.now);
                if (::poll(&entry, 1, 5) > 0) return true;
            }
            return false;
        }
        std::string receive(std::size_t bytes) const {
            std::string out;
            while (out.size() < bytes && readable()) {
                char buffer[256];
                const ssize_t got = ::recv(socket, buffer, std::min(sizeof buffer, bytes - out.size()), 0);
                if (got <= 0) break;
                out.append(buffer, static_cast<std::size_t>(got));
            }
            return out;
        }
        std::string exchange(const std::string& text) const {
            send(text);
            return receive(text.size());
        }
        void greet() const {
            EXPECT_EQ(exchange("6.06"s + std::string(12, '\0')), "6.06"s + std::string(12, '\0'));
            exchange("\0\0\x10\0"s);
            exchange("\0\0\0\x40"s);
            EXPECT_EQ(exchange("5\0"s), "3\0"s);
        }
        roce::PerftestEnd open(std::uint32_t qp) const {
            return roce::PerftestEnd::parse(exchange(end_of(qp).text())).value_or(roce::PerftestEnd{});
        }
        bool closed() const {
            char byte = 0;
            return readable() && ::recv(socket, &byte, 1, 0) <= 0;
        }
        PerftestServerTest& test;
        int socket;
    };

    void SetUp() override {
        PerftestServer::Config config;
        config.address = "127.0.0.1";
        config.port = 0;
        config.ipv4 = 0x0a010002;
        config.path_mtu = 1024;
        config.offers = {{7, 0x11, 0x1234, 0x10000000}, {8, 0x12, 0x1235, 0x20000000}};
        server = std::make_unique<PerftestServer>(config, queue_pairs, [this](std::string_view text) {
            said += text;
            said += '\n';
        });
    }
    void serve_until(const std::function<bool()>& condition) {
        for (int i = 0; i < 60'000 && !condition(); ++i) {
            server->serve(now);
            ::usleep(1000);
        }
        EXPECT_TRUE(condition()) << said;
    }

    FakeQueuePairs queue_pairs;
    std::unique_ptr<PerftestServer> server;
    std::string said;
    double now = 0;
};

TEST_F(PerftestServerTest, ConnectsQueuePairsAndTellsTheClientWhereToSend) {
    Client client(*this);
    client.greet();
    const roce::PerftestEnd first = client.open(0x21);
    EXPECT_EQ(first.qp, 0x11U);
    EXPECT_EQ(first.rkey, 0x1234U);
    EXPECT_EQ(first.va, 0x10000000U);
    EXPECT_EQ(first.ipv4(), 0x0a010002U);
    EXPECT_EQ(client.open(0x22).qp, 0x12U);
    EXPECT_EQ(queue_pairs.peers.at(7).qp, 0x21U);
    EXPECT_EQ(queue_pairs.peers.at(8).psn, 0x1022U);
    EXPECT_EQ(queue_pairs.peers.at(8).ipv4, 0x0a01000aU);
    EXPECT_EQ(queue_pairs.peers.at(8).path_mtu, 1024U);
    EXPECT_EQ(client.open(0x21).qp, 0x11U);
    client.send("done\0"s);
    serve_until([this] { return server->account().ended == 1; });
    EXPECT_EQ(server->account().queue_pairs, 2U);
    EXPECT_THAT(said, HasSubstr("2 queue pairs, path MTU 1024"));
    EXPECT_THAT(said, HasSubstr("done"));
}

TEST_F(PerftestServerTest, RefusesAQueuePairThatCannotBeConnectedAnyMore) {
    queue_pairs.ready = false;
    Client client(*this);
    client.greet();
    client.send(end_of(0x21).text());
    serve_until([this] { return !queue_pairs.peers.empty(); });
    now = PerftestServer::connecting_s + 1;
    EXPECT_TRUE(client.closed());
    EXPECT_THAT(said, HasSubstr("at its end"));
    EXPECT_EQ(server->account().queue_pairs, 0U);
    EXPECT_EQ(queue_pairs.given_up, std::vector<std::uint32_t>{7});
}

TEST_F(PerftestServerTest, DoesNotWaitForAnLcoreThatIsBusy) {
    queue_pairs.ready = false;
    Client first(*this);
    first.greet();
    first.send(end_of(0x21).text());
    serve_until([this] { return queue_pairs.peers.contains(7); });
    Client second(*this);
    second.greet();  // it is served meanwhile
    queue_pairs.ready = true;
    EXPECT_EQ(second.open(0x31).qp, 0x12U);
    EXPECT_EQ(roce::PerftestEnd::parse(first.receive(end_of(0).text().size())).value_or(roce::PerftestEnd{}).qp, 0x11U);
    EXPECT_EQ(server->account().queue_pairs, 2U);
    EXPECT_TRUE(queue_pairs.given_up.empty());
}

TEST_F(PerftestServerTest, GivesQueuePairsOfAClientThatHasGoneToTheNext) {
    for (std::uint64_t i = 1; i <= 3; ++i) {
        Client client(*this);
        client.greet();
        EXPECT_EQ(client.open(0x20).qp, 0x11U);
        EXPECT_EQ(client.open(0x21).qp, 0x12U);
        client.hang_up();
        serve_until([this, i] { return server->account().lost == i; });
    }
    EXPECT_EQ(server->account().clients, 3U);
    EXPECT_EQ(server->account().queue_pairs, 6U);
    EXPECT_THAT(said, HasSubstr("hung up before it was done"));
}

TEST_F(PerftestServerTest, RefusesMoreQueuePairsThanThereAreAndSaysSo) {
    Client first(*this);
    first.greet();
    first.open(0x21);
    Client second(*this);
    second.greet();
    EXPECT_EQ(second.open(0x31).qp, 0x12U);
    second.send(end_of(0x32).text());
    EXPECT_TRUE(second.closed());
    EXPECT_THAT(said, HasSubstr("no queue pair is free (the stream has 2 in `qp`)"));
    EXPECT_EQ(server->account().failed, 1U);
    EXPECT_EQ(first.open(0x22).qp, 0x12U) << "what the other client had is free again";
}

TEST_F(PerftestServerTest, RefusesAClientWithoutAnIpv4Address) {
    Client client(*this);
    client.greet();
    roce::PerftestEnd end = end_of(1);
    end.gid[0] = 0xfe;
    client.send(end.text());
    EXPECT_TRUE(client.closed());
    EXPECT_THAT(said, HasSubstr("no IPv4 address"));
    EXPECT_TRUE(queue_pairs.peers.empty());
}

TEST_F(PerftestServerTest, SendsNoiseAndSilenceAway) {
    Client noise(*this);
    noise.send("GET / HTTP/1.1\r\nHost: weir\r\n\r\n");
    EXPECT_TRUE(noise.closed());
    EXPECT_THAT(said, HasSubstr("no version of perftest"));
    const Client silent(*this);
    serve_until([this] { return server->account().clients == 2; });
    now = PerftestServer::greeting_s + 1;
    EXPECT_TRUE(silent.closed());
    EXPECT_THAT(said, HasSubstr("no queue pairs agreed on"));
    EXPECT_EQ(server->account().failed, 2U);
}

TEST_F(PerftestServerTest, SaysWhyItCannotListen) {
    PerftestServer::Config config;
    config.address = "127.0.0.1";
    config.port = server->port();
    const auto listen = [&] { PerftestServer(config, queue_pairs, [](std::string_view) {}); };
    try {
        listen();
        FAIL() << "the address is in use";
    } catch (const core::RunError& error) {
        EXPECT_THAT(error.what(), HasSubstr("cannot listen on 127.0.0.1:"));
        EXPECT_THAT(error.what(), HasSubstr("in use"));
    }
}

}  // namespace
}  // namespace weir::run

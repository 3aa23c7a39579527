#include "run/perftest_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace weir::run {

namespace {

std::string text_of(const sockaddr_in& address) {
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(address.sin_port));
}

/// A client that has died without a word is found out after a while.
void keep_alive(int socket) {
    const auto set = [socket](int level, int option, int value) {
        ::setsockopt(socket, level, option, &value, sizeof value);
    };
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 4);
    set(IPPROTO_TCP, TCP_NODELAY, 1);  // every message waits for an answer
}

}  // namespace

struct PerftestServer::Client {
    explicit Client(std::uint32_t path_mtu) : session(path_mtu) {}
    int socket = -1;
    std::string name;
    double since_s = 0;
    roce::PerftestSession session;
    std::vector<std::size_t> offers;  ///< that it has, in its order
    bool connecting = false;          ///< the last of them
    double connecting_since_s = 0;
    bool gone = false;  ///< it has hung up
    bool announced = false;
};

PerftestServer::PerftestServer(Config config, QueuePairs& queue_pairs, std::function<void(std::string_view)> say)
    : config_(std::move(config)),
      queue_pairs_(queue_pairs),
      say_(std::move(say)),
      taken_(config_.offers.size(), false) {
    const std::string where = fmt::format("{}:{}", config_.address, config_.port);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(config_.port);
    if (::inet_pton(AF_INET, config_.address.c_str(), &address.sin_addr) != 1)
        throw core::RunError(fmt::format("exchange: cannot listen on {}: no IPv4 address", where));
    listening_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;
    ::setsockopt(listening_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    socklen_t bytes = sizeof address;
    if (listening_ < 0 || ::bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listening_, 8) != 0 || ::getsockname(listening_, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
        const std::string reason = std::strerror(errno);
        if (listening_ >= 0) ::close(listening_);
        throw core::RunError(fmt::format("exchange: cannot listen on {}: {}", where, reason));
    }
    port_ = ntohs(address.sin_port);
}

PerftestServer::~PerftestServer() {
    for (const auto& client : clients_) ::close(client->socket);
    ::close(listening_);
}

void PerftestServer::serve(double seconds) {
    accept_clients(seconds);
    for (const auto& client : clients_) work(*client, seconds);
    std::erase_if(clients_, [](const auto& client) { return client->socket < 0; });
}

void PerftestServer::accept_clients(double seconds) {
    while (clients_.size() < clients_max) {
        sockaddr_in from{};
        socklen_t bytes = sizeof from;
        const int socket =
            ::accept4(listening_, reinterpret_cast<sockaddr*>(&from), &bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (socket < 0) return;
        keep_alive(socket);
        auto client = std::make_unique<Client>(config_.path_mtu);
        client->socket = socket;
        client->name = text_of(from);
        client->since_s = seconds;
        clients_.push_back(std::move(client));
        ++account_.clients;
    }
}

void PerftestServer::work(Client& client, double seconds) {
    using State = roce::PerftestSession::State;
    // What it said last is worked off before it counts that it has hung up.
    const bool heard = receive(client);
    while (client.session.state() == State::asking && open_queue_pair(client, seconds)) {
    }
    if (client.session.running() && !client.announced) {
        client.announced = true;
        say_(fmt::format("perftest {}: {} queue pair{}, path MTU {}", client.name, client.session.queue_pairs(),
                         client.session.queue_pairs() == 1 ? "" : "s", client.session.path_mtu()));
    }
    if (!send(client)) client.gone = true;
    if (client.session.state() == State::ended) {
        ++account_.ended;
        say_(fmt::format("perftest {}: done", client.name));
    } else if (client.session.state() == State::failed) {
        ++account_.failed;
        say_(fmt::format("perftest {}: refused: {}", client.name, client.session.reason()));
    } else if (client.gone && !heard) {
        ++account_.lost;
        say_(fmt::format("perftest {}: hung up before it was done", client.name));
    } else if (!client.session.running() && seconds - client.since_s > greeting_s) {
        ++account_.failed;
        say_(fmt::format("perftest {}: refused: no queue pairs agreed on within {:.0f} s", client.name, greeting_s));
    } else {
        return;
    }
    end(client);
}

/// True if anything came.
bool PerftestServer::receive(Client& client) {
    std::array<char, 2048> buffer{};
    const ssize_t bytes = ::recv(client.socket, buffer.data(), buffer.size(), 0);
    if (bytes > 0) {
        client.session.receive({buffer.data(), static_cast<std::size_t>(bytes)});
        return true;
    }
    if (bytes == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) client.gone = true;
    return false;
}

/// False: there is none for it.
bool PerftestServer::choose_offer(Client& client, double seconds) {
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    if (free == taken_.end()) {
        client.session.refuse(fmt::format("no queue pair is free (the stream has {} in `qp`)", taken_.size()));
        return false;
    }
    *free = true;
    client.offers.push_back(static_cast<std::size_t>(free - taken_.begin()));
    client.connecting = true;
    client.connecting_since_s = seconds;
    return true;
}

/// False: not yet.
bool PerftestServer::open_queue_pair(Client& client, double seconds) {
    const roce::PerftestEnd& peer = client.session.peer();
    const auto ipv4 = peer.ipv4();
    if (!ipv4) return client.session.refuse("its GID has no IPv4 address (choose another one with -x)"), true;
    if (!client.connecting && !choose_offer(client, seconds)) return true;
    const Offer& offer = config_.offers[client.offers.back()];
    if (!queue_pairs_.connect(offer.source, {peer.qp, peer.psn, *ipv4, client.session.path_mtu()})) {
        if (seconds - client.connecting_since_s <= connecting_s) return false;
        client.session.refuse("the run is at its end");
        return true;
    }
    client.connecting = false;
    ++account_.queue_pairs;
    roce::PerftestEnd ours;
    ours.qp = offer.qp;
    ours.reads = peer.reads;  // with none, a client that wants to READ would wait for ever, rather than be refused
    ours.rkey = offer.rkey;
    ours.va = offer.va;
    ours.set_ipv4(config_.ipv4);
    client.session.open(ours);
    return true;
}

/// False if there is nobody left to send to.
bool PerftestServer::send(Client& client) {
    std::string& output = client.session.output();
    while (!output.empty()) {
        const ssize_t bytes = ::send(client.socket, output.data(), output.size(), MSG_NOSIGNAL);
        if (bytes < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        output.erase(0, static_cast<std::size_t>(bytes));
    }
    return true;
}

/// Its queue pairs stay as they are, for what is still on its way; the next client has them connected anew.
void PerftestServer::end(Client& client) {
    if (client.connecting) queue_pairs_.give_up(config_.offers[client.offers.back()].source);
    for (const std::size_t offer : client.offers) taken_[offer] = false;
    ::close(client.socket);
    client.socket = -1;
}

}  // namespace weir::run

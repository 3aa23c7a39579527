// The server that perftest's programs (ib_send_bw, ib_write_bw) connect to: TCP through the kernel, on the control
// thread. It agrees with each client on queue pairs (roce/perftest.hpp) and has them made ready; the messages
// themselves come in at a port like any others. Never blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "roce/perftest.hpp"

namespace weir::run {

/// Makes queue pairs ready. In a run: the rx lcores that own their sources.
class QueuePairs {
public:
    struct Peer {
        std::uint32_t qp = 0;
        std::uint32_t psn = 0;   ///< of its first packet
        std::uint32_t ipv4 = 0;  ///< host byte order
        std::uint32_t path_mtu = 0;
    };
    virtual ~QueuePairs() = default;
    /// Connects the source's queue pair to `peer`, whatever it was connected to before; to be called until it is true:
    /// then packets of that peer are taken. Does not wait.
    [[nodiscard]] virtual bool connect(std::uint32_t source, const Peer& peer) = 0;
    /// connect() will not be called again for this peer.
    virtual void give_up(std::uint32_t source) = 0;
};

class PerftestServer {
public:
    static constexpr std::uint32_t clients_max = 64;
    /// A client that has not got its queue pairs after so long is sent away. (One that has may be silent for ever.)
    static constexpr double greeting_s = 30;
    /// An lcore that has not connected a queue pair after so long has ended, and the run with it.
    static constexpr double connecting_s = 2;

    /// A queue pair to be given to clients. The first free one is taken.
    struct Offer {
        std::uint32_t source = 0;  ///< run-wide source id
        std::uint32_t qp = 0;
        std::uint32_t rkey = 0;  ///< of the memory that the client may write to
        std::uint64_t va = 0;
    };
    struct Config {
        std::string address = "0.0.0.0";  ///< IPv4, of the kernel
        std::uint16_t port = 18515;       ///< 0: any
        std::uint32_t ipv4 = 0;           ///< of the weir port that the messages come to, host byte order
        std::uint32_t path_mtu = 4096;
        std::vector<Offer> offers;
    };
    struct Account {
        std::uint64_t clients = 0;
        std::uint64_t ended = 0;        ///< said that they were done
        std::uint64_t failed = 0;       ///< were refused, or said what is not understood
        std::uint64_t lost = 0;         ///< hung up before they were done
        std::uint64_t queue_pairs = 0;  ///< connected for them
    };

    /// Listens. `say` gets a sentence for people about each client's coming and going. Throws core::RunError.
    PerftestServer(Config config, QueuePairs& queue_pairs, std::function<void(std::string_view)> say);
    ~PerftestServer();
    PerftestServer(const PerftestServer&) = delete;
    PerftestServer& operator=(const PerftestServer&) = delete;

    /// A bounded amount of work; `seconds` is any clock that goes on.
    void serve(double seconds);

    [[nodiscard]] const Account& account() const noexcept { return account_; }
    /// Where it listens.
    [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

private:
    struct Client;

    void accept_clients(double seconds);
    void work(Client& client, double seconds);
    [[nodiscard]] bool receive(Client& client);
    [[nodiscard]] bool open_queue_pair(Client& client, double seconds);
    [[nodiscard]] bool choose_offer(Client& client, double seconds);
    [[nodiscard]] bool send(Client& client);
    void end(Client& client);

    Config config_;
    QueuePairs& queue_pairs_;
    std::function<void(std::string_view)> say_;
    int listening_ = -1;
    std::uint16_t port_ = 0;
    std::vector<bool> taken_;  ///< of config_.offers
    std::vector<std::unique_ptr<Client>> clients_;
    Account account_;
};

}  // namespace weir::run

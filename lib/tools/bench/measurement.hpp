// The sender's side of a benchmark: asks a server for a receiver, runs trials against it, and finds what was asked for.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/control_connection.hpp"
#include "bench/faulty_sender.hpp"
#include "bench/results.hpp"
#include "bench/sender.hpp"
#include "bench/transports.hpp"
#include "search/goal.hpp"

namespace weir::bench {

/// One thing to be measured.
struct Measurement {
    std::string transport;
    std::string sender = "sendmmsg";
    std::string depth = "receive";
    std::string device;             ///< that senders with DPDK send through; empty: net_af_packet on the way
    std::string address;            ///< IPv4, of the server, that packets go to; empty: that of the control connection
    std::uint32_t bytes = 8240;     ///< of UDP payload in a packet
    std::uint32_t packets = 1;      ///< in a message
    std::uint32_t sources = 1;      ///< that take turns to send a message
    std::uint32_t addresses = 1;    ///< places in the receiver's memory
    std::uint32_t burst = 1;        ///< packets sent at once
    Content content;                ///< of packets; null: a pattern
    SenderFaults faults;            ///< what happens to them on the way
    search::Goal goal;              ///< what to search for
    std::optional<double> at_gbps;  ///< or: one load, of this rate
    bool at_most = false;           ///< or: of whatever the sender can do
    double at_s = 1;                ///< and for so long
    int bursts = 0;                 ///< or: so often the longest burst at full speed of which nothing is lost
    std::optional<double> most_gbps;  ///< to search up to; nothing: what the sender can do
    double search_s = 600;            ///< of trials
    Rules rules;
};

/// How far it is, for people.
struct Progress {
    const Measurement& measurement;
    double fraction = 0;                 ///< of this measurement
    double gbps = 0;                     ///< of the trial that is over, or begins
    const TrialRecord* trial = nullptr;  ///< that is over; null: one begins
};

class Client {
public:
    /// Throws core::RunError when there is no server, or it wants another token.
    Client(std::unique_ptr<ControlConnection> server, const std::string& token, const std::string& weir_version);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    [[nodiscard]] const HostFacts& server_host() const noexcept { return host_; }
    [[nodiscard]] const HostFacts& own_host() const noexcept { return own_; }
    /// This host and the server are one machine, with one clock.
    [[nodiscard]] bool same_clock() const noexcept { return same_clock_; }
    [[nodiscard]] std::string server_address() const { return server_->other_address(); }
    [[nodiscard]] std::string own_address() const { return server_->own_address(); }

    /// Throws core::UsageError for what cannot be measured by anybody, core::RunError when the server is gone. What the
    /// server's host lacks is a result: Point::not_available. `stop` ends it with core::RunError.
    [[nodiscard]] Point run(const Measurement& measurement, const std::function<void(const Progress&)>& progress,
                            const std::atomic<bool>& stop);

private:
    struct Way;  // a sender, and where it sends
    [[nodiscard]] std::string open(Way& way, const Transport& transport, const SenderKind& sender,
                                   std::string& remarks);
    [[nodiscard]] std::string connect(Way& way, const nlohmann::json& offer);
    void begin(Way& way, const Load& load);
    [[nodiscard]] nlohmann::json end(Way& way, std::uint64_t sent);
    [[nodiscard]] double ceiling(Way& way);  // packets/s
    [[nodiscard]] TrialRecord trial(Way& way, const Load& load, const Rules& rules);
    void search(Way& way, Point& point, const std::function<void(const Progress&)>& progress);
    void at(Way& way, Point& point, const std::function<void(const Progress&)>& progress);
    void back_to_back(Way& way, Point& point, const std::function<void(const Progress&)>& progress);

    std::unique_ptr<ControlConnection> server_;
    HostFacts host_;
    HostFacts own_;
    bool same_clock_ = false;
    std::uint32_t trials_ = 0;
};

}  // namespace weir::bench

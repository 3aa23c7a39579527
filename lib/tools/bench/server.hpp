// The receiver's side of a benchmark: does what a client asks for, and accounts for what it received.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bench/control_connection.hpp"
#include "bench/receiving.hpp"
#include "bench/transports.hpp"

namespace weir::bench {

inline constexpr std::uint16_t control_port = 7474;
inline constexpr int protocol_version = 2;

class Server {
public:
    struct Config {
        std::string token;  ///< that a client has to know; empty: none
        std::string weir_version;
        std::string device;  ///< for DPDK: VDEV[,ARGS] or a PCI address; empty: on top of the interface
        /// Of packets, on a link that `device` and nobody else has; empty: what the client names, of this host.
        std::string address{};
        Receiving::Settings receiving;
    };
    /// `say`: lines for people.
    Server(Config config, std::function<void(const std::string&)> say);

    /// One client until it has done. What fails is told to the client and said.
    void serve(ControlConnection& client);

private:
    using Json = nlohmann::json;
    void greet(ControlConnection& client);
    void work(ControlConnection& client);
    void open_receiver(Depth depth);
    [[nodiscard]] Json open(const Json& asked, const ControlConnection& client);
    [[nodiscard]] Json connect(const Json& asked);
    [[nodiscard]] Json begin(const Json& asked);
    [[nodiscard]] Json end(const Json& asked);
    void close() noexcept;

    Config config_;
    std::function<void(const std::string&)> say_;
    ContentReader content_;
    const Transport* transport_ = nullptr;
    ReceiverSpec spec_;
    bool by_weir_ = false;  // the client's sender is weir send
    std::unique_ptr<Receiver> receiver_;
    std::optional<Receiving> trial_;
    std::optional<PipelineReceiving> pipeline_trial_;
};

}  // namespace weir::bench

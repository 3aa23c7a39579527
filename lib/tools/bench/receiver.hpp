// A way to get packets out of a network: what `weir bench` compares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "assemble/message_memory.hpp"

namespace weir::bench {

struct ReceivedPacket {
    const std::byte* payload = nullptr;  ///< of UDP
    std::uint32_t bytes = 0;
    void* buffer = nullptr;  ///< to be given back with Receiver::release()
};

/// Where packets are to be sent.
struct Endpoint {
    std::string address;  ///< IPv4
    std::uint16_t port = 0;
};

/// Used by one thread at a time.
class Receiver {
public:
    static constexpr std::uint32_t burst = 64;
    /// Packets that may be held at once by who assembles them.
    static constexpr std::uint32_t held_max = 4096;

    virtual ~Receiver() = default;
    [[nodiscard]] virtual Endpoint endpoint() const = 0;
    /// What a sender has to know beside that; null: nothing. Some need its answer (Sender::accept()) before they
    /// receive anything. connect() throws core::RunError with what this host lacks.
    [[nodiscard]] virtual nlohmann::json offer() const { return nullptr; }
    virtual void connect(const nlohmann::json& /*answer*/) {}
    /// Up to `burst` packets. Waits for the first of them for 10 ms at most, or not at all where it polls.
    [[nodiscard]] virtual std::uint32_t receive(std::span<ReceivedPacket> packets) = 0;
    [[nodiscard]] virtual assemble::BufferRelease release() const noexcept = 0;
    /// A payload stays where it is only until the next receive(), whoever holds its buffer: assembly has to copy it.
    [[nodiscard]] virtual bool lends() const noexcept { return false; }

    /// Since it was made; what nobody counts is nothing.
    struct Drops {
        std::optional<std::uint64_t> device;
        std::optional<std::uint64_t> kernel;
    };
    [[nodiscard]] virtual Drops drops() = 0;
    /// Packets that it took and gave to nobody, since it was made. By the thread that receives, or after it.
    struct Refused {
        std::uint64_t damaged = 0;
        std::uint64_t others = 0;  ///< not for us
    };
    [[nodiscard]] virtual Refused refused() const { return {}; }
    /// Packets that its device counts itself, since it was made; nothing: the kernel's interface does.
    [[nodiscard]] virtual std::optional<std::uint64_t> arrived() { return std::nullopt; }
    /// What could not be had, and makes its numbers worse; empty if nothing.
    [[nodiscard]] virtual std::string remarks() const { return {}; }
};

/// What a receiver is made for.
struct ReceiverSpec {
    std::string address;               ///< IPv4, of this host
    std::string interface;             ///< of the kernel, that has the address; empty: the device alone has it
    std::string device;                ///< for DPDK: VDEV[,ARGS] or a PCI address; empty: on top of the interface
    std::uint32_t bytes = 0;           ///< of UDP payload in a packet, at most
    std::uint32_t addresses = 1;       ///< places in memory that payload goes to in turn
    std::optional<std::uint32_t> cpu;  ///< to run on
};

}  // namespace weir::bench

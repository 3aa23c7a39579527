// The port of one consumer: a PUSH socket that it connects to, what it is owed, and the account of what it got.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "stream/drop_cause.hpp"
#include "stream/message.hpp"
#include "stream/zmq.hpp"

namespace weir::stream {

/// For one thread.
class Consumer {
public:
    struct Config {
        std::string listen;             ///< "tcp://127.0.0.1:31001"
        std::uint32_t queue = 0;        ///< messages on their way at most
        std::uint64_t queue_bytes = 0;  ///< and bytes of them; one message is always taken
    };
    struct Account {
        std::uint64_t sent = 0;  ///< events that ZeroMQ took for it
        std::array<std::uint64_t, drop_causes.size()> dropped{};
        std::uint64_t came = 0;  ///< times that somebody connected
        std::uint64_t left = 0;  ///< times that somebody went away before the end had left
    };

    /// Listens. Throws core::RunError.
    Consumer(const ZmqContext& context, const Config& config);

    /// Takes note of who has come and gone.
    void look();
    [[nodiscard]] bool is_connected() const noexcept { return connected_ > 0; }

    /// Why a message cannot be sent now; nothing if it was. Never waits. Whoever has connected gets `start` before
    /// anything else, and again after it went away and came back.
    [[nodiscard]] std::optional<DropCause> offer(const MessagePtr& start, const MessagePtr& message);
    /// `start` to who has connected and is owed it.
    [[nodiscard]] std::optional<DropCause> offer_start(const MessagePtr& start);
    /// The last message; whoever goes from now on has not left early.
    [[nodiscard]] std::optional<DropCause> offer_end(const MessagePtr& start, const MessagePtr& end);
    [[nodiscard]] bool owes_start() const noexcept { return owes_start_; }
    /// Messages that it was sent and that have not left.
    [[nodiscard]] std::uint64_t on_the_way() const noexcept {
        return on_the_way_->messages.load(std::memory_order_acquire);
    }
    /// Ends it: what is still on the way is lost, and counts as too late. Nothing is sent after this.
    void close() noexcept;

    /// Until then a run that is being stopped waits for it; the sink's own.
    std::optional<std::chrono::steady_clock::time_point> patience;

    void count_sent() noexcept { ++account_.sent; }
    void count_dropped(DropCause cause) noexcept { ++account_.dropped[static_cast<std::size_t>(cause)]; }
    [[nodiscard]] const Account& account() const noexcept { return account_; }
    /// Where it really listens.
    [[nodiscard]] const std::string& address() const noexcept { return address_; }

private:
    /// What ZeroMQ has of this consumer's messages. Outlives the socket, as its messages may.
    struct OnTheWay {
        std::atomic<std::uint64_t> messages{0};
        std::atomic<std::uint64_t> bytes{0};
    };
    /// One message in ZeroMQ's hands.
    struct Shipment {
        MessagePtr message;
        std::shared_ptr<OnTheWay> on_the_way;
    };

    [[nodiscard]] std::optional<DropCause> send(const MessagePtr& message);
    [[nodiscard]] bool has_room(std::size_t bytes) const noexcept;
    void take_notice(std::uint16_t what);
    static void free_shipment(void* data, void* hint);

    Config config_;
    std::shared_ptr<OnTheWay> on_the_way_ = std::make_shared<OnTheWay>();
    ZmqSocket socket_;
    ZmqSocket monitor_;
    std::string address_;
    std::uint64_t connected_ = 0;
    bool handshake_failed_ = false;  ///< that was the last notice
    bool owes_start_ = true;
    bool ended_ = false;
    Account account_;
};

}  // namespace weir::stream

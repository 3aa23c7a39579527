#include "stream/consumer.hpp"

#include <fmt/format.h>
#include <zmq.h>

#include <algorithm>
#include <cstring>

#include "core/error.hpp"

namespace weir::stream {

namespace {

constexpr int watched_events = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED |
                               ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL;

/// Starts to watch a socket before it has connections, and gives what tells of them.
ZmqSocket watch(const ZmqContext& context, const ZmqSocket& socket) {
    static std::atomic<std::uint64_t> number{0};
    const std::string address = fmt::format("inproc://consumer-{}", number.fetch_add(1));
    if (::zmq_socket_monitor(socket.get(), address.c_str(), watched_events) != 0)
        throw core::RunError(fmt::format("cannot watch a ZeroMQ socket: {}", ::zmq_strerror(::zmq_errno())));
    ZmqSocket monitor(context, ZMQ_PAIR);
    monitor.connect(address);
    return monitor;
}

}  // namespace

Consumer::Consumer(const ZmqContext& context, const Config& config)
    : config_(config), socket_(context, ZMQ_PUSH), monitor_(watch(context, socket_)) {
    socket_.set(ZMQ_IMMEDIATE, 1);  // nothing is kept for who is not there
    socket_.set(ZMQ_SNDHWM, static_cast<int>(config.queue));
    socket_.set(ZMQ_TCP_KEEPALIVE, 1);
    socket_.set(ZMQ_IPV6, 1);
    address_ = socket_.bind(config.listen);
}

void Consumer::look() {
    for (;;) {
        zmq_msg_t frame;
        ::zmq_msg_init(&frame);
        const bool came = ::zmq_msg_recv(&frame, monitor_.get(), ZMQ_DONTWAIT) >= 0;
        std::uint16_t what = 0;
        std::uint32_t connection = 0;
        if (came && ::zmq_msg_size(&frame) >= sizeof what + sizeof connection) {
            const auto* bytes = static_cast<const std::byte*>(::zmq_msg_data(&frame));
            std::memcpy(&what, bytes, sizeof what);
            std::memcpy(&connection, bytes + sizeof what, sizeof connection);
        }
        const bool more = came && ::zmq_msg_more(&frame) != 0;
        ::zmq_msg_close(&frame);
        if (!came) return;
        if (more) {  // the address, which is our own
            ::zmq_msg_init(&frame);
            ::zmq_msg_recv(&frame, monitor_.get(), ZMQ_DONTWAIT);
            ::zmq_msg_close(&frame);
        }
        take_notice(what, connection);
    }
}

/// A handshake does not say whose it was: one of the connections that wait for one is meant, and with one consumer
/// there is no other.
void Consumer::take_notice(std::uint16_t what, std::uint32_t connection) {
    if (what == ZMQ_EVENT_ACCEPTED) {
        accepted_.insert(connection);
    } else if (what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
        ++account_.came;
        if (!accepted_.empty()) connected_.insert(accepted_.extract(accepted_.begin()));
        if (!start_was_early_) owes_start_ = true;
        start_was_early_ = false;
    } else if (what == ZMQ_EVENT_DISCONNECTED) {
        accepted_.erase(connection);
        if (connected_.erase(connection) == 0) return;
        if (!ended_) ++account_.left;
        if (connected_.empty()) owes_start_ = true;
    }
}

bool Consumer::has_room(std::size_t bytes) const noexcept {
    const std::uint64_t messages = on_the_way_->messages.load(std::memory_order_acquire);
    if (messages == 0) return true;
    return messages < config_.queue &&
           on_the_way_->bytes.load(std::memory_order_relaxed) + bytes <= config_.queue_bytes;
}

void Consumer::free_shipment(void* /*data*/, void* hint) {
    const std::unique_ptr<Shipment> shipment(static_cast<Shipment*>(hint));
    shipment->on_the_way->bytes.fetch_sub(shipment->message->bytes().size(), std::memory_order_relaxed);
    shipment->on_the_way->messages.fetch_sub(1, std::memory_order_release);
}

std::optional<DropCause> Consumer::send(const MessagePtr& message) {
    const std::span<const std::byte> bytes = message->bytes();
    if (!has_room(bytes.size())) return is_connected() ? DropCause::consumer_behind : DropCause::no_consumer;
    auto shipment = std::make_unique<Shipment>(Shipment{message, on_the_way_});
    zmq_msg_t out;
    // ZeroMQ reads the bytes and never writes them.
    if (::zmq_msg_init_data(&out, const_cast<std::byte*>(bytes.data()), bytes.size(), free_shipment, shipment.get()) !=
        0)
        throw core::RunError("no memory for a ZeroMQ message");
    on_the_way_->messages.fetch_add(1, std::memory_order_relaxed);
    on_the_way_->bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
    shipment.release();  // free_shipment() has it now, whatever comes of the message
    if (::zmq_msg_send(&out, socket_.get(), ZMQ_DONTWAIT) >= 0) return {};
    const int error = ::zmq_errno();
    ::zmq_msg_close(&out);
    if (error != EAGAIN && error != EINTR)
        throw core::RunError(fmt::format("cannot send to {}: {}", address_, ::zmq_strerror(error)));
    return is_connected() ? DropCause::consumer_behind : DropCause::no_consumer;
}

std::optional<DropCause> Consumer::offer_start(const MessagePtr& start) {
    look();
    if (!owes_start_) return {};
    if (const auto why = send(start)) return why;
    owes_start_ = false;
    start_was_early_ = !is_connected();
    return {};
}

std::optional<DropCause> Consumer::offer(const MessagePtr& start, const MessagePtr& message) {
    if (const auto why = offer_start(start)) return why;
    return send(message);
}

std::optional<DropCause> Consumer::offer_end(const MessagePtr& start, const MessagePtr& end) {
    const auto why = offer(start, end);
    if (!why) ended_ = true;
    return why;
}

/// The end is the last message, and the start was the first one: neither is an event.
void Consumer::close() noexcept {
    std::uint64_t late = on_the_way();
    if (ended_ && late > 0) --late;
    late = std::min(late, account_.sent);
    account_.sent -= late;
    account_.dropped[static_cast<std::size_t>(DropCause::too_late)] += late;
    monitor_.close();
    socket_.close();
}

}  // namespace weir::stream

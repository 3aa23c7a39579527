#include "stream/consumer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "stream/zmq_library.hpp"

namespace weir::stream {

namespace {

constexpr int watched_events = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED |
                               ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_AUTH;

/// Starts to watch a socket before it has connections, and gives what tells of them.
ZmqSocket watch(const ZmqContext& context, const ZmqSocket& socket) {
    static std::atomic<std::uint64_t> number{0};
    const std::string address = fmt::format("inproc://consumer-{}", number.fetch_add(1));
    if (zmq().zmq_socket_monitor(socket.get(), address.c_str(), watched_events) != 0)
        throw core::RunError(fmt::format("cannot watch a ZeroMQ socket: {}", zmq().zmq_strerror(zmq().zmq_errno())));
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
    address_ = socket_.bind(config.listen);
}

void Consumer::look() {
    for (;;) {
        zmq_msg_t frame;
        zmq().zmq_msg_init(&frame);
        const bool came = zmq().zmq_msg_recv(&frame, monitor_.get(), ZMQ_DONTWAIT) >= 0;
        std::uint16_t what = 0;
        if (came && zmq().zmq_msg_size(&frame) >= sizeof what)
            std::memcpy(&what, zmq().zmq_msg_data(&frame), sizeof what);
        const bool more = came && zmq().zmq_msg_more(&frame) != 0;
        zmq().zmq_msg_close(&frame);
        if (!came) return;
        if (more) {  // the address, which is our own
            zmq().zmq_msg_init(&frame);
            zmq().zmq_msg_recv(&frame, monitor_.get(), ZMQ_DONTWAIT);
            zmq().zmq_msg_close(&frame);
        }
        take_notice(what);
    }
}

/// ZeroMQ's one thread tells of everything in the order in which it happens. Whoever goes without ever having been a
/// consumer, such as a port scanner, goes right after its handshake has failed.
void Consumer::take_notice(std::uint16_t what) {
    const bool was_none = std::exchange(handshake_failed_, what == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL ||
                                                               what == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
                                                               what == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH);
    if (what == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
        ++account_.came;
        ++connected_;
        owes_start_ = true;
        // Asked for its state, the socket takes note of the new connection, and of the end of the one before it, now;
        // else it would do so only some milliseconds later.
        int state = 0;
        std::size_t bytes = sizeof state;
        zmq().zmq_getsockopt(socket_.get(), ZMQ_EVENTS, &state, &bytes);
    } else if (what == ZMQ_EVENT_DISCONNECTED && !was_none && connected_ > 0) {
        --connected_;
        if (!ended_ || on_the_way() > 0) ++account_.left;  // it cannot have all
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
    // What is sent right after a consumer has gone could still get into its queue, and would be lost with that.
    if (!is_connected()) return DropCause::no_consumer;
    if (!has_room(bytes.size())) return DropCause::consumer_behind;
    auto shipment = std::make_unique<Shipment>(Shipment{message, on_the_way_});
    zmq_msg_t out;
    // ZeroMQ reads the bytes and never writes them.
    if (zmq().zmq_msg_init_data(&out, const_cast<std::byte*>(bytes.data()), bytes.size(), free_shipment,
                                shipment.get()) != 0)
        throw core::RunError("no memory for a ZeroMQ message");
    on_the_way_->messages.fetch_add(1, std::memory_order_relaxed);
    on_the_way_->bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
    shipment.release();  // free_shipment() has it now, whatever comes of the message
    if (zmq().zmq_msg_send(&out, socket_.get(), ZMQ_DONTWAIT) >= 0) return {};
    const int error = zmq().zmq_errno();
    zmq().zmq_msg_close(&out);
    if (error != EAGAIN && error != EINTR)
        throw core::RunError(fmt::format("cannot send to {}: {}", address_, zmq().zmq_strerror(error)));
    return DropCause::consumer_behind;
}

std::optional<DropCause> Consumer::offer_start(const MessagePtr& start) {
    look();
    if (!owes_start_) return {};
    if (const auto why = send(start)) return why;
    owes_start_ = false;
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

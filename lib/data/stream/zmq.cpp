#include "stream/zmq.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/error.hpp"
#include "stream/zmq_library.hpp"

namespace weir::stream {

namespace {

[[noreturn]] void throw_zmq(const std::string& what) {
    throw core::RunError(fmt::format("{}: {}", what, zmq().zmq_strerror(zmq().zmq_errno())));
}

}  // namespace

ZmqContext::ZmqContext() : context_(zmq().zmq_ctx_new()) {
    if (context_ == nullptr) throw_zmq("cannot start ZeroMQ");
}

ZmqContext::~ZmqContext() {
    while (zmq().zmq_ctx_term(context_) != 0 && zmq().zmq_errno() == EINTR) {
    }
}

ZmqSocket::ZmqSocket(const ZmqContext& context, int type) : socket_(zmq().zmq_socket(context.get(), type)) {
    if (socket_ == nullptr) throw_zmq("cannot make a ZeroMQ socket");
    set(ZMQ_LINGER, 0);
}

ZmqSocket::~ZmqSocket() {
    close();
}

void ZmqSocket::close() noexcept {
    if (void* const socket = std::exchange(socket_, nullptr); socket != nullptr) zmq().zmq_close(socket);
}

ZmqSocket::ZmqSocket(ZmqSocket&& other) noexcept : socket_(std::exchange(other.socket_, nullptr)) {}

void ZmqSocket::set(int option, int value) {
    if (zmq().zmq_setsockopt(socket_, option, &value, sizeof value) != 0)
        throw_zmq(fmt::format("ZeroMQ refuses option {} = {}", option, value));
}

/// Only where IPv6 is written: else a name could become an address of it on one side, and of IPv4 on the other.
void ZmqSocket::choose_family(const std::string& address) {
    set(ZMQ_IPV6, address.find('[') != std::string::npos ? 1 : 0);
}

std::string ZmqSocket::bind(const std::string& address) {
    choose_family(address);
    if (zmq().zmq_bind(socket_, address.c_str()) != 0) throw_zmq(fmt::format("cannot listen at {}", address));
    std::array<char, 1024> bound{};
    std::size_t bytes = bound.size();
    if (zmq().zmq_getsockopt(socket_, ZMQ_LAST_ENDPOINT, bound.data(), &bytes) != 0) return address;
    return bound.data();
}

void ZmqSocket::connect(const std::string& address) {
    choose_family(address);
    if (zmq().zmq_connect(socket_, address.c_str()) != 0) throw_zmq(fmt::format("cannot connect to {}", address));
}

}  // namespace weir::stream

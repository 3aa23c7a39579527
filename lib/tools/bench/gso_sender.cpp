#include "bench/gso_sender.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bench/packet_batch.hpp"
#include "bench/sending_socket.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t segments_max = 64;  // Linux's UDP_MAX_SEGMENTS before 6.9

/// Sends as many packets in a call as UdpSender does, so that the two differ in nothing else.
class GsoSender : public Sender {
public:
    explicit GsoSender(const Endpoint& to) : to_(to), socket_(connected_socket(to)) {}

    void prepare(const PacketPlan& plan) override {
        batch_.prepare(plan);
        joined_ = packets_joined(plan.bytes);
        set_segment(joined_ > 1 ? static_cast<int>(plan.bytes) : 0);
    }

    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        batch_.stamp(first, count, core::monotonic_ns());
        std::uint32_t messages = 0;
        for (std::uint32_t at = 0; at < count; at += joined_, ++messages)
            batch_.put(messages, at, std::min(joined_, count - at));
        const int sent = batch_.send(socket_.get(), messages);
        if (sent >= 0) return std::min(count, static_cast<std::uint32_t>(sent) * joined_);
        if (!may_try_again(errno)) fail();
        return 0;
    }

    [[nodiscard]] std::uint32_t burst() const noexcept override { return PacketBatch<PacketMaker>::most; }
    [[nodiscard]] bool joins_packets() const noexcept override { return true; }

private:
    /// It is the same for all messages, so that the socket knows it and no message has to say it. 0: nothing is joined.
    void set_segment(int bytes) {
        if (::setsockopt(socket_.get(), IPPROTO_UDP, UDP_SEGMENT, &bytes, sizeof bytes) != 0)
            throw core::RunError(fmt::format("no UDP_SEGMENT here (Linux 4.18): {}", std::strerror(errno)));
    }

    [[noreturn]] void fail() const {
        const int error = errno;
        // EMSGSIZE in newer kernels, EINVAL before.
        if (joined_ > 1 && (error == EINVAL || error == EMSGSIZE))
            throw core::RunError(fmt::format("gso: packets of {} bytes of payload do not fit the MTU on the way to {}",
                                             batch_.maker().plan().bytes, to_.address));
        throw_not_sent(to_, error);
    }

    Endpoint to_;
    FileDescriptor socket_;
    PacketBatch<PacketMaker> batch_;
    std::uint32_t joined_ = 1;
};

}  // namespace

std::uint32_t packets_joined(std::uint32_t bytes) noexcept {
    return std::clamp(PacketPlan::bytes_max / bytes, 1U, segments_max);
}

std::unique_ptr<Sender> open_gso_sender(const Endpoint& to) {
    return std::make_unique<GsoSender>(to);
}

}  // namespace weir::bench

#include "bench/gso_sender.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

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
        maker_.emplace(plan);
        joined_ = packets_joined(plan.bytes);
        for (std::uint32_t i = 0; i < most; ++i) {
            parts_[i][0] = {heads_[i].data(), PacketPlan::head_bytes};
            parts_[i][1] = {const_cast<std::byte*>(maker_->body().data()), maker_->body().size()};
        }
        set_segment(joined_ > 1 ? static_cast<int>(plan.bytes) : 0);
    }

    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        const core::TimeNs now = core::monotonic_ns();
        for (std::uint32_t i = 0; i < count; ++i) maker_->write_head(first + i, now, heads_[i].data());
        std::uint32_t messages = 0;
        for (std::uint32_t at = 0; at < count; at += joined_, ++messages) {
            msghdr& message = messages_[messages].msg_hdr;
            message.msg_iov = parts_[at].data();  // those of its packets follow each other
            message.msg_iovlen = std::size_t{2} * std::min(joined_, count - at);
        }
        const int sent = ::sendmmsg(socket_.get(), messages_.data(), messages, 0);
        if (sent >= 0) return std::min(count, static_cast<std::uint32_t>(sent) * joined_);
        if (!may_try_again(errno)) fail();
        return 0;
    }

    [[nodiscard]] std::uint32_t burst() const noexcept override { return most; }
    [[nodiscard]] bool joins_packets() const noexcept override { return true; }

private:
    static constexpr std::uint32_t most = 64;

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
                                             maker_->plan().bytes, to_.address));
        throw_not_sent(to_, error);
    }

    Endpoint to_;
    FileDescriptor socket_;
    std::optional<PacketMaker> maker_;
    std::uint32_t joined_ = 1;
    std::array<std::array<std::byte, PacketPlan::head_bytes>, most> heads_{};
    std::array<std::array<iovec, 2>, most> parts_{};
    std::array<mmsghdr, most> messages_{};
};

}  // namespace

std::uint32_t packets_joined(std::uint32_t bytes) noexcept {
    return std::clamp(PacketPlan::bytes_max / bytes, 1U, segments_max);
}

std::unique_ptr<Sender> open_gso_sender(const Endpoint& to) {
    return std::make_unique<GsoSender>(to);
}

}  // namespace weir::bench

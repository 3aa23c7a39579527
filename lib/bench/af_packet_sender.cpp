#include "bench/af_packet_sender.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "bench/frame_maker.hpp"
#include "bench/neighbour.hpp"
#include "bench/sending_socket.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"

namespace weir::bench {
namespace {

std::uint32_t number_of(const std::string& address) {
    in_addr number{};
    ::inet_pton(AF_INET, address.c_str(), &number);
    return ntohl(number.s_addr);
}

/// Sends as many packets in a call as UdpSender does, so that the two differ in nothing else.
class AfPacketSender : public Sender {
public:
    explicit AfPacketSender(const Endpoint& to)
        : to_(to),
          port_(connected_socket(to)),
          neighbour_(neighbour_of(port_.get())),
          socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
        if (!socket_) problem("a packet socket (needs CAP_NET_RAW)");
        // Without a protocol: nothing is received.
        sockaddr_ll address{};
        address.sll_family = AF_PACKET;
        address.sll_ifindex = static_cast<int>(::if_nametoindex(neighbour_.interface.c_str()));
        if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            problem("interface " + neighbour_.interface);
        const int yes = 1;
        if (::setsockopt(socket_.get(), SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof yes) != 0)
            problem("past the kernel's queues");
        limit_waiting(socket_);
    }

    void prepare(const PacketPlan& plan) override {
        const wire::FrameSpec spec{.destination_mac = neighbour_.mac,
                                   .source_mac = neighbour_.own_mac,
                                   .vlan = {},
                                   .src = number_of(neighbour_.own.address),
                                   .dst = number_of(to_.address),
                                   .sport = neighbour_.own.port,
                                   .dport = to_.port};
        maker_.emplace(spec, plan);
        for (std::uint32_t i = 0; i < most; ++i) {
            parts_[i][0] = {heads_[i].data(), FrameMaker::head_bytes};
            parts_[i][1] = {const_cast<std::byte*>(maker_->body().data()), maker_->body().size()};
            messages_[i].msg_hdr.msg_iov = parts_[i].data();
            messages_[i].msg_hdr.msg_iovlen = parts_[i].size();
        }
    }

    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        const core::TimeNs now = core::monotonic_ns();
        for (std::uint32_t i = 0; i < count; ++i) maker_->write_head(first + i, now, heads_[i].data());
        const int sent = ::sendmmsg(socket_.get(), messages_.data(), count, 0);
        if (sent >= 0) return static_cast<std::uint32_t>(sent);
        if (errno == EMSGSIZE) problem("packets and their headers do not fit the MTU of " + neighbour_.interface);
        if (!may_try_again(errno)) throw_not_sent(to_, errno);
        return 0;
    }

    [[nodiscard]] std::uint32_t burst() const noexcept override { return most; }

private:
    static constexpr std::uint32_t most = 64;

    [[noreturn]] static void problem(const std::string& what) {
        throw core::RunError(fmt::format("af-packet: {}: {}", what, std::strerror(errno)));
    }

    Endpoint to_;
    FileDescriptor port_;  // only so that it is nobody else's, and for the address
    Neighbour neighbour_;
    FileDescriptor socket_;
    std::optional<FrameMaker> maker_;
    std::array<std::array<std::byte, FrameMaker::head_bytes>, most> heads_{};
    std::array<std::array<iovec, 2>, most> parts_{};
    std::array<mmsghdr, most> messages_{};
};

}  // namespace

std::unique_ptr<Sender> open_af_packet_sender(const Endpoint& to) {
    return std::make_unique<AfPacketSender>(to);
}

}  // namespace weir::bench

#include "bench/af_packet_sender.hpp"

#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "bench/frame_maker.hpp"
#include "bench/neighbour.hpp"
#include "bench/packet_batch.hpp"
#include "bench/sending_socket.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"

namespace weir::bench {
namespace {

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
                                   .src = address_number(neighbour_.own.address),
                                   .dst = address_number(to_.address),
                                   .sport = neighbour_.own.port,
                                   .dport = to_.port};
        batch_.prepare(spec, plan);
    }

    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        batch_.stamp(first, count, core::monotonic_ns());
        const int sent = batch_.send(socket_.get(), count);
        if (sent >= 0) return static_cast<std::uint32_t>(sent);
        if (errno == EMSGSIZE) problem("packets and their headers do not fit the MTU of " + neighbour_.interface);
        if (!may_try_again(errno)) throw_not_sent(to_, errno);
        return 0;
    }

    [[nodiscard]] std::uint32_t burst() const noexcept override { return PacketBatch<FrameMaker>::most; }

private:
    [[noreturn]] static void problem(const std::string& what) {
        throw core::RunError(fmt::format("af-packet: {}: {}", what, std::strerror(errno)));
    }

    Endpoint to_;
    FileDescriptor port_;  // only so that it is nobody else's, and for the address
    Neighbour neighbour_;
    FileDescriptor socket_;
    PacketBatch<FrameMaker> batch_;
};

}  // namespace

std::unique_ptr<Sender> open_af_packet_sender(const Endpoint& to) {
    return std::make_unique<AfPacketSender>(to);
}

}  // namespace weir::bench

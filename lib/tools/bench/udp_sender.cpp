#include "bench/udp_sender.hpp"

#include <sys/socket.h>

#include <cerrno>

#include "bench/packet_batch.hpp"
#include "bench/sending_socket.hpp"
#include "core/clock_ns.hpp"

namespace weir::bench {
namespace {

class UdpSender : public Sender {
public:
    explicit UdpSender(const Endpoint& to) : to_(to), socket_(connected_socket(to)) {}

    void prepare(const PacketPlan& plan) override { batch_.prepare(plan); }

    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        batch_.stamp(first, count, core::monotonic_ns());
        const int sent = batch_.send(socket_.get(), count);
        if (sent >= 0) return static_cast<std::uint32_t>(sent);
        if (!may_try_again(errno)) throw_not_sent(to_, errno);
        return 0;
    }

    [[nodiscard]] std::uint32_t burst() const noexcept override { return PacketBatch<PacketMaker>::most; }

private:
    Endpoint to_;
    FileDescriptor socket_;
    PacketBatch<PacketMaker> batch_;
};

}  // namespace

std::unique_ptr<Sender> open_udp_sender(const Endpoint& to) {
    return std::make_unique<UdpSender>(to);
}

}  // namespace weir::bench

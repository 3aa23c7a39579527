#include "bench/uring_receiver.hpp"

#include <algorithm>
#include <string>

#include "bench/packet_buffers.hpp"
#include "bench/receive_ring.hpp"
#include "bench/udp_socket.hpp"

namespace weir::bench {
namespace {

class UringReceiver : public Receiver {
public:
    explicit UringReceiver(const ReceiverSpec& spec)
        : socket_(spec.address),
          remarks_(socket_.enlarge_buffer()),
          buffers_(room_bytes(spec), ReceiveRing::buffers_max + (spec.addresses > 1 ? 0 : held_max) + burst,
                   spec.addresses),
          ring_(std::make_unique<ReceiveRing>(socket_.get(), buffers_)) {}

    [[nodiscard]] Endpoint endpoint() const override { return socket_.endpoint(); }

    std::uint32_t receive(std::span<ReceivedPacket> packets) override {
        if (!ring_->is_own()) {
            ring_.reset();  // first: it has buffers that the new one needs
            ring_ = std::make_unique<ReceiveRing>(socket_.get(), buffers_);
        }
        const auto wanted = packets.first(std::min<std::size_t>(packets.size(), burst));
        ring_->provide();
        if (const std::uint32_t count = ring_->take(wanted); count > 0) return count;
        ring_->wait();
        return ring_->take(wanted);
    }

    [[nodiscard]] assemble::BufferRelease release() const noexcept override { return PacketBuffers::release; }
    [[nodiscard]] Drops drops() override { return {.device = {}, .kernel = socket_.dropped()}; }
    [[nodiscard]] std::string remarks() const override { return remarks_; }

private:
    static std::uint32_t room_bytes(const ReceiverSpec& spec) {
        return ReceiveRing::note_bytes + spec.bytes + 1;  // a longer one shows itself
    }

    UdpSocket socket_;
    std::string remarks_;
    PacketBuffers buffers_;
    std::unique_ptr<ReceiveRing> ring_;  // of the thread that received last
};

}  // namespace

std::unique_ptr<Receiver> open_uring_receiver(const ReceiverSpec& spec) {
    return std::make_unique<UringReceiver>(spec);
}

}  // namespace weir::bench

#include "bench/udp_receiver.hpp"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <string>

#include "bench/packet_buffers.hpp"
#include "bench/udp_socket.hpp"

namespace weir::bench {
namespace {

constexpr timeval wait{.tv_sec = 0, .tv_usec = 10'000};

class UdpReceiver : public Receiver {
public:
    UdpReceiver(const ReceiverSpec& spec, UdpTuning tuning)
        : socket_(spec.address),
          buffers_(room_bytes(spec), burst + (spec.addresses > 1 ? 0 : held_max) + burst, spec.addresses) {
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        if (tuning == UdpTuning::all) tune();
        for (std::uint32_t i = 0; i < burst; ++i) {
            parts_[i].iov_len = buffers_.bytes();
            messages_[i].msg_hdr.msg_iov = &parts_[i];
            messages_[i].msg_hdr.msg_iovlen = 1;
        }
    }

    [[nodiscard]] Endpoint endpoint() const override { return socket_.endpoint(); }

    std::uint32_t receive(std::span<ReceivedPacket> packets) override {
        const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(packets.size(), burst));
        std::uint32_t ready = 0;
        for (; ready < most; ++ready) {
            if (parts_[ready].iov_base == nullptr) parts_[ready].iov_base = buffers_.take();
            if (parts_[ready].iov_base == nullptr) break;  // who assembles holds them all
        }
        if (ready == 0) return 0;
        const int count = ::recvmmsg(socket_.get(), messages_.data(), ready, MSG_WAITFORONE, nullptr);
        if (count <= 0) return 0;  // nothing came; what else may be wrong would show in every call
        for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(count); ++i) {
            packets[i] = {static_cast<const std::byte*>(parts_[i].iov_base), messages_[i].msg_len, parts_[i].iov_base};
            parts_[i].iov_base = nullptr;
        }
        return static_cast<std::uint32_t>(count);
    }

    [[nodiscard]] assemble::BufferRelease release() const noexcept override { return PacketBuffers::release; }
    [[nodiscard]] Drops drops() override { return {.device = {}, .kernel = socket_.dropped()}; }
    [[nodiscard]] std::string remarks() const override { return remarks_; }

private:
    static std::uint32_t room_bytes(const ReceiverSpec& spec) { return spec.bytes + 1; }  // a longer one shows itself

    void tune() {
        remarks_ = socket_.enlarge_buffer();
        const std::string refused = socket_.poll_busily();
        if (!remarks_.empty() && !refused.empty()) remarks_ += "; ";
        remarks_ += refused;
    }

    UdpSocket socket_;
    PacketBuffers buffers_;
    std::array<iovec, burst> parts_{};
    std::array<mmsghdr, burst> messages_{};
    std::string remarks_;
};

}  // namespace

std::unique_ptr<Receiver> open_udp_receiver(const ReceiverSpec& spec, UdpTuning tuning) {
    return std::make_unique<UdpReceiver>(spec, tuning);
}

}  // namespace weir::bench

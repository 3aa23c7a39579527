#include "bench/packet_mmap_receiver.hpp"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <netinet/in.h>

#include <array>

#include "bench/reserved_port.hpp"
#include "port/block_ring.hpp"
#include "wire/network.hpp"

namespace weir::bench {
namespace {

constexpr int wait_ms = 10;

class PacketMmapReceiver : public Receiver {
public:
    explicit PacketMmapReceiver(const ReceiverSpec& spec) : port_(spec.address) {
        filter();
        ring_.bind_to(spec.interface, ETH_P_IP);
    }

    [[nodiscard]] Endpoint endpoint() const override { return port_.endpoint(); }

    std::uint32_t receive(std::span<ReceivedPacket> packets) override {
        std::uint32_t count = 0;
        while (count < packets.size() && count < burst) {
            if (ring_.left() == 0 && !next_block(count == 0)) break;
            if (take(packets[count]) == wire::ok) ++count;
        }
        return count;
    }

    [[nodiscard]] assemble::BufferRelease release() const noexcept override {
        return [](void**, std::uint32_t) {};
    }
    [[nodiscard]] bool lends() const noexcept override { return true; }

    [[nodiscard]] Drops drops() override {
        dropped_ += ring_.take_drops();
        return {.device = {}, .kernel = dropped_};
    }

private:
    /// IPv4 without options, UDP, our port: the rest is not ours.
    void filter() {
        const std::uint16_t port = port_.endpoint().port;
        std::array<sock_filter, 8> program{{
            BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 5),
            BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
            BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 36),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, 0x40000),
            BPF_STMT(BPF_RET | BPF_K, 0),
        }};
        ring_.filter(program);
    }

    /// What was handed out of the block in hand is in use until the next call, so only then does the block go back.
    bool next_block(bool may_wait) noexcept {
        if (!may_wait) return false;
        if (ring_.next_block()) return true;
        ring_.wait(wait_ms);
        return ring_.next_block();
    }

    wire::PacketCounter take(ReceivedPacket& out) noexcept {
        const tpacket3_hdr& head = ring_.take();
        const std::byte* const frame = reinterpret_cast<const std::byte*>(&head) + head.tp_mac;
        wire::Datagram datagram;
        const wire::PacketCounter is = wire::parse_frame(frame, head.tp_snaplen, head.tp_len, datagram);
        out = {datagram.payload, datagram.payload_bytes, const_cast<std::byte*>(datagram.payload)};
        return is;
    }

    ReservedPort port_;
    port::BlockRing ring_{{}};  // 64 MiB: what udp-tuned gets
    std::uint64_t dropped_ = 0;
};

}  // namespace

std::unique_ptr<Receiver> open_packet_mmap_receiver(const ReceiverSpec& spec) {
    return std::make_unique<PacketMmapReceiver>(spec);
}

}  // namespace weir::bench

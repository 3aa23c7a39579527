#include "bench/packet_mmap_receiver.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "bench/file_descriptor.hpp"
#include "bench/reserved_port.hpp"
#include "core/error.hpp"
#include "wire/network.hpp"

namespace weir::bench {
namespace {

// 64 MiB: what udp-tuned gets. A block is handed over when it is full, or after a millisecond.
constexpr std::uint32_t block_bytes = 1U << 20;
constexpr std::uint32_t blocks = 64;
constexpr std::uint32_t block_timeout_ms = 1;
constexpr int wait_ms = 10;

/// The ring, unmapped with its owner.
class Mapping {
public:
    Mapping() = default;
    ~Mapping() {
        if (at_ != nullptr) ::munmap(at_, std::size_t{block_bytes} * blocks);
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    bool map(int socket) noexcept {
        void* const at = ::mmap(nullptr, std::size_t{block_bytes} * blocks, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_POPULATE, socket, 0);
        if (at == MAP_FAILED) return false;
        at_ = static_cast<std::byte*>(at);
        return true;
    }
    [[nodiscard]] tpacket_block_desc* block(std::uint32_t index) const noexcept {
        return reinterpret_cast<tpacket_block_desc*>(at_ + std::size_t{block_bytes} * index);
    }

private:
    std::byte* at_ = nullptr;
};

class PacketMmapReceiver : public Receiver {
public:
    explicit PacketMmapReceiver(const ReceiverSpec& spec)
        : port_(spec.address), socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)) {
        make_ring();
        filter();
        bind_to(spec.interface);
    }

    [[nodiscard]] Endpoint endpoint() const override { return port_.endpoint(); }

    std::uint32_t receive(std::span<ReceivedPacket> packets) override {
        std::uint32_t count = 0;
        while (count < packets.size() && count < burst) {
            if (left_ == 0 && !next_block(count == 0)) break;
            const wire::PacketCounter is = take(packets[count]);
            if (is == wire::ok) ++count;
        }
        return count;
    }

    [[nodiscard]] assemble::BufferRelease release() const noexcept override {
        return [](void**, std::uint32_t) {};
    }
    [[nodiscard]] bool lends() const noexcept override { return true; }

    [[nodiscard]] Drops drops() override {
        tpacket_stats_v3 counts{};  // since it was asked last
        socklen_t bytes = sizeof counts;
        if (::getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &counts, &bytes) == 0)
            dropped_ += counts.tp_drops;
        return {.device = {}, .kernel = dropped_};
    }

private:
    [[noreturn]] static void fail(const std::string& what) {
        throw core::RunError(fmt::format("packet-mmap: {}: {}", what, std::strerror(errno)));
    }

    void make_ring() {
        if (!socket_) fail("a packet socket (needs CAP_NET_RAW)");
        const int version = TPACKET_V3;
        tpacket_req3 ring{};
        ring.tp_block_size = block_bytes;
        ring.tp_block_nr = blocks;
        ring.tp_frame_size = 1U << 14;
        ring.tp_frame_nr = block_bytes / ring.tp_frame_size * blocks;
        ring.tp_retire_blk_tov = block_timeout_ms;
        if (::setsockopt(socket_.get(), SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
            ::setsockopt(socket_.get(), SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0 ||
            !map_.map(socket_.get()))
            fail("a ring of 64 MiB");
    }

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
        const sock_fprog whole{static_cast<unsigned short>(program.size()), program.data()};
        if (::setsockopt(socket_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &whole, sizeof whole) != 0) fail("a filter");
    }

    void bind_to(const std::string& interface) {
        sockaddr_ll address{};
        address.sll_family = AF_PACKET;
        address.sll_protocol = htons(ETH_P_IP);
        address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
        if (address.sll_ifindex == 0 ||
            ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            fail("interface " + interface);
    }

    /// Gives the block that is done with back, and takes the next one; waits for it if `may_wait`.
    bool next_block(bool may_wait) {
        if (in_hand_) {
            // What was handed out of it is still in use: it goes back with the next call.
            if (!may_wait) return false;
            give_back();
        }
        tpacket_block_desc* const block = map_.block(current_);
        const std::atomic_ref status(block->hdr.bh1.block_status);
        if ((status.load(std::memory_order_acquire) & TP_STATUS_USER) == 0) {
            if (!may_wait) return false;
            pollfd one{.fd = socket_.get(), .events = POLLIN, .revents = 0};
            ::poll(&one, 1, wait_ms);
            if ((status.load(std::memory_order_acquire) & TP_STATUS_USER) == 0) return false;
        }
        in_hand_ = true;
        left_ = block->hdr.bh1.num_pkts;
        packet_ = reinterpret_cast<const std::byte*>(block) + block->hdr.bh1.offset_to_first_pkt;
        return left_ > 0;
    }

    void give_back() noexcept {
        const std::atomic_ref status(map_.block(current_)->hdr.bh1.block_status);
        status.store(TP_STATUS_KERNEL, std::memory_order_release);
        current_ = (current_ + 1) % blocks;
        in_hand_ = false;
    }

    wire::PacketCounter take(ReceivedPacket& out) noexcept {
        const auto* const head = reinterpret_cast<const tpacket3_hdr*>(packet_);
        const std::byte* const frame = packet_ + head->tp_mac;
        wire::Datagram datagram;
        const wire::PacketCounter is = wire::parse_frame(frame, head->tp_snaplen, head->tp_len, datagram);
        out = {datagram.payload, datagram.payload_bytes, const_cast<std::byte*>(datagram.payload)};
        packet_ += head->tp_next_offset;
        --left_;
        return is;
    }

    ReservedPort port_;
    FileDescriptor socket_;
    Mapping map_;
    std::uint64_t dropped_ = 0;
    std::uint32_t current_ = 0;  // block
    bool in_hand_ = false;       // it is ours
    std::uint32_t left_ = 0;     // packets in it
    const std::byte* packet_ = nullptr;
};

}  // namespace

std::unique_ptr<Receiver> open_packet_mmap_receiver(const ReceiverSpec& spec) {
    return std::make_unique<PacketMmapReceiver>(spec);
}

}  // namespace weir::bench

#include "port/block_ring.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <net/if.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace weir::port {

namespace {

[[noreturn]] void ring_failed(const std::string& step) {
    throw core::RunError(fmt::format("{}: {}", step, std::strerror(errno)));
}

std::size_t ring_bytes(const BlockRing::Config& config) noexcept {
    return std::size_t{config.block_bytes} * config.blocks;
}

/// Closes the socket unless it is kept: a constructor that throws has no destructor.
struct OpenSocket {
    int file;
    ~OpenSocket() {
        if (file >= 0) ::close(file);
    }
};

}  // namespace

BlockRing::BlockRing(const Config& config) : config_(config) {
    // Without a protocol: a socket with one hears every interface until it is bound.
    OpenSocket made{::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)};
    if (made.file < 0) ring_failed("opening a packet socket");
    const int version = TPACKET_V3;
    const int yes = 1;
    tpacket_req3 ring{};
    ring.tp_block_size = config.block_bytes;
    ring.tp_block_nr = config.blocks;
    ring.tp_frame_size = 2048;  // checked, and otherwise without meaning in this version
    ring.tp_frame_nr = config.block_bytes / ring.tp_frame_size * config.blocks;
    ring.tp_retire_blk_tov = config.retire_ms;
    if (::setsockopt(made.file, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
        ::setsockopt(made.file, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0)
        ring_failed(fmt::format("making a ring of {} MiB", ring_bytes(config) >> 20U));
    // What this host sends through the interface is none of ours. Kernels before 4.20 do not know the option.
    static_cast<void>(::setsockopt(made.file, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes));
    void* const at =
        ::mmap(nullptr, ring_bytes(config), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, made.file, 0);
    if (at == MAP_FAILED) ring_failed("mapping the ring");
    memory_ = static_cast<std::byte*>(at);
    socket_ = made.file;
    made.file = -1;
}

BlockRing::~BlockRing() {
    ::munmap(memory_, ring_bytes(config_));
    ::close(socket_);
}

void BlockRing::filter(std::span<const sock_filter> program) {
    const sock_fprog whole{static_cast<unsigned short>(program.size()), const_cast<sock_filter*>(program.data())};
    if (::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &whole, sizeof whole) != 0) ring_failed("setting a filter");
}

void BlockRing::bind_to(const std::string& interface, std::uint16_t protocol) {
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(protocol);
    address.sll_ifindex = static_cast<int>(::if_nametoindex(interface.c_str()));
    if (address.sll_ifindex == 0 || ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        ring_failed("binding to interface " + interface);
}

bool BlockRing::hear_all() noexcept {
    sockaddr_ll address{};
    socklen_t bytes = sizeof address;
    if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return false;
    packet_mreq membership{};
    membership.mr_ifindex = address.sll_ifindex;
    membership.mr_type = PACKET_MR_PROMISC;
    return ::setsockopt(socket_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership) == 0;
}

tpacket_block_desc& BlockRing::block() const noexcept {
    return *reinterpret_cast<tpacket_block_desc*>(memory_ + std::size_t{config_.block_bytes} * current_);
}

bool BlockRing::next_block() noexcept {
    give_back();
    tpacket_block_desc& next = block();
    const std::atomic_ref status(next.hdr.bh1.block_status);
    if ((status.load(std::memory_order_acquire) & TP_STATUS_USER) == 0) return false;
    in_hand_ = true;
    left_ = next.hdr.bh1.num_pkts;
    packet_ = reinterpret_cast<const std::byte*>(&next) + next.hdr.bh1.offset_to_first_pkt;
    return left_ > 0;
}

void BlockRing::give_back() noexcept {
    if (!in_hand_) return;
    const std::atomic_ref status(block().hdr.bh1.block_status);
    status.store(TP_STATUS_KERNEL, std::memory_order_release);
    current_ = (current_ + 1) % config_.blocks;
    in_hand_ = false;
    left_ = 0;
}

const tpacket3_hdr& BlockRing::take() noexcept {
    const auto& header = *reinterpret_cast<const tpacket3_hdr*>(packet_);
    packet_ += header.tp_next_offset;
    --left_;
    return header;
}

void BlockRing::wait(int milliseconds) const noexcept {
    pollfd one{.fd = socket_, .events = POLLIN, .revents = 0};
    ::poll(&one, 1, milliseconds);
}

bool BlockRing::send(std::span<const std::byte> frame) const noexcept {
    return ::send(socket_, frame.data(), frame.size(), MSG_DONTWAIT) == static_cast<ssize_t>(frame.size());
}

std::uint64_t BlockRing::take_drops() noexcept {
    tpacket_stats_v3 counts{};
    socklen_t bytes = sizeof counts;
    return ::getsockopt(socket_, SOL_PACKET, PACKET_STATISTICS, &counts, &bytes) == 0 ? counts.tp_drops : 0;
}

}  // namespace weir::port

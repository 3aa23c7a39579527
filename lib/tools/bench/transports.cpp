#include "bench/transports.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "bench/af_packet_sender.hpp"
#include "bench/dpdk_receiver.hpp"
#include "bench/dpdk_sender.hpp"
#include "bench/gso_sender.hpp"
#include "bench/packet_mmap_receiver.hpp"
#include "bench/udp_receiver.hpp"
#include "bench/udp_sender.hpp"
#include "bench/uring_receiver.hpp"
#include "bench/verbs_transports.hpp"
#include "core/error.hpp"

namespace weir::bench {
namespace {

constexpr std::array<Transport, 14> table{{
    {.name = "udp-socket",
     .text = "a UDP socket as it comes: recvmmsg, the system's buffer sizes",
     .open = [](const ReceiverSpec& spec) { return open_udp_receiver(spec, UdpTuning::none); },
     .places = true},
    {.name = "udp-tuned",
     .text = "a UDP socket with 64 MiB of buffer, busy polling and SCHED_FIFO",
     .real_time = true,
     .open = [](const ReceiverSpec& spec) { return open_udp_receiver(spec, UdpTuning::all); },
     .places = true},
    {.name = "udp-iouring",
     .text = "a UDP socket by io_uring (multishot, a ring of buffers), with 64 MiB of buffer and SCHED_FIFO",
     .real_time = true,
     .open = [](const ReceiverSpec& spec) { return open_uring_receiver(spec); },
     .places = true},
    {.name = "packet-mmap",
     .text = "a ring shared with the kernel (AF_PACKET, TPACKET_V3), 64 MiB",
     .open = [](const ReceiverSpec& spec) { return open_packet_mmap_receiver(spec); },
     .sees_frames = true},
    {.name = "af-xdp",
     .text = "an XDP socket, by DPDK's net_af_xdp",
     .open = [](const ReceiverSpec& spec) { return open_dpdk_receiver(spec, "net_af_xdp"); },
     .sees_frames = true},
    {.name = "dpdk-udp",
     .text = "DPDK: --device, or without one net_af_packet on the interface",
     .open = [](const ReceiverSpec& spec) { return open_dpdk_receiver(spec, "net_af_packet"); },
     .pipeline = PipelineKind{"udp", ""},
     .sees_frames = true,
     .on_device = true},
    {.name = "verbs-send",
     .text = "RDMA SEND by libibverbs (an RDMA adapter, or soft-RoCE), unreliable connection",
     .open = [](const ReceiverSpec& spec) { return open_verbs_receiver(spec, {.write = false}); },
     .places = true,
     .rdma = true},
    {.name = "verbs-write",
     .text = "RDMA WRITE with immediate by libibverbs, unreliable connection",
     .open = [](const ReceiverSpec& spec) { return open_verbs_receiver(spec, {.write = true}); },
     .places = true,
     .rdma = true},
    {.name = "verbs-write-rc",
     .text = "RDMA WRITE with immediate by libibverbs, reliable connection: what is lost is sent again",
     .open = [](const ReceiverSpec& spec) { return open_verbs_receiver(spec, {.write = true, .reliable = true}); },
     .places = true,
     .rdma = true},
    {.name = "verbs-raw",
     .text = "UDP packets past the kernel: a raw packet queue pair of an RDMA adapter, by libibverbs",
     .open = [](const ReceiverSpec& spec) { return open_verbs_raw_receiver(spec); },
     .sees_frames = true,
     .places = true},
    {.name = "dpdk-roce-send",
     .text = "RoCEv2 SEND without an RDMA card, unreliable connection; from assemble on by weir run and weir send",
     .open = [](const ReceiverSpec& spec) { return open_dpdk_roce_receiver(spec, FrameKind::Is::roce_send); },
     .pipeline = PipelineKind{"roce-send", "uc"},
     .on_device = true,
     .takes_roce = true},
    {.name = "dpdk-roce-write",
     .text = "RoCEv2 WRITE without an RDMA card, unreliable connection; from assemble on by weir run and weir send",
     .open = [](const ReceiverSpec& spec) { return open_dpdk_roce_receiver(spec, FrameKind::Is::roce_write); },
     .pipeline = PipelineKind{"roce-write", "uc"},
     .places = true,
     .on_device = true,
     .takes_roce = true},
    {.name = "dpdk-roce-send-rc",
     .text = "RoCEv2 SEND without an RDMA card, reliable connection: what is lost is sent again",
     .pipeline = PipelineKind{"roce-send", "rc"},
     .on_device = true},
    {.name = "dpdk-roce-write-rc",
     .text = "RoCEv2 WRITE without an RDMA card, reliable connection: what is lost is sent again",
     .pipeline = PipelineKind{"roce-write", "rc"},
     .on_device = true},
}};

constexpr std::array<SenderKind, 6> senders{{
    {.name = "sendmmsg",
     .text = "a UDP socket, up to 64 packets in one call",
     .open = [](const SenderSpec& spec) { return open_udp_sender(spec.to); }},
    {.name = "gso",
     .text =
         "a UDP socket, up to 64 packets in one call that pass the kernel joined to as few as possible (UDP_SEGMENT)",
     .open = [](const SenderSpec& spec) { return open_gso_sender(spec.to); },
     .joins = true},
    {.name = "af-packet",
     .text = "a packet socket, up to 64 frames in one call, straight to the device; on one Ethernet",
     .open = [](const SenderSpec& spec) { return open_af_packet_sender(spec.to); }},
    {.name = "dpdk",
     .text =
         "DPDK, up to 64 frames in one call, UDP or RoCE: --sender-device, or without one net_af_packet; on one Ethernet",
     .open = [](const SenderSpec& spec) { return open_dpdk_sender(spec); },
     .makes_roce = true,
     .on_device = true},
    {.name = "verbs",
     .text = "libibverbs: RDMA messages, up to 64 posted at once; for verbs-send and verbs-write",
     .open = [](const SenderSpec& spec) { return open_verbs_sender(spec.to); },
     .joins = true,
     .rdma = true},
    {.name = "weir",
     .text = "weir send, with weir run as the receiver: like with like beside the RoCE transports",
     .on_device = true},
}};

template <class Entry>
const Entry& named(std::span<const Entry> entries, std::string_view name, std::string_view what) {
    const auto found = std::ranges::find(entries, name, &Entry::name);
    if (found != entries.end()) return *found;
    std::vector<std::string_view> names;
    for (const Entry& entry : entries) names.push_back(entry.name);
    throw core::UsageError(fmt::format("there is no {} \"{}\": {}", what, name, fmt::join(names, ", ")));
}

}  // namespace

std::span<const Transport> transports() noexcept {
    return table;
}
const Transport& transport_named(std::string_view name) {
    return named(transports(), name, "transport");
}
std::span<const SenderKind> sender_kinds() noexcept {
    return senders;
}
const SenderKind& sender_named(std::string_view name) {
    return named(sender_kinds(), name, "sender");
}

std::string depth_problem(const Transport& transport, Depth depth) {
    if (transport.has(depth)) return {};
    if (transport.pipeline && transport.pipeline->service == "rc")
        return "a reliable connection has to be answered: depth assemble";
    return fmt::format("{} has no depth {}", transport.name, name_of(depth));
}

std::string_view usual_sender(const Transport& transport, Depth depth) noexcept {
    if (transport.rdma) return "verbs";
    return transport.takes_roce && depth == Depth::receive ? "dpdk" : "sendmmsg";
}

bool fit(const Transport& transport, const SenderKind& sender, Depth depth) noexcept {
    // Of weir send it is said elsewhere which depths there are.
    const bool makes = !transport.takes_roce || depth != Depth::receive || sender.makes_roce || sender.open == nullptr;
    return makes && transport.rdma == sender.rdma && !(transport.sees_frames && sender.joins);
}
void require_fit(const Transport& transport, const SenderKind& sender, Depth depth) {
    core::require(transport.rdma == sender.rdma,
                  fmt::format("{} {} RDMA messages, {} does not: use another sender",
                              transport.rdma ? transport.name : sender.name, transport.rdma ? "receives" : "sends",
                              transport.rdma ? sender.name : transport.name));
    core::require(!(transport.sees_frames && sender.joins),
                  fmt::format("{} sees what {} joins as one frame: use another sender", transport.name, sender.name));
    core::require(fit(transport, sender, depth),
                  fmt::format("{} makes no RoCE frames, which {} takes at depth {}: use the sender dpdk", sender.name,
                              transport.name, name_of(depth)));
}

}  // namespace weir::bench

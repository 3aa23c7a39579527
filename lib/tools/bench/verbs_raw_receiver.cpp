#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "bench/receive_requests.hpp"
#include "bench/reserved_port.hpp"
#include "bench/verbs_transports.hpp"
#include "core/error.hpp"
#include "wire/network.hpp"

namespace weir::bench {
namespace {

using Flow = verbs::Held<ibv_flow, ibv_destroy_flow>;

/// Of Ethernet with two VLAN tags, IPv4 with options, and UDP.
constexpr std::uint32_t frame_headers_max = 14 + 8 + 60 + 8;

/// Packets to an address and UDP port. libibverbs takes the parts one behind the other.
struct FlowRule {
    ibv_flow_attr rule{};
    ibv_flow_spec_eth ethernet{};
    ibv_flow_spec_ipv4 ip{};
    ibv_flow_spec_tcp_udp udp{};
};
static_assert(sizeof(FlowRule) == sizeof(ibv_flow_attr) + sizeof(ibv_flow_spec_eth) + sizeof(ibv_flow_spec_ipv4) +
                                      sizeof(ibv_flow_spec_tcp_udp));

class VerbsRawReceiver final : public Receiver {
public:
    explicit VerbsRawReceiver(const ReceiverSpec& spec)
        : port_(verbs::port_with(spec.address)),
          socket_(spec.address),
          domain_(verbs::held<verbs::Domain>(::ibv_alloc_pd(port_.context.get()), "allocating a protection domain")),
          requests_(port_.context.get(), domain_.get()) {
        requests_.add_buffers(spec.bytes + frame_headers_max, spec.addresses);
        queue_pair_.reset(requests_.create_queue_pair(IBV_QPT_RAW_PACKET));
        if (queue_pair_ == nullptr)
            throw core::RunError(
                fmt::format("RDMA device '{}' gives no raw packet queue pair: {} (it takes CAP_NET_RAW, and an adapter "
                            "that has them; soft-RoCE has none)",
                            port_.device(), std::strerror(errno)));
        make_ready();
        requests_.begin(queue_pair_.get());
        lead_here(spec);
    }

    [[nodiscard]] Endpoint endpoint() const override { return socket_.endpoint(); }

    std::uint32_t receive(std::span<ReceivedPacket> packets) override {
        std::uint32_t count = 0;
        for (const ibv_wc& done : requests_.take(packets.size())) {
            auto* const frame = reinterpret_cast<std::byte*>(done.wr_id);
            wire::Datagram datagram;
            if (wire::parse_frame(frame, done.byte_len, done.byte_len, datagram) == wire::ok &&
                datagram.dport == endpoint().port) {
                packets[count++] = {datagram.payload, datagram.payload_bytes, frame};
                continue;
            }
            void* buffer = frame;
            PacketBuffers::release(&buffer, 1);
        }
        return count;
    }

    [[nodiscard]] assemble::BufferRelease release() const noexcept override { return PacketBuffers::release; }
    [[nodiscard]] Drops drops() override {
        return {.device = port_.counter("hw_counters/out_of_buffer"), .kernel = {}};
    }
    /// The kernel's interface may not see what goes past it.
    [[nodiscard]] std::optional<std::uint64_t> arrived() override {
        const auto dropped = drops().device;
        if (!dropped) return std::nullopt;
        return requests_.completed() + *dropped;
    }

private:
    void make_ready() {
        ibv_qp_attr to{};
        to.qp_state = IBV_QPS_INIT;
        to.port_num = port_.number;
        verbs::must(::ibv_modify_qp(queue_pair_.get(), &to, IBV_QP_STATE | IBV_QP_PORT),
                    "taking a raw packet queue pair from reset to init");
        to.qp_state = IBV_QPS_RTR;
        verbs::must(::ibv_modify_qp(queue_pair_.get(), &to, IBV_QP_STATE),
                    "making a raw packet queue pair ready to receive");
    }

    /// Some adapters want to be told the Ethernet address as well.
    static void set_mac(const std::string& interface, ibv_flow_eth_filter& value, ibv_flow_eth_filter& mask) {
        std::string text;
        std::ifstream("/sys/class/net/" + interface + "/address") >> text;
        auto& mac = value.dst_mac;
        if (std::sscanf(text.c_str(), "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
                        &mac[5]) == 6)
            std::ranges::fill(mask.dst_mac, std::uint8_t{0xff});
    }

    void lead_here(const ReceiverSpec& spec) {
        FlowRule all;
        all.rule.type = IBV_FLOW_ATTR_NORMAL;
        all.rule.size = sizeof all;
        all.rule.num_of_specs = 3;
        all.rule.port = port_.number;
        all.ethernet.type = IBV_FLOW_SPEC_ETH;
        all.ethernet.size = sizeof all.ethernet;
        set_mac(spec.interface, all.ethernet.val, all.ethernet.mask);
        all.ip.type = IBV_FLOW_SPEC_IPV4;
        all.ip.size = sizeof all.ip;
        ::inet_pton(AF_INET, spec.address.c_str(), &all.ip.val.dst_ip);
        all.ip.mask.dst_ip = ~0U;
        all.udp.type = IBV_FLOW_SPEC_UDP;
        all.udp.size = sizeof all.udp;
        all.udp.val.dst_port = htons(endpoint().port);
        all.udp.mask.dst_port = 0xffff;
        flow_ = verbs::held<Flow>(::ibv_create_flow(queue_pair_.get(), &all.rule),
                                  "leading packets to a raw packet queue pair by a rule");
    }

    verbs::RdmaPort port_;
    ReservedPort socket_;
    verbs::Domain domain_;
    ReceiveRequests requests_;
    verbs::QueuePair queue_pair_;
    Flow flow_;
};

}  // namespace

std::unique_ptr<Receiver> open_verbs_raw_receiver(const ReceiverSpec& spec) {
    return std::make_unique<VerbsRawReceiver>(spec);
}

}  // namespace weir::bench

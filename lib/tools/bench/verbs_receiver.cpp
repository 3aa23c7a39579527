#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "bench/receive_requests.hpp"
#include "bench/verbs_transports.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "verbs/connection.hpp"

namespace weir::bench {
namespace {

constexpr std::uint16_t roce_port = 4791;

/// Both kinds of messages: a connection, and what the device says of it.
class VerbsReceiver : public Receiver {
public:
    VerbsReceiver(const ReceiverSpec& spec, VerbsKind kind)
        : spec_(spec),
          port_(verbs::port_with(spec.address)),
          domain_(verbs::held<verbs::Domain>(::ibv_alloc_pd(port_.context.get()), "allocating a protection domain")),
          requests_(port_.context.get(), domain_.get()) {
        const ibv_port_attr port = port_.attributes();
        if (spec.bytes > port.max_msg_sz)
            throw core::RunError(fmt::format("messages of {} bytes: RDMA device '{}' takes up to {}", spec.bytes,
                                             port_.device(), port.max_msg_sz));
        own_.kind = kind;
        own_.path_mtu = verbs::path_mtu_of(port);
    }

    [[nodiscard]] Endpoint endpoint() const override { return {spec_.address, roce_port}; }
    [[nodiscard]] nlohmann::json offer() const override { return to_json(own_); }

    void connect(const nlohmann::json& sender) override {
        const VerbsEnd other = verbs_end_from_json(sender);
        own_.path_mtu = std::min(own_.path_mtu, other.path_mtu);
        verbs::connect(queue_pair_.get(), port_,
                       {.path_mtu = own_.path_mtu,
                        .access = own_.kind.write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0U},
                       other.queue_pair);
        before_ = arrived().value_or(0);
        requests_.begin(queue_pair_.get());
    }

    /// Soft-RoCE counts packets; where a message is one, and nobody answers, it counts messages.
    [[nodiscard]] std::optional<std::uint64_t> arrived() override {
        if (own_.kind.reliable || spec_.bytes > own_.path_mtu) return std::nullopt;
        return port_.counter("hw_counters/rcvd_pkts");
    }

    /// A message for which no request was posted is lost. Adapters count those; of soft-RoCE it is what came without
    /// being completed.
    [[nodiscard]] Drops drops() override {
        if (const auto counted = port_.counter("hw_counters/out_of_buffer")) return {.device = counted, .kernel = {}};
        const auto came = arrived();
        if (!came) return {};
        const std::uint64_t completed = before_ + requests_.completed();
        dropped_ = std::max(dropped_, *came > completed ? *came - completed : 0);
        return {.device = dropped_, .kernel = {}};
    }

protected:
    void make_queue_pair() {
        queue_pair_ = verbs::held<verbs::QueuePair>(
            requests_.create_queue_pair(own_.kind.reliable ? IBV_QPT_RC : IBV_QPT_UC), "creating a queue pair");
        own_.queue_pair = verbs::end_of(queue_pair_.get(), port_, 0);
    }

    ReceiverSpec spec_;
    verbs::RdmaPort port_;
    verbs::Domain domain_;
    ReceiveRequests requests_;
    VerbsEnd own_;

private:
    verbs::QueuePair queue_pair_;
    std::uint64_t before_ = 0;
    std::uint64_t dropped_ = 0;
};

class VerbsSendReceiver final : public VerbsReceiver {
public:
    VerbsSendReceiver(const ReceiverSpec& spec, VerbsKind kind) : VerbsReceiver(spec, kind) {
        requests_.add_buffers(spec.bytes + 1, spec.addresses);  // a longer one shows itself
        make_queue_pair();
    }

    std::uint32_t receive(std::span<ReceivedPacket> packets) override {
        std::uint32_t count = 0;
        for (const ibv_wc& done : requests_.take(packets.size())) {
            auto* const buffer = reinterpret_cast<std::byte*>(done.wr_id);
            packets[count++] = {buffer, done.byte_len, buffer};
        }
        return count;
    }

    [[nodiscard]] assemble::BufferRelease release() const noexcept override { return PacketBuffers::release; }
};

/// Messages go where the sender says, to places in turn. Nothing keeps it from writing to a place that has not been
/// read, but that there are more places than requests and packets that are held: as it is with any RDMA WRITE.
class VerbsWriteReceiver final : public VerbsReceiver {
public:
    VerbsWriteReceiver(const ReceiverSpec& spec, VerbsKind kind) : VerbsReceiver(spec, kind) {
        own_.places = std::max(spec.addresses, requests_.count() + held_max + burst);
        own_.place_bytes = (spec.bytes + core::cache_line_bytes) / core::cache_line_bytes * core::cache_line_bytes;
        const std::size_t bytes = std::size_t{own_.places} * own_.place_bytes;
        memory_ = std::make_unique<std::byte[]>(bytes);
        region_ =
            verbs::registered(domain_.get(), memory_.get(), bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        make_queue_pair();
        own_.queue_pair.va = reinterpret_cast<std::uintptr_t>(memory_.get());
        own_.queue_pair.rkey = region_->rkey;
    }

    std::uint32_t receive(std::span<ReceivedPacket> packets) override {
        std::uint32_t count = 0;
        for (const ibv_wc& done : requests_.take(packets.size())) {
            const std::size_t place = own_.place_of(ntohl(done.imm_data));
            std::byte* const payload = memory_.get() + place * own_.place_bytes;
            packets[count++] = {payload, std::min(done.byte_len, own_.place_bytes), payload};
        }
        return count;
    }

    [[nodiscard]] assemble::BufferRelease release() const noexcept override {
        return [](void** /*places*/, std::uint32_t /*count*/) {};
    }

private:
    std::unique_ptr<std::byte[]> memory_;
    verbs::Region region_;
};

}  // namespace

std::unique_ptr<Receiver> open_verbs_receiver(const ReceiverSpec& spec, VerbsKind kind) {
    if (kind.write) return std::make_unique<VerbsWriteReceiver>(spec, kind);
    return std::make_unique<VerbsSendReceiver>(spec, kind);
}

}  // namespace weir::bench

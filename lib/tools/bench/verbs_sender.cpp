#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <thread>

#include "bench/control_connection.hpp"
#include "bench/interface_counters.hpp"
#include "bench/verbs_transports.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "verbs/connection.hpp"

namespace weir::bench {
namespace {

constexpr std::uint32_t messages_in_call = 64;
// Enough for any adapter to be busy, and too few to hide that it is slower than its schedule.
constexpr std::uint32_t under_way_max = 256;
constexpr std::uint32_t first_psn = 0;
constexpr auto drain_patience = std::chrono::seconds(2);
constexpr auto drain_nap = std::chrono::microseconds(50);

/// A message for each packet: a head of its own and a body that is not copied; the adapter joins them.
class VerbsMessageSender final : public Sender {
public:
    explicit VerbsMessageSender(const Endpoint& to)
        : to_(to),
          port_(verbs::port_with(own_address_to(to.address))),
          domain_(verbs::held<verbs::Domain>(::ibv_alloc_pd(port_.context.get()), "allocating a protection domain")),
          completions_(verbs::held<verbs::Completions>(
              ::ibv_create_cq(port_.context.get(), under_way_max, nullptr, nullptr, 0), "creating a completion queue")),
          heads_(std::make_unique<Head[]>(under_way_max)),
          heads_region_(verbs::registered(domain_.get(), heads_.get(), under_way_max * sizeof(Head), 0)) {}

    nlohmann::json accept(const nlohmann::json& offer) override {
        receiver_ = verbs_end_from_json(offer);
        ibv_qp_init_attr wanted{};
        wanted.send_cq = wanted.recv_cq = completions_.get();
        wanted.cap.max_send_wr = under_way_max;
        wanted.cap.max_send_sge = 2;
        wanted.cap.max_recv_wr = wanted.cap.max_recv_sge = 1;
        wanted.qp_type = receiver_.kind.reliable ? IBV_QPT_RC : IBV_QPT_UC;
        queue_pair_ = verbs::held<verbs::QueuePair>(::ibv_create_qp(domain_.get(), &wanted), "creating a queue pair");
        VerbsEnd own = receiver_;  // says again what was agreed on
        own.queue_pair = verbs::end_of(queue_pair_.get(), port_, first_psn);
        own.path_mtu = std::min(verbs::path_mtu_of(port_.attributes()), receiver_.path_mtu);
        receiver_.path_mtu = own.path_mtu;
        verbs::connect(queue_pair_.get(), port_, {.path_mtu = own.path_mtu, .first_psn = first_psn},
                       receiver_.queue_pair);
        return to_json(own);
    }

    void prepare(const PacketPlan& plan) override {
        drain();
        if (done_ != posted_)
            throw RefusedError(fmt::format("{} messages to {} have not been sent", posted_ - done_, to_.address));
        bodies_region_.reset();
        maker_.emplace(plan);
        bodies_region_ = verbs::registered(domain_.get(), maker_->bodies().data(), maker_->bodies().size(), 0);
    }

    std::uint32_t send(std::uint64_t first, std::uint32_t count) override {
        collect();
        const auto room = static_cast<std::uint32_t>(under_way_max - (posted_ - done_));
        count = std::min({count, messages_in_call, room});
        if (count == 0) return 0;
        const core::TimeNs now = core::monotonic_ns();
        for (std::uint32_t i = 0; i < count; ++i) make_request(i, first + i, now);
        ibv_send_wr& last = requests_[count - 1];
        last.next = nullptr;
        last.send_flags = IBV_SEND_SIGNALED;  // it says that all before it are done as well
        last.wr_id = posted_ + count;
        ibv_send_wr* bad = nullptr;
        verbs::must(::ibv_post_send(queue_pair_.get(), requests_.data(), &bad), "posting messages");
        posted_ += count;
        return count;
    }

    [[nodiscard]] std::uint32_t burst() const noexcept override { return messages_in_call; }
    /// The kernel's interface counts other packets than ours, or none.
    [[nodiscard]] bool joins_packets() const noexcept override { return true; }
    /// Messages that the adapter has completed: sent, and acknowledged where the connection is reliable.
    [[nodiscard]] std::optional<std::uint64_t> on_wire() override {
        drain();
        return done_;
    }

private:
    struct alignas(core::cache_line_bytes) Head {
        std::array<std::byte, PacketPlan::head_bytes> bytes;
    };

    void make_request(std::uint32_t i, std::uint64_t number, core::TimeNs now) noexcept {
        Head& head = heads_[(posted_ + i) % under_way_max];
        maker_->write_head(number, now, head.bytes.data());
        const std::span<const std::byte> body = maker_->body(number);
        pieces_[i][0] = {.addr = reinterpret_cast<std::uintptr_t>(head.bytes.data()),
                         .length = PacketPlan::head_bytes,
                         .lkey = heads_region_->lkey};
        pieces_[i][1] = {.addr = reinterpret_cast<std::uintptr_t>(body.data()),
                         .length = static_cast<std::uint32_t>(body.size()),
                         .lkey = bodies_region_->lkey};
        const auto immediate = static_cast<std::uint32_t>(number);
        ibv_send_wr& request = requests_[i];
        request = {};
        request.next = i + 1 < requests_.size() ? &requests_[i + 1] : nullptr;
        request.sg_list = pieces_[i].data();
        request.num_sge = 2;
        request.opcode = IBV_WR_SEND;
        if (!receiver_.kind.write) return;
        request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request.imm_data = htonl(immediate);
        request.wr.rdma.remote_addr =
            receiver_.queue_pair.va + std::uint64_t{receiver_.place_of(immediate)} * receiver_.place_bytes;
        request.wr.rdma.rkey = receiver_.queue_pair.rkey;
    }

    void collect() {
        std::array<ibv_wc, messages_in_call> done{};
        const int count = ::ibv_poll_cq(completions_.get(), static_cast<int>(done.size()), done.data());
        if (count < 0) throw core::RunError("RDMA device: polling for completions failed");
        for (const ibv_wc& one : std::span(done).first(static_cast<std::size_t>(count))) {
            if (one.status != IBV_WC_SUCCESS)
                throw RefusedError(fmt::format("sending to {}: {}", to_.address, ::ibv_wc_status_str(one.status)));
            done_ = one.wr_id;
        }
    }

    /// Waits until the adapter has sent everything.
    void drain() {
        const auto end = std::chrono::steady_clock::now() + drain_patience;
        while (collect(), done_ != posted_ && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(drain_nap);
    }

    Endpoint to_;
    verbs::RdmaPort port_;
    verbs::Domain domain_;
    verbs::Completions completions_;
    std::optional<PacketMaker> maker_;
    verbs::Region bodies_region_;
    std::unique_ptr<Head[]> heads_;
    verbs::Region heads_region_;
    verbs::QueuePair queue_pair_;
    VerbsEnd receiver_;
    std::uint64_t posted_ = 0;
    std::uint64_t done_ = 0;
    std::array<std::array<ibv_sge, 2>, messages_in_call> pieces_{};
    std::array<ibv_send_wr, messages_in_call> requests_{};
};

}  // namespace

std::unique_ptr<Sender> open_verbs_sender(const Endpoint& to) {
    return std::make_unique<VerbsMessageSender>(to);
}

}  // namespace weir::bench

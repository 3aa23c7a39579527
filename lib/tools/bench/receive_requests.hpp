// The requests of a queue pair that wait for messages, and the completions of those that got one: what all receivers
// through libibverbs have. For builds with libibverbs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "bench/packet_buffers.hpp"
#include "bench/receiver.hpp"
#include "verbs/rdma_device.hpp"

namespace weir::bench {

class ReceiveRequests {
public:
    /// As many descriptors as DPDK is given, and the kernel's rings have; fewer if the device has not so many.
    static constexpr std::uint32_t most = 4096;

    /// Of a device. Throws core::RunError.
    ReceiveRequests(ibv_context* context, ibv_pd* domain);

    /// Each request is to have a buffer of its own, of `bytes`. Without this it has none: messages say where they go.
    void add_buffers(std::uint32_t bytes, std::uint32_t addresses);
    /// A queue pair of this type that can have all of the requests; errno where there is none.
    [[nodiscard]] ibv_qp* create_queue_pair(ibv_qp_type type);
    /// The queue pair has been made ready for requests: they are posted from now on.
    void begin(ibv_qp* queue_pair);
    /// Posts what is missing, as far as there are buffers; then completions, `room` at most. The wr_id of each is its
    /// buffer. Throws core::RunError for one that failed: no other will succeed after it.
    [[nodiscard]] std::span<const ibv_wc> take(std::size_t room);

    [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
    /// Taken since begin().
    [[nodiscard]] std::uint64_t completed() const noexcept { return completed_; }

private:
    void post();
    std::uint32_t post_some();

    ibv_pd* domain_;
    std::uint32_t count_;
    verbs::Completions completions_;
    std::optional<PacketBuffers> buffers_;
    verbs::Region region_;
    ibv_qp* queue_pair_ = nullptr;
    std::uint32_t missing_;
    std::uint64_t completed_ = 0;
    std::array<ibv_sge, Receiver::burst> pieces_{};
    std::array<ibv_recv_wr, Receiver::burst> posts_{};
    std::array<ibv_wc, Receiver::burst> done_{};
};

}  // namespace weir::bench

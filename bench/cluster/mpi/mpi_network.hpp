// The network of an event-building node over MPI, to compare strategies in a simulator or on a machine that has MPI.
// Not for production: MPI jobs end when one of their processes does.
//
// Messages go as bytes. A payload goes on a communicator of its own with the number of its block as tag, so it needs no
// header, and lands in whichever receive is posted. What a node sends to itself takes no detour over MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "event_building.hpp"

namespace weir::cluster::bench {

class MpiNetwork final : public EventBuilding::Engine {
public:
    struct Config {
        std::uint64_t part_bytes = 0;
        std::uint32_t receives = 0;  ///< payloads that may come in at a time
    };
    struct Stats {
        std::uint64_t parts = 0;     ///< that have come over the network
        std::uint64_t messages = 0;  ///< that have left over the network, without payload
    };
    MpiNetwork(const Config& config, NodeId self, NodeId nodes);
    /// Nothing may be on its way to this node any more but what nobody needs.
    ~MpiNetwork() override;

    /// Queued until the next turn.
    void send(NodeId to, const Message& message, Payload payload) override;
    void mark_all() override;
    [[nodiscard]] core::TimeNs now() const override;
    [[nodiscard]] std::uint64_t parts_received() const override { return stats_.parts; }
    /// Sends what is queued and hands over what has come; waits if there is nothing: for anything to come, or for
    /// `most_us`, if that is not 0.
    void turn(EventBuilding& receiver, std::uint32_t most_us);
    /// Until everything that was sent has left.
    void flush();

    [[nodiscard]] const Stats& stats() const noexcept { return stats_; }

private:
    struct FreeBytes {
        void operator()(std::byte* bytes) const noexcept;
    };
    using Bytes = std::unique_ptr<std::byte, FreeBytes>;
    struct Mail {
        NodeId node = 0;
        Message message;
        Payload payload;
    };
    using Size = std::uint32_t;
    /// What the requests behind those of the receives send: a payload, or bytes to be kept until they have left.
    struct Sending {
        bool is_part = false;
        NodeId to = 0;
        Block block = 0;
        std::vector<std::byte> bytes;
    };

    [[nodiscard]] static Bytes make_bytes(std::size_t count);
    [[nodiscard]] std::byte* place_of(std::size_t slot) noexcept;
    [[nodiscard]] std::size_t receive_count() const noexcept { return control_receives + config_.receives; }
    void post_receive(std::size_t slot);
    void queue(NodeId to, const Message& message);
    void send_queued();
    void send_bytes(NodeId to, std::vector<std::byte> bytes, int tag);
    void send_parts();
    void deliver_local(EventBuilding& receiver);
    void wait(EventBuilding& receiver, std::uint32_t most_us);
    bool hand_over(EventBuilding& receiver, decltype(&MPI_Waitsome) some);
    void hand_over_message(EventBuilding& receiver, std::size_t slot, const MPI_Status& status);
    void hand_over_part(EventBuilding& receiver, std::size_t slot, const MPI_Status& status);
    void forget_sent(EventBuilding& receiver);
    [[nodiscard]] Block block_of(int tag) const noexcept;

    static constexpr std::size_t control_receives = 2;
    static constexpr std::size_t message_bytes_max = std::size_t{64} << 10U;

    Config config_;
    NodeId self_;
    NodeId nodes_;
    MPI_Comm control_ = MPI_COMM_NULL;
    MPI_Comm parts_ = MPI_COMM_NULL;
    std::vector<std::byte> control_bytes_;
    Bytes part_bytes_;  ///< first the one part that is sent over and over, then a place for each receive
    std::vector<MPI_Request> requests_;  ///< receives of messages, receives of payloads, sends
    std::vector<Sending> sendings_;      ///< of the requests behind the receives
    std::deque<Mail> local_;
    std::deque<Mail> queued_parts_;
    std::vector<std::vector<std::byte>> queued_;  ///< messages, each after its size, by node
    std::vector<NodeId> awaited_;                 ///< for whom there are some
    std::optional<Mail> ready_;
    bool mark_queued_ = false;
    Block newest_ = 0;       ///< that was in a message: tags say the rest of a block's number
    std::vector<int> done_;  ///< of one wait
    std::vector<MPI_Status> statuses_;
    Stats stats_;
};

}  // namespace weir::cluster::bench

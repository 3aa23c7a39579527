// A node of a cluster at work: the thread that runs the core (cluster::Node) on a network (UcxNetwork), and what the
// pipeline gives it and gets from it. A readout node offers parts; a builder is given blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cluster/node.hpp"
#include "core/awake_clock.hpp"
#include "fabric/account.hpp"
#include "fabric/block_queue.hpp"
#include "fabric/built_block.hpp"
#include "fabric/part_cutter.hpp"
#include "fabric/part_memory.hpp"
#include "fabric/ucx_network.hpp"
#include "fabric/write_fence.hpp"

namespace weir::fabric {

class ClusterThread final : public PartOutlet, private cluster::Application, private Receiver {
public:
    struct Config {
        UcxNetwork::Config network;  ///< the incarnation is the thread's business
        cluster::Settings settings;
        BuiltBlock::Layout layout;                   ///< of the whole run
        std::uint64_t memory_bytes = 1U << 30U;      ///< for parts: of a readout node
        core::TimeNs leave_ns = 5 * core::ns_per_s;  ///< who was told to stop waits so long for the others
        core::TimeNs alone_ns = core::never;         ///< see is_alone()
    };

    /// Listens from now on; others are heard once it is started. Throws core::RunError.
    /// Its thread is that of UCX, too, so it is made here, in one that has the rights that it is to have: an RDMA
    /// device does not talk to a thread whose credentials are not those it was opened with (ib_safe_file_access() in
    /// Linux).
    explicit ClusterThread(Config config);
    ~ClusterThread() override;

    /// A builder: before start(). What is given outlives join().
    void build_into(BlockQueue& queue, const WriteFence& fence);
    /// Likewise. `has_failed`: what leaves the pipeline is not written any more. It is asked in this thread,
    /// which then goes away at once, as if the node had died: what it has not written is given to others, or listed as
    /// lost. Otherwise it would go on taking blocks, faster than those that have to write theirs.
    void give_up_when(std::function<bool()> has_failed);
    void start();
    /// The others see it go. Nothing is given or taken any more.
    void join();

    // A readout node; from one thread.
    [[nodiscard]] PartMemory& memory() noexcept { return memory_; }
    void offer(cluster::Block rest, std::byte* part) override;
    /// No more parts come.
    void close();
    /// A builder waits for what this node may still get of numbers before this one, because others have it.
    [[nodiscard]] cluster::Block wanted_before() const noexcept {
        return wanted_before_.load(std::memory_order_relaxed);
    }
    /// Everything has been released, or will not be any more: see Config::leave_ns.
    [[nodiscard]] bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
    /// For Config::alone_ns no node has been here that it could work with: for a builder a readout node, for a readout
    /// node a builder, for a node that only manages any other one.
    [[nodiscard]] bool is_alone() const noexcept { return alone_.load(std::memory_order_relaxed); }
    /// It has left the cluster by itself.
    [[nodiscard]] bool has_given_up() const noexcept { return gave_up_.load(std::memory_order_acquire); }
    /// Somebody waits for room in memory(); and has waited.
    void waits() noexcept { waiting_.store(true, std::memory_order_relaxed); }
    void waited(core::TimeNs ns) noexcept {
        waiting_.store(false, std::memory_order_relaxed);
        waited_ns_.fetch_add(static_cast<std::uint64_t>(ns), std::memory_order_relaxed);
    }

    /// The operator wants it to end: it waits for the others, but not for ever; `at_once`: not at all. Any thread.
    void stopping(bool at_once) noexcept;
    [[nodiscard]] Account account() const;
    /// Of a builder: given to the pipeline, and not written. Any thread.
    [[nodiscard]] std::uint64_t blocks_in_hand() const noexcept { return in_hand_.load(std::memory_order_relaxed); }
    /// What has been said since the last call: sentences for the operator.
    [[nodiscard]] std::vector<std::string> take_said();
    [[nodiscard]] bool is_readout() const noexcept { return config_.settings.readouts.contains(self()); }
    [[nodiscard]] bool is_builder() const noexcept { return config_.settings.builders.contains(self()); }
    [[nodiscard]] cluster::NodeId self() const noexcept { return config_.network.self; }
    [[nodiscard]] const Config& config() const noexcept { return config_; }
    [[nodiscard]] std::string network_text() const { return network_text_; }

private:
    // cluster::Application
    void built(cluster::BlockSpan span, std::span<const cluster::BuiltPart> parts) override;
    void release(cluster::Payload payload) override;
    void drop(cluster::Payload payload) override;
    std::pair<cluster::Payload, cluster::Payload> split(cluster::Payload part, cluster::Block at) override;
    cluster::Payload join(cluster::Payload first, cluster::Payload second) override;
    void expelled() override { expelled_ = true; }
    void ended() override;
    // Receiver
    void up(cluster::NodeId node, cluster::Incarnation incarnation) override;
    void down(cluster::NodeId node, cluster::Incarnation incarnation, cluster::Ending ending) override;
    void absent(cluster::NodeId node, cluster::Ending why) override;
    void quiet(cluster::NodeId node, bool is_quiet) override;
    void received(cluster::NodeId from, const cluster::Message& message, cluster::Payload payload) override;
    void sent(cluster::NodeId to, cluster::Block block) override;
    std::byte* room(std::uint64_t bytes) override;
    void give_back(std::byte* memory, std::uint64_t bytes) override;
    void say(const std::string& text) override;

    void run();
    void begin_life();
    void begin_again();
    void end_life();
    bool take_offers();
    bool hand_on();
    bool take_back();
    bool finish_written();
    bool gives_up();
    core::TimeNs tick();
    void look(core::TimeNs now);
    void drain(core::TimeNs now);
    void consider_leaving(core::TimeNs now);
    [[nodiscard]] bool waits_for_the_start(core::TimeNs now) const;
    void note_company(core::TimeNs now);
    void note_quorum();
    void note_transports();
    void publish();
    void wait(core::TimeNs most_ns);
    void forget(cluster::Payload part, bool is_left);
    void wake() noexcept;

    Config config_;
    PartMemory memory_;
    cluster::Incarnation incarnation_ = 0;
    cluster::Incarnation known_ = 0;  ///< the highest of this node's that others have told of
    std::unique_ptr<UcxNetwork> network_;
    std::unique_ptr<cluster::Node> node_;
    std::string network_text_;
    std::set<std::string> transports_;  ///< of all connections that there have been
    std::optional<core::TimeNs> ask_transports_ns_;
    int wake_fd_ = -1;

    // The thread's own.
    std::set<std::byte*> held_;  ///< parts that were offered to the core and not released
    bool expelled_ = false;
    bool has_ended_ = false;
    bool had_quorum_ = true;
    bool closed_ = false;
    core::AwakeClock clock_;
    core::TimeNs now_ = 0;  ///< by this clock, as all times of this class
    core::TimeNs looked_ns_ = 0;
    core::TimeNs begun_ns_ = core::never;  ///< when the first life did
    core::TimeNs published_ns_ = 0;
    std::optional<core::TimeNs> leave_by_;
    core::TimeNs drained_from_ = 0;  ///< a builder that was told to stop may leave from then on if others go on
    core::TimeNs company_ns_ = 0;    ///< when somebody was here last, or since when there could have been
    std::uint32_t lives_ = 0;
    Account before_;  ///< of lives that are over
    std::uint64_t events_too_late_ = 0;
    std::uint64_t events_left_ = 0;
    std::vector<std::uint64_t> waited_for_ns_;
    std::uint64_t malformed_parts_ = 0;
    std::uint64_t callers_refused_ = 0;
    std::uint64_t refused_before_ = 0;  ///< by lives that are over

    // A builder.
    BlockQueue* queue_ = nullptr;
    const WriteFence* fence_ = nullptr;
    std::function<bool()> has_failed_;
    std::vector<std::unique_ptr<BuiltBlock>> blocks_;
    std::vector<BuiltBlock*> free_blocks_;
    std::deque<BuiltBlock*> to_hand_on_;
    struct Leaving {
        BuiltBlock* block = nullptr;
        std::vector<std::uint64_t> place;
    };
    std::deque<Leaving> leaving_;  ///< out of the pipeline, and not written yet
    std::atomic<std::uint64_t> in_hand_{0};

    // From other threads, and for them.
    struct Offer {
        cluster::Block rest = 0;
        std::byte* part = nullptr;
    };
    mutable std::mutex mutex_;
    std::vector<Offer> offers_;
    bool close_wanted_ = false;
    std::vector<std::string> said_;
    Account account_;
    std::atomic<cluster::Block> wanted_before_{0};
    std::atomic<std::uint64_t> waited_ns_{0};
    std::atomic<bool> waiting_{false};
    std::atomic<bool> alone_{false};
    std::atomic<bool> done_{false};
    std::atomic<bool> stopping_{false};
    std::atomic<bool> stop_at_once_{false};
    std::atomic<bool> started_{false};
    std::atomic<bool> quit_{false};
    std::atomic<bool> gave_up_{false};
    std::thread thread_;
};

}  // namespace weir::fabric

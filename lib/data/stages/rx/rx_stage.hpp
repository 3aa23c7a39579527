// The rx lcore: takes packets from a queue, a capture or another rx lcore, finds their stream, decodes them, and
// collects messages. One instance per rx lcore; all memory is taken at construction.
//
// The stage itself is bursts and routes. What has another reason is an object of its own, in a file of its own:
//   RxRules    flow rules that the device does not do       RxPieces   datagrams in several buffers
//   RxSources  sources, their counts and sequence numbers   RxRoce     RoCE, with RxResponder and RxAnswers
//   RxEdges    rings to and from other lcores               InputTimes up to when all input has come
//   RxPasses   a capture that is looped                     RxNotes    packets that could not be used
//   RxBlocks   blocks that a builder of a cluster is given  KnownFlows frames like ones that came before
//   RxDecapsulation  what mirrors have put around packets
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "assemble/message_table.hpp"
#include "port/live_port.hpp"
#include "port/packet_batch.hpp"
#include "port/ring.hpp"
#include "reduce/chain/fragment_converter.hpp"
#include "stages/record_ring.hpp"
#include "stages/rx/header_prefetch.hpp"
#include "stages/rx/input_times.hpp"
#include "stages/rx/known_flows.hpp"
#include "stages/rx/packet_run.hpp"
#include "stages/rx/route_cache.hpp"
#include "stages/rx/rx_answers.hpp"
#include "stages/rx/rx_blocks.hpp"
#include "stages/rx/rx_decapsulation.hpp"
#include "stages/rx/rx_edges.hpp"
#include "stages/rx/rx_notes.hpp"
#include "stages/rx/rx_passes.hpp"
#include "stages/rx/rx_pieces.hpp"
#include "stages/rx/rx_roce.hpp"
#include "stages/rx/rx_rules.hpp"
#include "stages/rx/rx_sources.hpp"
#include "stages/rx/stream_runtime.hpp"
#include "stages/stage.hpp"
#include "steer/steering.hpp"

namespace weir::stages {

class RxStage final : public Stage {
public:
    struct PortInput {
        port::LivePort* port = nullptr;
        std::uint16_t queue = 0;
        bool was_empty = false;  ///< the queue has been empty since the run began
    };
    /// A feeder thread (capture reader), which has ended when `ended` is set and the ring is empty.
    struct RingInput {
        port::Ring<port::Packet>* ring = nullptr;
        const std::atomic<bool>* ended = nullptr;
    };
    using SteerEdge = RxEdges::SteerEdge;
    struct Config {
        std::uint16_t index = 0;  ///< of this rx lcore
        bool wait = false;        ///< when something downstream is full: take no more packets, rather than lose them
        std::vector<const steer::Steering*> steering;  ///< by the index of the port that a packet came from
        std::vector<steer::RuleRuntime*> rules;        ///< by the index of the port; null where it has no flow rules
        std::vector<wire::Tunnels> decapsulate;        ///< by the index of the port
        std::vector<PortInput> ports;
        std::vector<RingInput> rings;
        fabric::BlockQueue* blocks =
            nullptr;  ///< a builder of a cluster: what it is given, at most `blocks_max` at once
        std::uint32_t blocks_max = 0;
        std::vector<SteerEdge> steer_in;
        std::vector<SteerEdge> steer_out;                            ///< by owner; empty at the own index
        std::vector<port::Ring<assemble::Descriptor>*> descriptors;  ///< to each shard of the builder
        std::vector<port::Ring<assemble::Command>*> commands;        ///< from each shard of the builder
        std::vector<port::Ring<assemble::Message*>*> recycle;        ///< from each worker
        /// That its queues take from, to be looked at: what it holds may be in messages of other rx lcores. Null: of
        /// all buffers that can be used up, this lcore knows.
        const port::BufferPool* pool = nullptr;
        RecordRing* record = nullptr;   ///< where every packet that comes from a port or a capture is copied to
        PassSignals* passes = nullptr;  ///< a capture that is looped
        /// Works on the payload of packets before they are collected; for formats that it is made for. Null: nothing
        /// does.
        reduce::FragmentConverter* converter = nullptr;
        assemble::MessageTable::Config table;
        roce::Listener::Config listener;  ///< with all RoCE sources, also those of reliable connections
        roce::Responder::Config responder;
        /// Where answers go, by the index of the port that the packet came from; null for ports without queue pairs
        /// that are answered. Empty in a replay.
        std::vector<port::AnswerSender*> answer_ports;
        AnswerRing* answer_log = nullptr;               ///< a replay whose answers are kept
        roce::QueuePairControl* queue_pairs = nullptr;  ///< from where they are connected during the run
        port::IpReassembly::Config reassembly;
        /// From the start of a frame: all headers of any packet lie within.
        std::uint32_t header_bytes = 640;
    };

    /// Everything that is referred to outlives the stage. Throws core::RunError when EAL memory does not suffice, and
    /// core::UsageError for RoCE sources that cannot be numbered as they say.
    RxStage(const Config& config, const std::vector<StreamRuntime>& streams, RxSignals& own, const RunSignals& run);
    std::size_t poll(TimeNs now) noexcept override;

    [[nodiscard]] const wire::PacketTally& packets() const noexcept { return packets_; }
    [[nodiscard]] const assemble::MessageTally& messages() const noexcept { return messages_; }
    [[nodiscard]] const roce::AnswerTally& answers() const noexcept { return answers_.tally(); }
    /// Whether weir answers the source's queue pair, and this lcore does.
    [[nodiscard]] bool answers_source(std::uint32_t source) const noexcept { return roce_.answers(source); }
    [[nodiscard]] roce::Responder::Status queue_pair(std::uint32_t source) const noexcept {
        return roce_.queue_pair(source);
    }
    /// Packets and bytes that this lcore took from ports and captures (not those steered to it).
    [[nodiscard]] std::uint64_t received_packets() const noexcept {
        return received_packets_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t received_bytes() const noexcept {
        return received_bytes_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t source_packets(std::uint32_t source) const noexcept { return sources_.packets(source); }
    [[nodiscard]] const RxDecapsulation& decapsulation() const noexcept { return decapsulation_; }
    [[nodiscard]] const RxRules& rules() const noexcept { return rules_; }
    /// Of packets that were refused, and of those that match no stream.
    [[nodiscard]] const RxNotes& notes() const noexcept { return notes_; }
    [[nodiscard]] const OtherSenders& other_senders() const noexcept { return sources_.other_senders(); }
    /// What messages were opened under in the first pass over a capture; read when the lcore has closed it.
    [[nodiscard]] const assemble::NumberRange& numbers() const noexcept { return table_.numbers(); }
    [[nodiscard]] std::uint32_t newest_epoch() const noexcept { return table_.newest_epoch(); }
    [[nodiscard]] const port::IpReassembly& reassembly() const noexcept { return pieces_.reassembly(); }
    /// Sequence numbers of this source that did not come; 0 where packets carry none.
    [[nodiscard]] std::uint64_t missing_packets(std::uint32_t source) const noexcept {
        return sources_.missing(source);
    }
    /// Which PSNs of an RoCE source came; nothing where this lcore does not listen to it.
    [[nodiscard]] std::optional<roce::PsnCounts::Values> psn_counts(std::uint32_t source) const noexcept {
        return roce_.psn_counts(source);
    }
    [[nodiscard]] std::uint32_t buffers_held() const noexcept { return buffers_held_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t buffers_highest() const noexcept {
        return buffers_highest_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint32_t cells_held() const noexcept { return cells_held_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t cells_highest() const noexcept {
        return cells_highest_.load(std::memory_order_relaxed);
    }

private:
    static constexpr std::uint32_t burst = port::PacketBatch::capacity;
    static constexpr std::uint32_t prefetched = 16;  ///< packets whose headers are fetched ahead of those worked on
    static constexpr std::uint32_t pool_reserve = 4 * burst;  ///< that open events make room for

    using Packets = std::span<port::Packet>;  ///< of a burst, in hand: each has to end in a message or a counter

    // Bursts come in.
    [[nodiscard]] bool flush_steered() noexcept;
    [[nodiscard]] bool may_take() noexcept;
    [[nodiscard]] std::size_t take_own(TimeNs now) noexcept;
    [[nodiscard]] std::size_t take_port(std::size_t input, TimeNs now) noexcept;
    [[nodiscard]] std::size_t take_feeder(std::size_t input, bool& ended) noexcept;
    [[nodiscard]] std::size_t take_blocks(bool& ended) noexcept;
    [[nodiscard]] std::size_t take_steered() noexcept;
    void count_received(std::span<const port::Packet> packets) noexcept;
    [[nodiscard]] Packets without_bad_checksums(Packets packets) noexcept;
    [[nodiscard]] Packets decapsulated(Packets packets) noexcept;
    [[nodiscard]] Packets by_rules(Packets packets, const PortInput* input) noexcept;
    // They are parsed and routed.
    void process(std::span<const port::Packet> packets, port::LivePort* from) noexcept;
    void process_passes(std::span<const port::Packet> packets, port::LivePort* from) noexcept;
    void process_some(std::span<const port::Packet> packets, port::LivePort* from) noexcept;
    [[nodiscard]] bool join_known_roce(const port::Packet& packet) noexcept;
    void process_new(const port::Packet& packet, port::LivePort* from) noexcept;
    [[nodiscard]] static wire::Verdict parse(const port::Packet& packet, wire::Datagram& datagram) noexcept;
    void process_odd(const port::Packet& packet, wire::Verdict verdict, const wire::Datagram& datagram,
                     port::LivePort* from) noexcept;
    void process_chain(const port::Packet& packet, port::LivePort* from) noexcept;
    [[nodiscard]] steer::Route route_of(const port::Packet& packet, const wire::Datagram& datagram) const noexcept;
    [[nodiscard]] steer::Route route_of_most(const port::Packet& packet, const wire::Datagram& datagram) noexcept;
    [[nodiscard]] steer::Route route_of_roce(const port::Packet& packet, const wire::Datagram& datagram) noexcept;
    void end_packet(const port::Packet& packet, wire::PacketCounter counter, port::LivePort* from) noexcept;
    void follow(const port::Packet& packet, const steer::Route& route) noexcept;
    void follow_roce(const port::Packet& packet, const steer::Route& route) noexcept;
    // They are decoded and collected.
    void begin_run(std::uint16_t stream) noexcept;
    void end_run() noexcept;
    void assemble_run(std::uint32_t count) noexcept;
    // Time goes on, and ends.
    void begin_pass(std::uint8_t pass) noexcept;
    void close_first_pass() noexcept;
    void expire() noexcept;
    void finish_if_done() noexcept;
    void publish_buffers() noexcept;

    Config config_;
    const std::vector<StreamRuntime>& streams_;
    const RunSignals& run_;
    wire::PacketTally packets_;
    assemble::MessageTally messages_;
    RxDecapsulation decapsulation_;
    RxRules rules_;
    RxNotes notes_;
    RxSources sources_;
    assemble::MessageTable table_;
    RxPasses passes_;
    InputTimes times_;  ///< ports, feeders, rings from other rx lcores
    RxEdges edges_;
    RxPieces pieces_;
    std::uint32_t steered_pieces_max_;  ///< of a datagram that another rx lcore has put together
    RxAnswers answers_;
    RxRoce roce_;
    RxBlocks blocks_;
    HeaderPrefetch headers_;
    KnownFlows flows_;
    RouteCache routes_;       ///< by UDP port, for what is no known flow
    RouteCache roce_routes_;  ///< by queue pair
    TimeNs time_ = std::numeric_limits<TimeNs>::min();
    bool own_ended_ = false;  ///< ports and feeders have
    bool done_ = false;

    // One burst on its way through the steps.
    port::PacketBatch taken_;
    PacketRun packet_run_;
    std::array<wire::Fragment, burst> fragments_;
    std::array<wire::Verdict, burst> verdicts_;

    std::atomic<std::uint64_t> received_packets_{0};
    std::atomic<std::uint64_t> received_bytes_{0};
    std::atomic<std::uint32_t> buffers_held_{0};
    std::atomic<std::uint32_t> buffers_highest_{0};
    std::atomic<std::uint32_t> cells_held_{0};
    std::atomic<std::uint32_t> cells_highest_{0};
};

}  // namespace weir::stages

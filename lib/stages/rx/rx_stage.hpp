// The rx lcore: takes packets from a queue, a capture or another rx lcore, finds their stream, decodes them, and
// collects messages. One instance per rx lcore; all memory is taken at construction.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "assemble/message_table.hpp"
#include "assemble/sequence_tracker.hpp"
#include "core/number_index.hpp"
#include "port/ip_reassembly.hpp"
#include "port/live_port.hpp"
#include "port/ring.hpp"
#include "reduce/chain/fragment_converter.hpp"
#include "roce/frame_memory.hpp"
#include "roce/listener.hpp"
#include "roce/queue_pair_control.hpp"
#include "roce/responder.hpp"
#include "stages/answer_log.hpp"
#include "stages/pass_signals.hpp"
#include "stages/record_ring.hpp"
#include "stages/rx/rx_notes.hpp"
#include "stages/rx/rx_rules.hpp"
#include "stages/stage.hpp"
#include "steer/steering.hpp"
#include "wire/format.hpp"

namespace weir::pipeline {

/// What a stream is to an rx lcore. Shared by all of them, constant during a run.
struct StreamRuntime {
    bool roce = false;
    bool check_icrc = true;
    const wire::FormatEntry* format = nullptr;
    wire::FormatContext context;
    bool lane_by_port = false;  ///< the decoder wants to know: ports of first and second interfaces take turns
    bool source_in_header = false;
    std::uint32_t first_source = 0;
    std::uint32_t source_count = 0;
    core::NumberIndex source_ids;  ///< source_in_header: the header's ids, in source order
    std::uint64_t arrivals_from = 0;
    bool numbered_by_arrival = false;  ///< udp: datagrams are whole messages, numbered as they come
    /// A declared format read the other way round, to say so where that would fit.
    std::optional<wire::FormatContext> other_byte_order;

    /// Every packet carries its source's sequence number, which tells what is missing. (RoCE has its own, and its
    /// messages may carry a detector header without being a packet of the detector's.)
    [[nodiscard]] bool sequenced() const noexcept { return !roce && context.sequence_bits > 0; }
};

class RxStage final : public Stage {
public:
    struct PortInput {
        port::LivePort* port = nullptr;
        std::uint16_t queue = 0;
        bool settled = false;  ///< the queue has been empty since the run began
    };
    /// A feeder thread (capture reader), which has ended when `ended` is set and the ring is empty.
    struct RingInput {
        port::Ring<port::Packet>* ring = nullptr;
        const std::atomic<bool>* ended = nullptr;
    };
    struct SteerEdge {
        port::Ring<port::Packet>* ring = nullptr;
        const RxSignals* signals = nullptr;  ///< of the lcore that steers (incoming edges)
    };
    struct Config {
        std::uint16_t index = 0;  ///< of this rx lcore
        bool wait = false;        ///< when something downstream is full: take no more packets, rather than lose them
        std::vector<const flow::Steering*> steering;  ///< by the index of the port that a packet came from
        std::vector<flow::RuleRuntime*> rules;        ///< by the index of the port; null where it has no flow rules
        std::vector<PortInput> ports;
        std::vector<RingInput> rings;
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
        roce::Listener::Config listener;
        roce::Responder::Config responder;
        /// Where answers go, by the index of the port that the packet came from; null for ports without queue pairs
        /// that are answered. Empty in a replay.
        std::vector<port::AnswerSender*> answer_ports;
        AnswerRing* answer_log = nullptr;               ///< a replay whose answers are kept
        roce::QueuePairControl* queue_pairs = nullptr;  ///< from where they are connected during the run
        port::IpReassembly::Config reassembly;
    };

    RxStage(const Config& config, const std::vector<StreamRuntime>& streams, RxSignals& own, const RunSignals& run);
    std::size_t poll(TimeNs now) noexcept override;

    [[nodiscard]] const core::PacketTally& packets() const noexcept { return packets_; }
    [[nodiscard]] const core::MessageTally& messages() const noexcept { return messages_; }
    [[nodiscard]] const core::AnswerTally& answers() const noexcept { return answers_; }
    /// Whether weir answers the source's queue pair, and this lcore does.
    [[nodiscard]] bool answers_source(std::uint32_t source) const noexcept {
        return responder_ != nullptr && responder_->serves(source);
    }
    [[nodiscard]] roce::Responder::Status queue_pair(std::uint32_t source) const noexcept;
    /// Packets and bytes that this lcore took from ports and captures (not those steered to it).
    [[nodiscard]] std::uint64_t received_packets() const noexcept {
        return received_packets_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t received_bytes() const noexcept {
        return received_bytes_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t source_packets(std::uint32_t source) const noexcept {
        return source_packets_[source].load(std::memory_order_relaxed);
    }
    [[nodiscard]] const RxRules& rules() const noexcept { return rules_; }
    /// Of packets that were refused, and of those that match no stream.
    [[nodiscard]] const RxNotes& notes() const noexcept { return notes_; }
    /// What messages were opened under in the first pass over a capture; read when the lcore has closed it.
    [[nodiscard]] const assemble::NumberRange& numbers() const noexcept { return table_.numbers(); }
    [[nodiscard]] std::uint32_t newest_epoch() const noexcept { return table_.newest_epoch(); }
    [[nodiscard]] const port::IpReassembly& reassembly() const noexcept { return reassembly_; }
    /// Sequence numbers of this source that did not come; 0 where packets carry none.
    [[nodiscard]] std::uint64_t missing_packets(std::uint32_t source) const noexcept {
        return source_missing_[source].load(std::memory_order_relaxed);
    }
    /// Which PSNs of an RoCE source came; nothing where this lcore does not listen to it.
    [[nodiscard]] std::optional<roce::PsnCounts::Values> psn_counts(std::uint32_t source) const noexcept {
        if (listener_ == nullptr || !listener_->listens_to(source)) return std::nullopt;
        return listener_->psn_counts(source);
    }
    [[nodiscard]] std::uint32_t buffers_held() const noexcept { return buffers_held_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::uint32_t buffers_highest() const noexcept {
        return buffers_highest_.load(std::memory_order_relaxed);
    }

private:
    static constexpr std::uint32_t burst = 64;
    static constexpr std::uint32_t segments_max = 128;  ///< buffers of a frame
    static constexpr std::uint32_t prefetched = 16;     ///< packets whose headers are fetched ahead of those worked on
    static constexpr std::uint32_t pool_reserve = 4 * burst;  ///< that open events make room for
    struct Stash {                                            ///< packets for another rx lcore whose ring was full
        std::array<port::Packet, burst> packets;
        std::uint32_t first = 0;
        std::uint32_t count = 0;
    };

    [[nodiscard]] std::size_t take_commands() noexcept;
    void send_descriptors() noexcept;
    [[nodiscard]] bool flush_stashes() noexcept;
    [[nodiscard]] bool may_take() noexcept;
    [[nodiscard]] std::size_t take_own(TimeNs now) noexcept;
    [[nodiscard]] std::uint32_t without_bad_checksums(std::uint32_t count) noexcept;
    [[nodiscard]] std::size_t take_steered() noexcept;
    void count_received(std::uint32_t count) noexcept;
    [[nodiscard]] std::uint32_t by_rules(std::uint32_t count, const PortInput* input) noexcept;  // rx_rules.cpp
    [[nodiscard]] flow::Route route_of(const port::Packet& packet, const wire::Datagram& datagram) const noexcept;
    void prefetch_next() noexcept;
    static void prefetch_body(const port::Packet& packet) noexcept;
    void expect_headers(const port::Packet& packet, const std::byte* end) noexcept;
    void process(std::span<const port::Packet> packets, port::LivePort* from) noexcept;
    void process_passes(std::span<const port::Packet> packets, port::LivePort* from) noexcept;
    void begin_pass(std::uint8_t pass) noexcept;
    void close_first_pass() noexcept;
    void count_processed(std::uint32_t count) noexcept;
    void process_some(std::span<const port::Packet> packets, port::LivePort* from) noexcept;
    void end_packet(const port::Packet& packet, core::PacketCounter counter, port::LivePort* from) noexcept;
    void steer(const port::Packet& packet, std::uint16_t owner) noexcept;
    void assemble_run(std::uint16_t stream, std::uint32_t count) noexcept;
    // Datagrams that came in IP fragments: rx_fragments.cpp.
    [[nodiscard]] port::Packet join(const port::Packet& packet, const wire::Datagram& piece) noexcept;
    void settle_pieces(std::uint32_t held_before) noexcept;
    void expire_pieces(TimeNs now) noexcept;
    void flush_pieces() noexcept;
    void process_whole(const port::Packet& packet) noexcept;
    void assemble_whole(const port::Packet& packet, const std::byte* head, wire::Datagram& datagram,
                        const flow::Route& route) noexcept;
    void add_chain(const port::Packet& packet, std::uint32_t source, const wire::Fragment& fragment, std::uint32_t skip,
                   bool one_packet) noexcept;
    // Frames that a device put into several buffers: rx_segments.cpp.
    void process_scattered(const port::Packet& packet, port::LivePort* from) noexcept;
    [[nodiscard]] std::span<const std::byte> head_of(const port::Packet& packet) noexcept;
    void process_copy(const port::Packet& packet, port::LivePort* from) noexcept;
    void reject(const port::Packet& packet, core::PacketCounter counter) noexcept;
    [[nodiscard]] bool checks_icrc(const flow::Route& route) const noexcept;
    void assemble_roce(const port::Packet& packet, const wire::Datagram& datagram, const flow::Route& route) noexcept;
    // Queue pairs that are answered: rx_responder.cpp.
    [[nodiscard]] bool answers(const flow::Route& route, wire::Verdict verdict) const noexcept;
    [[nodiscard]] roce::Room room_for(std::uint32_t source, const wire::RocePacket& packet,
                                      wire::Verdict verdict) noexcept;
    [[nodiscard]] bool continues_frame(std::uint32_t source, const wire::RocePacket& packet) const noexcept;
    void respond(const port::Packet& packet, const wire::Datagram& datagram, std::uint32_t source,
                 const wire::RocePacket& roce, wire::Verdict verdict) noexcept;
    void send_answer(const port::Packet& packet, const wire::Datagram& datagram, const wire::RoceAnswer& answer,
                     core::AnswerCounter counter) noexcept;
    void flush_answers() noexcept;
    void make_responder();
    void take_accepted(const port::Packet& packet, std::uint32_t source, const wire::RocePacket& roce,
                       const roce::Ruling& ruling) noexcept;
    void forget_peer(std::uint32_t source, TimeNs now, std::optional<std::uint32_t> first_psn = {}) noexcept;
    void publish_queue_pair(std::uint32_t source) noexcept;
    [[nodiscard]] std::size_t take_queue_pair_command() noexcept;
    [[nodiscard]] bool source_of(const StreamRuntime& stream, const wire::Fragment& fragment,
                                 std::uint32_t& source) noexcept;
    void count_source(std::uint32_t source) noexcept;
    void note_source(std::uint32_t source, const wire::Datagram& datagram) noexcept;
    void track(std::uint16_t stream, wire::Fragment& fragment, std::uint32_t& source, wire::Verdict verdict) noexcept;
    [[nodiscard]] TimeNs until_all_but(const TimeNs& input) const noexcept;
    void expire() noexcept;
    void publish() noexcept;
    void finish_if_done() noexcept;

    Config config_;
    const std::vector<StreamRuntime>& streams_;
    RxSignals& own_;
    const RunSignals& run_;
    core::PacketTally packets_;
    core::MessageTally messages_;
    RxRules rules_;
    RxNotes notes_;
    assemble::MessageTable table_;
    port::IpReassembly reassembly_;
    std::unique_ptr<roce::Listener> listener_;    ///< only where there are RoCE streams
    std::unique_ptr<roce::Responder> responder_;  ///< only where queue pairs are answered
    std::unique_ptr<roce::FrameMemory> frames_;   ///< only where WRITEs go into memory
    core::AnswerTally answers_;
    bool unsent_answers_ = false;
    bool check_unmatched_icrc_ = false;
    const port::Packet* ahead_ = nullptr;  ///< of the burst in hand: the next packet whose header is fetched
    const port::Packet* ahead_end_ = nullptr;
    bool second_line_ = true;                          ///< headers do not end in the first line of the frame
    std::vector<std::uint64_t> arrivals_;              ///< per stream
    std::vector<assemble::SequenceTracker> trackers_;  ///< per source of the streams that are sequenced
    std::vector<std::uint32_t> first_tracker_;         ///< per stream
    std::vector<Stash> stashes_;
    std::vector<std::byte> head_;  ///< the headers of a frame that has them in several buffers
    TimeNs time_ = std::numeric_limits<TimeNs>::min();
    static constexpr TimeNs nothing_yet = std::numeric_limits<TimeNs>::min();
    /// Per input (ports, feeders, rings from other rx lcores): what came before this has been worked on.
    std::vector<TimeNs> until_;
    /// Of a ring from another rx lcore: what its sender has promised, which holds once `left` more have been taken.
    struct SteerPromise {
        TimeNs until = nothing_yet;
        std::uint32_t left = 0;
    };
    std::vector<SteerPromise> steer_promises_;
    TimeNs own_time_ = nothing_yet;      ///< ports and feeders have given all before this
    TimeNs steered_time_ = nothing_yet;  ///< and other rx lcores all before this
    std::uint8_t pass_ = 0;              ///< of the packets being worked on
    std::uint64_t passes_begun_ = 0;     ///< the same, not modulo 256
    bool own_ended_ = false;
    bool steered_ended_ = false;
    bool done_ = false;

    // One burst on its way through the steps.
    std::array<port::Packet, burst> taken_;
    std::array<wire::Datagram, burst> datagrams_;
    std::array<port::Packet, burst> run_packets_;
    std::array<wire::Datagram, burst> run_datagrams_;
    std::array<std::uint32_t, burst> run_sources_;
    std::array<wire::Fragment, burst> fragments_;
    std::array<wire::Verdict, burst> verdicts_;
    std::array<assemble::Message*, burst> expected_;

    std::atomic<std::uint64_t> received_packets_{0};
    std::atomic<std::uint64_t> received_bytes_{0};
    std::vector<std::atomic<std::uint64_t>> source_packets_;
    std::vector<std::atomic<std::uint64_t>> source_missing_;
    std::vector<std::atomic<std::uint64_t>> queue_pairs_;  ///< per source: how the responder stands, packed
    std::atomic<std::uint32_t> buffers_held_{0};
    std::atomic<std::uint32_t> buffers_highest_{0};
};

}  // namespace weir::pipeline

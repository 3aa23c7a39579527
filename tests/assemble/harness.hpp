// One to several MessageTables and an EventBuilder, glued together without DPDK and without threads. Buffers are heap
// objects of exactly the payload's size that are counted on release, so leaks, double releases and reads outside show.
// Descriptors and commands are exchanged at once (fused), or in random batches in a random order of polls (spread).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "assemble/event_builder.hpp"
#include "assemble/message_table.hpp"

namespace weir::assemble::test {

struct Packet {
    std::uint32_t source = 0;
    std::uint64_t number = 0;  ///< as carried
    std::uint32_t offset = 0;
    std::uint32_t bytes = 0;
    std::uint32_t total = 0;
    TimeNs time_ns = 0;
    bool total_known = true;
    // What tells it from another packet for the same place:
    std::uint16_t sender = 0;
    std::uint8_t salt = 0;    ///< another payload
    std::uint8_t header = 0;  ///< of one byte
    bool fresh = false;
};

struct Limits {
    std::uint32_t sources = 2;
    std::uint32_t sources_needed = 0;  ///< 0: all
    std::uint32_t rx_count = 1;        ///< source s belongs to rx s % rx_count
    std::uint32_t shards = 1;          ///< of the builder
    std::uint32_t open_max = 1024;
    std::uint32_t queued_max = 1024;
    std::uint32_t messages_max = 4096;  ///< per table
    std::uint32_t buffers_max = 8192;   ///< per table
    std::uint32_t range_blocks = 8;
    std::uint32_t horizon = 4096;
    std::uint32_t message_bytes_max = 1U << 20;
    TimeNs timeout_ns = 1000;
    unsigned number_bits = 64;
    CopyConfig copies{};
    bool wait = false;
    bool bursts =
        false;  ///< packets go through MessageTable::add_burst, as many as come together, and not through add_any
    Overload overload = Overload::evict_oldest;
    std::uint32_t prescale = 1;
};

/// Packets that agree in this are copies of each other: once copied out of its buffer, one looks like the other.
using CopyKey = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint32_t, TimeNs, std::uint8_t>;
[[nodiscard]] inline CopyKey copy_key(const Packet& packet) {
    return {packet.source, packet.number, packet.offset, packet.bytes, packet.time_ns, packet.salt};
}

/// One message of an event that left.
struct MessageResult {
    bool complete = false;
    bool total_known = false;
    std::uint32_t total = 0;
    std::vector<std::size_t> packets;  ///< those placed, each as the first of its copies, sorted
    std::vector<std::pair<std::uint32_t, std::uint32_t>> missing;  ///< [begin, end), derived from what is there
    bool operator==(const MessageResult&) const = default;
};

struct EventResult {
    std::uint64_t number = 0;
    std::uint64_t sequence = 0;
    std::uint32_t epoch = 0;
    EventCause cause = EventCause::complete;
    TimeNs first_ns = 0;
    TimeNs last_ns = 0;
    std::map<std::uint32_t, MessageResult> messages;  ///< by source
    bool operator==(const EventResult&) const = default;
};

class Harness {
public:
    explicit Harness(const Limits& limits);

    /// A packet of a message that learns its number late.
    struct Part {
        std::uint32_t offset = 0;
        std::uint32_t bytes = 0;
        TimeNs time_ns = 0;
    };

    // Fused: everything is exchanged before and after every packet.

    /// Adds one packet at its time; returns its index.
    std::size_t add(const Packet& packet);
    /// Adds the packet's payload in so many buffers (empty ones, where it is short), each of which counts as a packet,
    /// or all together.
    void add_in_pieces(const Packet& packet, std::uint32_t pieces,
                       MessageTable::PiecesAre are = MessageTable::PiecesAre::packets);
    /// Adds all of them, exchanging nothing: as in a burst that does not end.
    void add_undrained(std::span<const Packet> packets);
    void add_undrained(const Packet& packet) { add_undrained({&packet, 1}); }
    /// Collects the parts as a message without a number, binds it at `now` and exchanges everything.
    void bind(std::uint32_t source, std::uint64_t number, std::uint32_t total, std::span<const Part> parts, TimeNs now);
    /// Time passes.
    void advance(TimeNs now);
    /// End of run.
    void finish();

    /// Spread: adds all packets (sorted by time) and finishes; polls in random order, hands on in random batches.
    void run_spread(std::span<const Packet> packets, std::uint64_t seed);

    /// A frozen sink: closed events are popped but not given back.
    void freeze() { frozen_ = true; }
    void thaw();

    /// The event with this number, or nullptr.
    [[nodiscard]] const EventResult* find(std::uint64_t number, std::uint32_t epoch = 0) const;

    [[nodiscard]] std::uint64_t count(wire::PacketCounter counter) const;
    [[nodiscard]] std::uint64_t count(assemble::MessageCounter counter) const;
    [[nodiscard]] std::uint64_t count(assemble::EventCounter counter) const;
    /// After the end: what does not add up, leaked, was released twice or read after release; empty if nothing.
    [[nodiscard]] std::string faults() const;

    /// Payloads of events that left which had been copied out of their buffers.
    [[nodiscard]] std::uint64_t copied() const noexcept { return copied_; }

    EventBuilder& builder(std::size_t shard = 0) { return *builders_[shard]; }
    /// Events in each shard that is used.
    [[nodiscard]] std::vector<std::uint64_t> opened_by_shard() const;
    MessageTable& table(std::size_t rx = 0) { return *tables_[rx]; }

    std::vector<EventResult> events;  ///< in order of leaving

private:
    struct Buffer {
        std::vector<std::byte> bytes;
        std::size_t packet = 0;
        std::uint32_t source = 0;
        std::uint64_t number = 0;
        std::uint32_t offset = 0;
        std::uint8_t salt = 0;
        std::byte header{};
        TimeNs time_ns = 0;
        std::uint32_t released = 0;
        bool continued = false;  ///< of the packet of the buffer before
    };
    struct Numbered {
        const Packet* packet = nullptr;
        std::size_t index = 0;
    };
    struct Rx {  // spread: what is on its way
        std::deque<Numbered> input;
        std::vector<std::deque<Descriptor>> descriptors;  // per shard
        std::vector<std::deque<Command>> commands;        // per shard
        TimeNs time = std::numeric_limits<TimeNs>::min();
        TimeNs watermark = std::numeric_limits<TimeNs>::min();
        bool input_done = false;
        bool finished = false;
    };

    static void release(void** buffers, std::uint32_t count);
    /// Of a copy the same as of what it is a copy of.
    static std::byte content(const Buffer& buffer, std::size_t at);
    static bool has_content(const FragmentRef& ref, const Buffer& buffer);
    Buffer& make_buffer(std::size_t index, const Packet& packet);
    [[nodiscard]] wire::Fragment fragment_of(const Packet& packet, Buffer& buffer) const;
    void add_to(MessageTable& table, std::span<const Numbered> packets);
    void exchange();
    void pop_events(std::uint32_t shard);
    void give_back(Event& event, std::uint32_t shard);
    void finish_builders();
    [[nodiscard]] EventResult result_of(const Event& event);
    /// The buffer that the payload is in, or was copied out of.
    [[nodiscard]] const Buffer* buffer_of(const FragmentRef& ref, const Message& message) const;
    void check_ref(const FragmentRef& ref, const Buffer& buffer);
    void poll_rx(Rx& rx, MessageTable& table, std::mt19937_64& random);
    void poll_builder(std::uint32_t shard, std::vector<Rx>& rxs, std::mt19937_64& random);
    [[nodiscard]] std::uint64_t left_side() const;

    Limits limits_;
    std::deque<Buffer> buffers_;
    std::map<CopyKey, std::size_t> first_copies_;
    std::deque<wire::PacketTally> packet_tallies_;  // one per rx, then one per shard
    std::deque<assemble::MessageTally> message_tallies_;
    std::deque<assemble::EventTally> event_tallies_;  // per shard
    std::vector<std::unique_ptr<MessageTable>> tables_;
    std::unique_ptr<ShardBoard> board_;
    std::vector<std::unique_ptr<EventBuilder>> builders_;
    std::deque<std::pair<Event*, std::uint32_t>> held_;  // with its shard
    bool frozen_ = false;
    TimeNs now_ = std::numeric_limits<TimeNs>::min();
    std::uint64_t placed_bytes_ = 0;
    std::uint64_t copied_ = 0;
    std::string faults_;
};

/// A piece of a message that is `of` pieces of 100 bytes long.
[[nodiscard]] inline Packet piece(std::uint32_t source, std::uint64_t number, std::uint32_t index, std::uint32_t of,
                                  TimeNs time_ns) {
    return {
        .source = source, .number = number, .offset = index * 100, .bytes = 100, .total = of * 100, .time_ns = time_ns};
}
/// A whole message of one piece.
inline Packet whole_message(std::uint32_t source, std::uint64_t number, TimeNs time_ns) {
    return piece(source, number, 0, 1, time_ns);
}

}  // namespace weir::assemble::test

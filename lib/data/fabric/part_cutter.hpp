// Cuts the events of a readout node into parts of blocks. Events come in the event file's blocks, roughly by rising
// number; parts leave in order of their blocks, as the cluster's core wants them.
//
// A part leaves when all numbers of its block are there. Of others nobody says that no more events come; they leave
// when events have come that began so much later that none of the block can still be on its way, or when another node
// has come so far and nothing more comes here. One that comes all the same is a straggler: it is counted, and not sent.
//
// Where a detector is slow, or pauses, its events do not wait for the others of their block: after a while what is
// there leaves, and what comes of the block after that is another part. No number may be missing in between, or nothing
// may have come for so long that it cannot be on its way.
//
// A part whose number is far ahead of all others waits until that is believed (NumberWitness), or for the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "cluster/block_grid.hpp"
#include "core/units.hpp"
#include "fabric/number_witness.hpp"
#include "fabric/part_format.hpp"
#include "fabric/part_memory.hpp"
#include "store/event_blocks.hpp"

namespace weir::fabric {

/// Where parts go, with their memory.
class PartOutlet {
public:
    PartOutlet() = default;
    PartOutlet(const PartOutlet&) = delete;
    PartOutlet& operator=(const PartOutlet&) = delete;
    virtual ~PartOutlet() = default;
    /// At `part` lies a PartHead, and what follows it; no event in it has the number `rest`, or a higher one.
    virtual void offer(cluster::Block rest, std::byte* part) = 0;
};

class PartCutter {
public:
    struct Config {
        std::uint64_t block = 16;            ///< event numbers of a block
        std::vector<std::uint32_t> sources;  ///< by own id: the id in the whole run
        core::TimeNs wait_ns = 0;            ///< by the events' own time: what began so much later has overtaken all
        core::TimeNs linger_ns = 0;          ///< and so long by the clock after that, for what is still in a buffer
        core::TimeNs idle_ns = core::never;  ///< nothing has come for so long by the clock, although others had more
        /// By the clock: so long an event waits for others of its block. Never: blocks are not given out in pieces.
        core::TimeNs hold_ns = core::never;
    };
    struct Stats {
        std::uint64_t events = 0;  ///< that are in parts which have left
        std::uint64_t payload_bytes = 0;
        std::uint64_t parts = 0;       ///< that have left
        std::uint64_t stragglers = 0;  ///< events that came after their part had left
        std::uint64_t restarted = 0;   ///< events of a source that had begun its numbers anew
    };

    PartCutter(Config config, PartMemory& memory, PartOutlet& outlet);
    /// Of parts that have not left nothing remains.
    ~PartCutter();
    PartCutter(const PartCutter&) = delete;
    PartCutter& operator=(const PartCutter&) = delete;

    /// Whole blocks, as store::BlockWriter makes them; an event may go on in the next call. `now`: any clock that
    /// rises. Throws core::RunError for what is none.
    void append(std::span<const std::byte> blocks, core::TimeNs now);
    /// Sends what time has made ready; `is_idle`: and nothing is waiting to be appended. Other nodes have what they
    /// get of numbers before `wanted_before`, and a builder waits for the part of this one.
    void look(core::TimeNs now, bool is_idle, cluster::Block wanted_before);
    /// Nothing else can make room: the oldest part leaves as it is. False: there is none, or an event of it is not
    /// whole.
    bool send_oldest();
    /// Nothing more comes: all parts leave.
    void finish();

    /// Of parts that have not left.
    [[nodiscard]] std::uint64_t open_bytes() const noexcept { return open_bytes_; }
    [[nodiscard]] const Stats& stats() const noexcept { return stats_; }

private:
    struct Open {
        PartMemory::Piece piece;
        std::uint64_t used = 0;
        std::uint32_t events = 0;
        std::uint64_t payload_bytes = 0;
        core::TimeNs since_ns = 0;            ///< by the clock
        cluster::Block rest = 0;              ///< after its highest number
        core::TimeNs newest_ns = 0;           ///< by the events' own time
        core::TimeNs leave_ns = core::never;  ///< by the clock
    };

    void begin_event(const store::BlockHeader& header, const std::byte* body);
    void add_sources(std::span<const std::byte> body);
    void add_payload(const store::BlockHeader& header, std::span<const std::byte> body);
    void end_event();
    [[nodiscard]] std::byte* extend(std::uint64_t bytes);
    [[nodiscard]] PartEvent& event() noexcept;
    using Parts = std::map<std::uint64_t, Open>;
    [[nodiscard]] cluster::Block begin_of(const Parts::value_type& part) const noexcept;
    [[nodiscard]] cluster::Block end_of(const Parts::value_type& part) const noexcept;
    [[nodiscard]] cluster::Block end_of_piece(const Parts::value_type& part) const noexcept;
    [[nodiscard]] bool has_passed(Parts::value_type& part, core::TimeNs now) const;
    [[nodiscard]] bool has_waited(const Parts::value_type& part, core::TimeNs now, bool is_idle) const;
    [[nodiscard]] bool is_missed(core::TimeNs now);
    [[nodiscard]] bool is_in_event() const noexcept { return blocks_.is_open(); }
    [[nodiscard]] bool may_send_first() const;
    void send_first(cluster::Block end);

    Config config_;
    cluster::BlockGrid grid_;
    PartMemory& memory_;
    PartOutlet& outlet_;
    store::EventBlocks blocks_;
    Parts open_;  ///< by the place of their block in the order of all
    std::uint64_t open_bytes_ = 0;
    cluster::Block next_ = 0;  ///< events before it have left
    Open* current_ = nullptr;  ///< of the event in hand; null: it is left out
    NumberWitness witness_;
    std::uint64_t event_at_ = 0;  ///< where it begins in its part
    core::TimeNs newest_ns_ = 0;
    core::TimeNs appended_ns_ = 0;  ///< by the clock
    cluster::Block wanted_before_ = 0;
    core::TimeNs wanted_ns_ = 0;  ///< by the clock: since when the first part is wanted
    Stats stats_;
};

}  // namespace weir::fabric

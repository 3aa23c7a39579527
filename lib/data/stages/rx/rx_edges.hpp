// What an rx lcore exchanges with other lcores: commands and messages that come back from builders and workers,
// descriptors to builders, packets that belong to another rx lcore, and the times up to which nothing more comes.
#pragma once

#include <cstdint>
#include <vector>

#include "assemble/message_table.hpp"
#include "port/packet_batch.hpp"
#include "port/ring.hpp"
#include "stages/rx/input_times.hpp"
#include "stages/rx/rx_passes.hpp"
#include "stages/stage.hpp"

namespace weir::stages {

class RxEdges {
public:
    struct SteerEdge {
        port::Ring<port::Packet>* ring = nullptr;
        const RxSignals* signals = nullptr;  ///< of the lcore that steers (incoming edges)
    };
    struct Config {
        bool wait = false;                 ///< for full rings, rather than lose what is in hand
        std::vector<SteerEdge> steer_in;   ///< by the lcore that steers; no ring: none
        std::vector<SteerEdge> steer_out;  ///< by owner; no ring at the own index
        std::vector<port::Ring<assemble::Descriptor>*> descriptors;  ///< to each shard of the builder
        std::vector<port::Ring<assemble::Command>*> commands;        ///< from each shard of the builder
        std::vector<port::Ring<assemble::Message*>*> recycle;        ///< from each worker
    };
    static constexpr std::uint32_t burst = port::PacketBatch::capacity;

    /// `first_input`: what the first ring of `steer_in` is in `times`. Everything that is referred to outlives this
    /// object.
    RxEdges(Config config, RxSignals& own, assemble::MessageTable& table, InputTimes& times, std::size_t first_input,
            RxPasses& passes);

    /// What builders ask for, and messages that workers are done with.
    [[nodiscard]] std::size_t take_commands(TimeNs now) noexcept;
    void send_descriptors() noexcept;

    /// Takes over a packet for another rx lcore. After a flush() that answered true there is room for a burst.
    void steer(const port::Packet& packet, std::uint16_t owner) noexcept {
        stashes_[owner].push(packet);
        passes_.count_steered();
    }
    /// Passes on what was steered. What finds no room in a ring is lost, and counted; where the input waits it stays:
    /// then the answer is false, and no more packets may be taken.
    [[nodiscard]] bool flush() noexcept;

    /// Rings from other rx lcores.
    [[nodiscard]] std::size_t inputs() const noexcept { return inputs_.size(); }
    /// A burst from one of them, into a batch that is empty. It has to be worked on before the turn ends.
    void take_steered(std::size_t input, port::PacketBatch& batch) noexcept;
    /// The other rx lcores have ended, and everything that they steered here has been taken.
    [[nodiscard]] bool all_taken() const noexcept;

    /// Buffers are short, or are not any more: an open event should make room.
    void ask_for_room(bool needed) noexcept;
    /// End of a turn: says how full the table is, and which times others may rely on. `own_ended`: nothing more comes
    /// from ports and feeders. Returns the time up to which builders were told that nothing more comes;
    /// InputTimes::nothing_yet where they cannot be told.
    TimeNs publish(bool own_ended) noexcept;
    /// Tells the builders that the last descriptor is in their rings; `last` is the time of the last packet.
    void publish_end(TimeNs last) noexcept;

private:
    struct Input {
        SteerEdge edge;
        /// What the sender has promised, which holds once `left` more packets have been taken.
        TimeNs promise = InputTimes::nothing_yet;
        std::uint32_t left = 0;
        bool ended = false;
    };

    Config config_;
    RxSignals& own_;
    assemble::MessageTable& table_;
    InputTimes& times_;
    std::size_t first_input_;
    RxPasses& passes_;
    std::vector<Input> inputs_;
    std::vector<port::PacketBatch> stashes_;  ///< by owner: what its ring had no room for, or is not flushed yet
};

}  // namespace weir::stages

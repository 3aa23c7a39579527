// Puts the packets of a trial together to messages, with weir's own MessageTable, and those to events, so that what
// differs between the ways to receive is the way and not what is done with the packets.
#pragma once

#include <cstdint>
#include <vector>

#include "assemble/message_table.hpp"
#include "bench/packet_plan.hpp"
#include "bench/receiver.hpp"
#include "wire/format.hpp"

namespace weir::bench {

class MessageAssembly {
public:
    /// `packets_per_s` says how long a message takes to come; one that takes much longer lacks something, and is given
    /// up. `release`: how packets' buffers go back. `copies`: payload is copied out of its buffer at once.
    MessageAssembly(const PacketPlan& plan, double packets_per_s, assemble::BufferRelease release, bool copies);
    ~MessageAssembly();

    /// Takes the packet's buffer.
    void add(const ReceivedPacket& packet, core::TimeNs now) noexcept;
    /// After each burst: whole messages are taken away.
    void end_burst(core::TimeNs now) noexcept;
    /// No packet comes any more; what is not whole is given up.
    void finish(core::TimeNs now) noexcept;

    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }    ///< whole ones
    [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }  ///< in them

private:
    /// Messages that have come of an event, by its number; one that stays short makes room for a later one.
    struct Joined {
        std::uint64_t event = 0;
        std::uint32_t messages = 0;
    };
    static constexpr std::size_t joined_max = 4096;

    void take_delivered(core::TimeNs now) noexcept;
    void count(const assemble::Message& message) noexcept;

    wire::FormatContext context_;
    wire::PacketTally packet_tally_;
    assemble::MessageTally message_tally_;
    std::vector<Joined> joined_;
    std::uint32_t sources_;
    assemble::MessageTable table_;
    std::uint64_t events_ = 0;
    std::uint64_t packets_ = 0;
};

}  // namespace weir::bench

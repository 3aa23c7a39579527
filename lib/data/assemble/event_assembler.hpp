// Events from datagrams on one thread: a MessageTable and an EventBuilder, and what passes between them. For programs
// that have payloads, from a socket or a file, and neither DPDK nor lcores; weir itself wires the two in its pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "assemble/event_builder.hpp"
#include "assemble/message_table.hpp"
#include "core/units.hpp"
#include "wire/format.hpp"

namespace weir::assemble {

/// The messages of an event, by source; valid during the call of its handler only.
class AssembledEvent {
public:
    explicit AssembledEvent(const Event& event) noexcept : event_(event) {}

    /// As carried, extended to 64 bits where the counter on the wire is narrower.
    [[nodiscard]] std::uint64_t number() const noexcept { return event_.number; }
    /// How often a source has restarted before it.
    [[nodiscard]] std::uint32_t epoch() const noexcept { return event_.epoch; }
    /// Every source's message is here, as a whole.
    [[nodiscard]] bool complete() const noexcept { return event_.cause == EventCause::complete; }
    /// Why it left; event_cause.hpp has the names.
    [[nodiscard]] EventCause cause() const noexcept { return event_.cause; }
    /// Bytes of payload that came of this source.
    [[nodiscard]] std::uint32_t received_bytes(std::uint32_t source) const noexcept;
    /// The message of a source, `fill` where bytes are missing. Its size is the declared one or, where none was
    /// declared, up to the last byte that came; empty if nothing came.
    [[nodiscard]] std::vector<std::byte> payload(std::uint32_t source, std::byte fill = std::byte{0}) const;

private:
    const Event& event_;
};

class EventAssembler {
public:
    struct Config {
        const wire::FormatEntry* format = nullptr;        ///< wire::find_format("jungfrau"), ...
        wire::FormatOptions options{};                    ///< of the format
        std::uint32_t sources = 1;                        ///< how many make an event complete
        core::TimeNs timeout_ns = 500 * core::ns_per_ms;  ///< an event leaves as it is so long after its first packet
        std::uint32_t events_max = 64;                    ///< open at once; beyond that the oldest leaves as it is
        /// Of datagrams that wait in open events; beyond that, too, the oldest leaves as it is. Taken from the heap, by
        /// datagram.
        std::uint64_t memory_bytes = 256U << 20;
    };
    /// Called from within add, advance and finish; it must not throw, nor call them.
    using Handler = std::function<void(const AssembledEvent&)>;

    /// Throws core::UsageError if the format cannot have these options, or does not number its events. Sequence numbers
    /// of packets, where a format has them, put the packets of a message in order; lost ones are not counted.
    EventAssembler(const Config& config, Handler handler);
    ~EventAssembler();
    EventAssembler(const EventAssembler&) = delete;
    EventAssembler& operator=(const EventAssembler&) = delete;

    /// The payload of one UDP datagram from `source`, which came at `now`, by any clock: it is copied. Of detectors
    /// with two UDP interfaces each is a source, those of a module side by side. Returns wire::ok, or the counter in
    /// which the decoder ended it; what becomes of it later is in packets(). Throws core::UsageError if there is no
    /// such source.
    wire::Verdict add(std::uint32_t source, std::span<const std::byte> payload, core::TimeNs now);
    /// No packet has come since: events whose time-out is over leave.
    void advance(core::TimeNs now);
    /// The end: what is open leaves as it is.
    void finish();

    /// What became of all packets: by the end of finish() they add up to the calls of add.
    [[nodiscard]] std::uint64_t packets(wire::PacketCounter counter) const noexcept;

private:
    struct Buffer;
    static void release(void** buffers, std::uint32_t count);
    [[nodiscard]] Buffer* keep(std::span<const std::byte> payload);
    void exchange();

    Config config_;
    Handler handler_;
    wire::FormatContext context_;
    core::TimeNs now_ = std::numeric_limits<core::TimeNs>::min();
    std::uint64_t held_bytes_ = 0;
    wire::PacketTally table_packets_;
    wire::PacketTally builder_packets_;
    MessageTally table_messages_;
    MessageTally builder_messages_;
    EventTally events_;
    MessageTable table_;
    EventBuilder builder_;
};

}  // namespace weir::assemble

// What events a sample would become: a plain account of messages by source and number, without time-outs and bounds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/units.hpp"
#include "probe/findings.hpp"
#include "wire/fragment.hpp"

namespace weir::probe {

class MessageAccount {
public:
    /// `sequence_bits`: of the sources' packet counters, 0 if they have none.
    MessageAccount(std::size_t sources, unsigned sequence_bits) : sources_(sources), sequence_bits_(sequence_bits) {}

    void add(std::uint32_t source, const wire::Fragment& fragment, core::TimeNs time_ns);
    /// A packet without event data that has a sequence number all the same.
    void add_control(std::uint32_t source, const wire::Fragment& fragment);
    /// Everything is in; once.
    void finish();

    /// Packets in events of which all sources are whole; the measure of a set-up.
    [[nodiscard]] std::uint64_t packets_complete() const noexcept { return packets_complete_; }
    /// Packets that brought bytes which were there already.
    [[nodiscard]] std::uint64_t duplicates() const noexcept;
    /// Writes what is known into `out`; its sources must be as many.
    void report(FoundStream& out) const;

private:
    struct Message {
        std::vector<std::uint32_t> offsets;  ///< sorted; in_sequence: numbers from that of the first packet
        std::uint64_t bytes = 0;
        std::uint64_t total = 0;
        bool total_known = false;
        bool in_sequence = false;  ///< wire::Fragment::in_sequence
        std::uint32_t first_sequence = 0;
        std::uint32_t packets = 0;  ///< without duplicates
        core::TimeNs first_ns = 0;
        core::TimeNs last_ns = 0;
    };
    struct Source {
        std::set<std::uint32_t> sequences;  ///< all that came, where messages are in sequence
        std::uint64_t packets = 0;
        std::uint64_t bytes = 0;
        std::uint64_t messages = 0;
        std::uint64_t whole = 0;
        std::uint64_t duplicates = 0;
        std::uint64_t disordered = 0;
        std::uint64_t missing = 0;
        std::optional<std::uint32_t> sequence;
        std::uint64_t highest = 0;         ///< event number
        std::uint32_t highest_offset = 0;  ///< in that event
        bool begun = false;
    };
    /// By event number, then by source.
    using Event = std::map<std::uint32_t, Message>;

    void follow(std::uint32_t source, std::uint32_t sequence);
    void finish_event(const Event& event);
    /// Where a packet lies in its message: all of it is only compared.
    [[nodiscard]] static std::uint32_t place_of(const Message& message, const wire::Fragment& fragment) noexcept;
    [[nodiscard]] static bool is_whole(const Source& source, const Message& message);

    std::vector<Source> sources_;
    unsigned sequence_bits_;
    std::map<std::uint64_t, Event> events_;
    std::uint64_t packets_complete_ = 0;
    std::uint64_t complete_ = 0;
    std::uint64_t met_ = 0;  ///< events with something of all sources
    std::uint64_t event_bytes_ = 0;
    std::uint32_t message_packets_ = 0;
    std::uint64_t message_bytes_min_ = UINT64_MAX;
    std::uint64_t message_bytes_max_ = 0;
    core::TimeNs longest_ns_ = 0;
};

/// What the numbers, in rising order, say of their stride.
[[nodiscard]] FoundNumbers numbers_of(std::span<const std::uint64_t> rising);

}  // namespace weir::probe

// What was found in a sample of packets: plain data, from which the configuration, the table and the JSON are made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/run_config.hpp"
#include "core/units.hpp"

namespace weir::probe {

/// How a stream came to its format.
enum class Basis : std::uint8_t {
    format,    ///< a format of weir's has marks that the packets have
    declared,  ///< a [[format]] that the user named fits
    shipped,   ///< a [[format]] of formats/*.toml fits
    rdma,      ///< RoCEv2 says where messages begin and end
    guess,     ///< a [[format]] made up from what is constant and what counts
    message,   ///< nothing of the payload is understood: each datagram is an event
};

[[nodiscard]] std::string_view basis_text(Basis basis) noexcept;

/// One source of a stream.
struct FoundSource {
    std::string label{};  ///< "udp 50001", "10.1.0.10", "id 3", "qp 0x11"
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::uint64_t messages = 0;
    std::uint64_t whole = 0;       ///< messages of which nothing is missing
    std::uint64_t duplicates = 0;  ///< packets with bytes that were there already
    std::uint64_t disordered = 0;  ///< packets of an earlier event, or an earlier place, than one before
    std::optional<std::uint64_t> missing_packets{};  ///< by sequence numbers, where there are some
};

/// Event numbers that were seen.
struct FoundNumbers {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t distinct = 0;
    std::uint64_t stride = 0;   ///< most neighbours are so far apart; 0: no step is common
    std::uint64_t missing = 0;  ///< numbers of that stride between first and last that did not come
};

/// One [[stream]] that fits, or would.
struct FoundStream {
    config::StreamConfig stream{};
    std::optional<wire::DeclaredSpec> spec{};
    Basis basis = Basis::format;
    double confidence = 0;  ///< 0..1
    std::vector<std::string> evidence{};
    std::vector<std::string> doubts{};
    std::vector<std::uint32_t> flows{};  ///< indices into Findings::flows
    std::vector<FoundSource> sources{};
    FoundNumbers numbers{};
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;            ///< on the wire
    std::uint64_t rejected = 0;         ///< packets of its flows that the format refuses
    std::uint64_t control = 0;          ///< heartbeats and the like
    std::uint64_t events = 0;           ///< numbers seen; of RDMA without numbers: messages
    std::uint64_t complete = 0;         ///< all sources whole
    std::uint64_t met = 0;              ///< something of all sources; 0: it was not looked at
    std::uint64_t event_bytes = 0;      ///< the largest
    std::uint32_t message_packets = 0;  ///< the most packets of one message
    std::uint64_t message_bytes_min = 0;
    std::uint64_t message_bytes_max = 0;
    core::TimeNs longest_event_ns = 0;  ///< from first packet to last, of the events that are complete
    core::TimeNs first_ns = 0;
    core::TimeNs last_ns = 0;
    /// Not part of the proposed run, and why.
    std::string left_out{};
};

/// One sender to one place.
struct FoundFlow {
    std::string src;
    std::string dst;
    std::uint16_t dport = 0;
    std::optional<std::uint16_t> vlan{};
    std::uint64_t datagrams = 0;
    std::uint64_t fragments = 0;
    std::uint64_t bytes = 0;  ///< of payload
    std::uint32_t payload_min = 0;
    std::uint32_t payload_max = 0;
    std::uint32_t ip_bytes_max = 0;  ///< the largest IP packet
    wire::Tunnels tunnels{};         ///< that were taken off its packets
    std::size_t sports = 0;
    bool reversed = false;  ///< there is a flow the other way between the two: a conversation
    std::string what;       ///< the format it was taken for, or why none
};

/// What came of the sample when it went through the assembly of a run with the proposed configuration.
struct Trial {
    bool done = false;
    std::string why_not{};  ///< it was not done
    std::uint64_t events = 0;
    std::uint64_t complete = 0;
    std::uint64_t cut_packets = 0;  ///< taken for whole here; a replay of the capture drops them as truncated
    /// Packets of the proposed streams that went into no event, by counter.
    std::vector<std::pair<std::string, std::uint64_t>> lost{};

    /// A replay of the same packets gives no complete event.
    [[nodiscard]] bool gives_nothing() const noexcept { return done && complete == 0; }
};

struct Findings {
    std::string input;         ///< what was looked at, for people
    bool sample_only = false;  ///< there was more than was looked at
    std::string cut_off;       ///< the capture could not be read to its end: why
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;  ///< on the wire
    std::uint64_t cut_frames = 0;
    std::uint64_t broken_datagrams = 0;
    core::TimeNs first_ns = 0;
    core::TimeNs last_ns = 0;
    std::vector<std::pair<std::string, std::uint64_t>> others;  ///< frames without UDP payload for anybody, by reason
    std::vector<FoundFlow> flows;
    std::vector<FoundStream> streams;  ///< the proposed ones first
    std::vector<std::string> remarks;
    Trial trial;  ///< of the proposed streams
    /// How many sources make an event complete, where these are not all: they do not count together.
    std::optional<std::uint32_t> sources_needed{};

    /// There is something to make a configuration of.
    [[nodiscard]] bool recognised() const noexcept { return !streams.empty() && streams.front().left_out.empty(); }
    /// The streams that the configuration has: the first ones.
    [[nodiscard]] std::size_t proposed() const noexcept {
        std::size_t count = 0;
        while (count < streams.size() && streams[count].left_out.empty()) ++count;
        return count;
    }
    /// The proposal does without this one; `remarks` says so, too.
    void leave_out(std::size_t index, const std::string& why);
    [[nodiscard]] double seconds() const noexcept { return static_cast<double>(last_ns - first_ns) * 1e-9; }
};

}  // namespace weir::probe

// The counter table: every place in which a packet, a message or an event can end, each with the sentence that tells an
// operator what a non-zero value usually means and what to do. The same table makes the report,
// docs/reference/COUNTERS.md and `weir explain`; a counter without an entry does not compile.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::core {

/// How the values of several lcores become one.
enum class Merge : std::uint8_t { sum, maximum };

struct CounterInfo {
    std::string_view name;  ///< as in the report, dotted: "dropped.malformed.bad_icrc"
    Merge merge;
    std::string_view help;  ///< what a non-zero value usually means, and what to do

    static constexpr CounterInfo summed(std::string_view name, std::string_view help) {
        return {name, Merge::sum, help};
    }
};

/// Where a packet ends. Also the verdict of a decoder: `in_flight` means "good, goes on to a message".
enum class PacketCounter : std::uint8_t {
    in_flight,
    placed,
    control,
    unsteered,
    not_for_us_arp,
    not_for_us_icmp,
    not_for_us_ethertype,
    not_for_us_ip_protocol,
    not_for_us_roce_response,
    not_for_us_roce_request,
    not_for_us_roce_management,
    not_for_us_roce_v1,
    malformed_truncated,
    malformed_ethernet,
    malformed_ip_header,
    malformed_ip_length,
    malformed_ip_checksum,
    malformed_ip_fragment,
    malformed_udp_length,
    malformed_udp_checksum,
    malformed_oversized,
    malformed_header,
    malformed_payload_length,
    malformed_packet_number,
    malformed_range,
    malformed_source,
    malformed_message_size,
    malformed_roce_header,
    malformed_roce_length,
    malformed_bad_icrc,
    ip_fragment_timeout,
    ip_fragment_too_many,
    ip_fragment_conflict,
    ip_fragment_no_room,
    ip_fragment_roce,
    flow_rule,
    roce_sequence,
    roce_not_ready,
    roce_gap,
    roce_invalid_request,
    roce_access,
    roce_operation,
    roce_key,
    roce_peer,
    roce_service,
    roce_reset,
    roce_flushed,
    duplicate,
    conflict,
    too_fragmented,
    late,
    no_room,
    queue_full,
    prescaled,
    ring_full_capture,
    ring_full_steer,
    unbound,
    count_
};

/// What became of a message.
enum class MessageCounter : std::uint8_t {
    opened,
    delivered,
    refused_late,
    refused_no_room,
    refused_queue_full,
    refused_prescaled,
    refused_unbound,
    refused_duplicate,
    refused_conflict,
    count_
};

/// What became of an event.
enum class EventCounter : std::uint8_t {
    opened,
    refused_no_room,
    refused_queue_full,
    refused_prescaled,
    complete,
    incomplete_timeout,
    incomplete_evicted,
    incomplete_end_of_run,
    incomplete_no_room,
    vetoed,
    dropped_incomplete,
    dropped_no_room,
    dropped_reduce_error,
    dropped_write_error,
    written,
    count_
};

/// What a RoCE responder sent.
enum class AnswerCounter : std::uint8_t {
    ack,
    rnr_nak,
    nak_sequence,
    nak_invalid_request,
    nak_remote_access,
    nak_remote_operation,
    congestion,
    not_sent,
    count_
};

template <class E>
inline constexpr std::size_t count_of = static_cast<std::size_t>(E::count_);

extern const std::array<CounterInfo, count_of<PacketCounter>> packet_counters;
extern const std::array<CounterInfo, count_of<MessageCounter>> message_counters;
extern const std::array<CounterInfo, count_of<EventCounter>> event_counters;
extern const std::array<CounterInfo, count_of<AnswerCounter>> answer_counters;

/// Counters of one kind, written by one lcore and read by any thread. Values wrap: a packet that joins on one lcore and
/// whose fate is learnt on another leaves +1 here and -1 there, and only the sum over lcores means something.
template <class E>
class alignas(64) Tally {
public:
    void add(E counter, std::uint64_t n = 1) noexcept {
        // One writer: a plain load and store, made atomic so that the control thread may look.
        std::atomic_ref<std::uint64_t> value(values_[static_cast<std::size_t>(counter)]);
        value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    void subtract(E counter, std::uint64_t n) noexcept { add(counter, ~n + 1); }
    /// A packet that was in flight has found its place.
    void settle(E counter, std::uint64_t n) noexcept requires(requires { E::in_flight; }) {
        subtract(E::in_flight, n);
        add(counter, n);
    }
    [[nodiscard]] std::uint64_t get(E counter) const noexcept {
        return std::atomic_ref<std::uint64_t>(values_[static_cast<std::size_t>(counter)])
            .load(std::memory_order_relaxed);
    }

private:
    mutable std::array<std::uint64_t, count_of<E>> values_{};
};

using PacketTally = Tally<PacketCounter>;
using MessageTally = Tally<MessageCounter>;
using EventTally = Tally<EventCounter>;
using AnswerTally = Tally<AnswerCounter>;

/// The info of a counter by its name in the report, or nullptr.
const CounterInfo* find_counter(std::string_view name) noexcept;

}  // namespace weir::core

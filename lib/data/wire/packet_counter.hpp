// Where packets end. All rooms from here on end packets, and each packet ends in exactly one of these, so they are one
// enumeration; it is declared here because a decoder's answer is one of them (wire/fragment.hpp).
#pragma once

#include "core/counters.hpp"

namespace weir::wire {

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
    not_for_us_encapsulated,
    malformed_truncated,
    malformed_ethernet,
    malformed_ip_header,
    malformed_ip_length,
    malformed_ip_checksum,
    malformed_ip_fragment,
    malformed_udp_length,
    malformed_udp_checksum,
    malformed_encapsulation,
    malformed_nested,
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
    ip_fragment_encapsulated,
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

extern const std::array<core::CounterInfo, core::count_of<PacketCounter>> packet_counters;

using PacketTally = core::Tally<PacketCounter>;

}  // namespace weir::wire

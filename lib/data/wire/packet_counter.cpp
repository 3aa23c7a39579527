// The texts are for the person who runs the appliance: what a non-zero value usually means, then what to do.
#include "wire/packet_counter.hpp"

namespace weir::wire {
namespace {

using enum PacketCounter;
using core::Fate;

constexpr core::CounterFamily other{"packets_other", "kind",
                                    "Packets that are no detector's data: `not_for_us` in the report."};
constexpr core::CounterFamily dropped{
    "packets_dropped", "cause",
    "Packets that came and are in no event (weir explain dropped.CAUSE). Duplicates are no loss."};

}  // namespace

constinit const std::array<core::CounterInfo, core::count_of<PacketCounter>> packet_counters = core::make_counter_table<
    PacketCounter>({
    {in_flight, "in_flight",
     "Packets of messages whose fate is not known yet. Normal during a run; at its end it is zero, "
     "and anything else is a defect of weir: please report it with the run report.",
     Fate::open, nullptr, true},
    {placed, "placed", "Packets whose payload went into an event. This is what you want to see grow.", Fate::kept},
    {control, "control",
     "Valid packets that carry no event data: heartbeats, stream control, empty messages that only mark an end. "
     "Nothing to do; if it grows as fast as `placed`, the sender is mostly idle or its firmware repeats itself.",
     Fate::kept},
    {unsteered, "unsteered",
     "UDP or RoCE packets that match no [[stream]]: other traffic on the link, a port, "
     "address or queue pair missing from the configuration, or a sender set up with the wrong destination. "
     "Compare `udp_dst`, `src` and `qp` with a capture.",
     Fate::foreign},
    {not_for_us_arp, "not_for_us.arp",
     "Address resolution on the link. Normal in small numbers; "
     "a steady stream means that somebody asks for an address that nobody answers. "
     "Check the sender's destination address and neighbour table.",
     Fate::foreign, &other},
    {not_for_us_icmp, "not_for_us.icmp",
     "Ping and other ICMP and ICMPv6 messages, neighbour discovery among them. Normal in small numbers; "
     "`destination unreachable` at data rate means that the kernel of this box answers the detector on the same interface: "
     "remove its address there, or drop ICMP.",
     Fate::foreign, &other},
    {not_for_us_ethertype, "not_for_us.ethertype",
     "Frames that are neither IPv4, IPv6 nor ARP: LLDP, spanning tree, pause frames. Harmless background; "
     "if it is most of the traffic, "
     "the port is connected to the wrong network or the data carries a tag weir does not know.",
     Fate::foreign, &other},
    {not_for_us_ip_protocol, "not_for_us.ip_protocol",
     "IP packets that are neither UDP nor ICMP, such as IGMP, TCP or encrypted ones (ESP), "
     "and IPv6 packets that carry nothing or something unknown. Harmless background; "
     "a lot of TCP means that the data link is shared with ordinary traffic. Give the detector its own link.",
     Fate::foreign, &other},
    {not_for_us_roce_response, "not_for_us.roce_response",
     "RoCE acknowledgements and read responses: the other direction of a connection that weir listens to. "
     "Normal on a mirrored link; on a direct link somebody answers for this port. "
     "weir needs only the direction with the data.",
     Fate::foreign, &other},
    {not_for_us_roce_request, "not_for_us.roce_request",
     "RoCE requests that carry no data for a stream: READ, atomics, or a transport that weir does not assemble. "
     "If data is missing, check that the sender uses SEND or WRITE on a reliable or unreliable connection.",
     Fate::foreign, &other},
    {not_for_us_roce_management, "not_for_us.roce_management",
     "RoCE connection management (queue pair 1) and congestion notifications. A few per connection are normal; "
     "a stream of congestion notifications means that a switch on the way is congested and has begun to mark packets.",
     Fate::foreign, &other},
    {not_for_us_roce_v1, "not_for_us.roce_v1",
     "RoCEv1 frames (ethertype 0x8915), which have no IP and no UDP header and which weir does not assemble. "
     "Set the sender's GID to one of type RoCE v2: `show_gids` or `ibv_devinfo -v` list them.",
     Fate::foreign, &other},
    {not_for_us_encapsulated, "not_for_us.encapsulated",
     "Packets of a tunnel that the port takes off (`decapsulate`), with neither an Ethernet frame nor an IP packet inside "
     "that can be told for sure: what routers say to each other with MPLS labels, ERSPAN frames of another network. "
     "Harmless background; if the detector's data should be there, look at one in a capture.",
     Fate::foreign, &other},
    {malformed_truncated, "dropped.malformed.truncated",
     "Frames that end before their own headers say they do. A capture taken with a short snap length, "
     "or a device whose buffers are smaller than the frames: raise the snap length, the MTU, "
     "or `framesz` of net_af_packet.",
     Fate::unread, &dropped},
    {malformed_ethernet, "dropped.malformed.ethernet",
     "Frames too short for an Ethernet header or with more than two VLAN tags. "
     "Suspect the capture's link type or a switch that adds tags on the detector's port.",
     Fate::unread, &dropped},
    {malformed_ip_header, "dropped.malformed.ip_header",
     "IPv4 or IPv6 headers with an impossible version or header length, "
     "or more IPv6 extension headers than weir follows (8, of 512 bytes together). Almost always damaged data: "
     "check cable, optics and the sender's firmware.",
     Fate::unread, &dropped},
    {malformed_ip_length, "dropped.malformed.ip_length",
     "IPv4 or IPv6 length larger than the frame or smaller than its headers. "
     "Firmware that fills the length field wrongly, or frames cut by an MTU or by a kernel that merged packets: "
     "on veth and TAP turn off tso, gso and gro.",
     Fate::unread, &dropped},
    {malformed_ip_checksum, "dropped.malformed.ip_checksum",
     "Wrong IPv4 header checksum. Firmware that computes it wrongly (then all its packets are here), "
     "transmit offload seen by a capture on the sending machine, or bit errors on the link if there are only a few.",
     Fate::unread, &dropped},
    {malformed_ip_fragment, "dropped.malformed.ip_fragment",
     "Fragments of IP datagrams that cannot be part of any: empty, of a length that only a last one may have, "
     "or beyond the largest datagram. Damaged data, or somebody who tries things: look at one in a capture.",
     Fate::unread, &dropped},
    {malformed_udp_length, "dropped.malformed.udp_length",
     "UDP length that does not fit the IP packet. Firmware that fills the field wrongly, or truncated frames; "
     "compare one packet in a capture with the detector's manual.",
     Fate::unread, &dropped},
    {malformed_udp_checksum, "dropped.malformed.udp_checksum",
     "Wrong UDP checksum, as found by a device that checks them (`offloads` in the report). "
     "Firmware that fills the field wrongly (then all its packets are here; it may send 0 for none, "
     "or set `checksums = \"ignore\"` on the port), or data damaged on the way if there are only a few.",
     Fate::unread, &dropped},
    {malformed_encapsulation, "dropped.malformed.encapsulation",
     "Outer headers of a tunnel that the port takes off (`decapsulate`) which are too short, or of a version that weir does not "
     "know. A switch that fills them in its own way: look at one in a capture, and let the mirror use a plain type "
     "(ERSPAN II) or a local port (SPAN).",
     Fate::unread, &dropped},
    {malformed_nested, "dropped.malformed.nested",
     "Packets in more than two tunnels of those that the port takes off (`decapsulate`). "
     "A mirror that mirrors itself: exclude its own destination from what it mirrors.",
     Fate::unread, &dropped},
    {malformed_oversized, "dropped.malformed.oversized",
     "Frames larger than weir can hold in its buffers. The sender's MTU is larger than the port's `mtu`, "
     "or receive coalescing merged packets: turn off gro and lro, or raise `mtu`.",
     Fate::unread, &dropped},
    {malformed_header, "dropped.malformed.header",
     "The detector header does not look like the configured format: wrong magic, version or fixed field. "
     "The stream's `format` is wrong, the firmware is newer than the format, or something else sends to this port.",
     Fate::unread, &dropped},
    {malformed_payload_length, "dropped.malformed.payload_length",
     "Datagrams whose payload is longer or shorter than the format requires. "
     "Check the geometry keys of the stream (rows, interfaces, bit depth, payload_bytes) "
     "against the detector's settings.",
     Fate::unread, &dropped},
    {malformed_packet_number, "dropped.malformed.packet_number",
     "Packet numbers beyond the last packet of a message. "
     "Usually the geometry in the configuration describes a smaller readout than the detector sends; "
     "a few can be bit errors.",
     Fate::unread, &dropped},
    {malformed_range, "dropped.malformed.range",
     "Fragments that lie outside the declared size of their message. Suspect the sender's offset or length field, "
     "or two senders that use one stream with different message sizes.",
     Fate::unread, &dropped},
    {malformed_source, "dropped.malformed.source",
     "The header names a source that is not in `source_ids`, or more senders than `[events] sources` appeared. "
     "A board with the wrong module number, or one more detector on the link than was configured.",
     Fate::unread, &dropped},
    {malformed_message_size, "dropped.malformed.message_size",
     "Messages that declare zero bytes where data is needed, more than `max_message_bytes`, "
     "or a size that differs from what their first packet declared. Raise `max_message_bytes` if the size is right; "
     "otherwise suspect the sender.",
     Fate::unread, &dropped},
    {malformed_roce_header, "dropped.malformed.roce_header",
     "RoCEv2 packets with an unknown opcode or transport version, "
     "or an opcode that does not fit its predecessor in the message. Suspect the sender's state machine; "
     "a single one after a loss is the loss's echo.",
     Fate::unread, &dropped},
    {malformed_roce_length, "dropped.malformed.roce_length",
     "RoCEv2 packets whose payload does not fit the path MTU or the padding count, "
     "or too short for their headers and iCRC. Check that the sender's path MTU is equal in all packets of a message.",
     Fate::unread, &dropped},
    {malformed_bad_icrc, "dropped.malformed.bad_icrc",
     "RoCEv2 packets whose invariant CRC is wrong. A few: bit errors on the link. All of them: "
     "the sender computes it wrongly or leaves it zero, as soft sources do; "
     "set `icrc = \"ignore\"` only if you trust the link's own checksum.",
     Fate::unread, &dropped},
    {ip_fragment_timeout, "dropped.ip_fragment.timeout",
     "IP fragments of datagrams of which the rest did not come in time (`ip_fragment_timeout_ms`). "
     "Fragments were lost on the way, and each takes its whole datagram along: set jumbo frames (MTU 9000) "
     "on every port between the detector and this box, so that nothing is fragmented.",
     Fate::lost, &dropped},
    {ip_fragment_too_many, "dropped.ip_fragment.too_many",
     "IP fragments of datagrams that were cut into more than 128. No usual MTU does that to a datagram of 64 KiB; "
     "fragments of less than 512 bytes do: look at a capture, and raise the MTU on the way from the detector.",
     Fate::lost, &dropped},
    {ip_fragment_conflict, "dropped.ip_fragment.conflict",
     "IP fragments that contradict others of their datagram: the same place with other bytes, overlapping, "
     "or beyond its end. A sender that uses one identification for several datagrams (see `ip_fragments` "
     "in the report), or somebody who tries things. The whole datagram is given up.",
     Fate::lost, &dropped},
    {ip_fragment_no_room, "dropped.ip_fragment.no_room",
     "IP fragments for which there was no place beside those that wait for their rest. Many senders at once, "
     "or heavy loss of fragments: shorten `ip_fragment_timeout_ms`, "
     "or set jumbo frames so that nothing is fragmented.",
     Fate::lost, &dropped},
    {ip_fragment_roce, "dropped.ip_fragment.roce",
     "RoCEv2 packets that came in IP fragments, which RoCE forbids: no adapter would take them. "
     "A router on the way cuts them, or a test sender does: "
     "make the path MTU of the queue pair smaller than the MTU of the network.",
     Fate::lost, &dropped},
    {ip_fragment_encapsulated, "dropped.ip_fragment.encapsulated",
     "Packets of a tunnel that the port takes off (`decapsulate`) which the switch cut into IP fragments, because they did not "
     "fit with the outer headers: these are not put together. Raise the MTU between the switch and this box by 100 bytes "
     "over what the detector sends.",
     Fate::lost, &dropped},
    {flow_rule, "dropped.flow_rule",
     "Packets that a flow rule with the action `drop` took, in software. This is what the rule asks for; "
     "what the device drops by such a rule never gets here and is not counted. If data is missing, "
     "`flows` in the report says which rule drops how much, "
     "and how much of it belonged to a stream (docs/guides/FLOWS.md).",
     Fate::foreign, &dropped},
    {roce_sequence, "dropped.roce.sequence",
     "Packets for a queue pair that weir answers (`service = \"rc\"`) that came ahead of the one that is due. "
     "Their sender is told once and repeats them, so nothing is lost; "
     "many of them mean that packets are lost on the way, "
     "and each loss costs the sender all that it had sent after it.",
     Fate::spared, &dropped},
    {roce_not_ready, "dropped.roce.not_ready",
     "Packets that were answered with RNR NAK because event memory was short. Their sender waits and repeats them, "
     "so nothing is lost: this is back-pressure. If it slows the detector down, "
     "the sink or the reducer is too slow, or `[events] memory` too small.",
     Fate::spared, &dropped},
    {roce_gap, "dropped.roce.gap",
     "Packets of a queue pair with `service = \"uc\"` after a lost one: "
     "an unreliable connection drops until the next message starts. The loss itself is on the way to this box. "
     "`service = \"listen\"` keeps what arithmetic proves.",
     Fate::lost, &dropped},
    {roce_invalid_request, "dropped.roce.invalid_request",
     "Requests that break the rules of the transport: an opcode out of order, a length that is not the path MTU, "
     "more than was declared or than `max_message_bytes`, READ or an atomic. "
     "On a reliable connection they are answered with a NAK, and the queue pair is in error until it is reset. "
     "Check `path_mtu`, then the sender's state machine.",
     Fate::lost, &dropped},
    {roce_access, "dropped.roce.access",
     "WRITEs outside the memory that the stream declares: another R_Key, an address outside `region`, "
     "or no permission. On a reliable connection the queue pair is in error until it is reset. "
     "Compare `region` with what the sender was told.",
     Fate::lost, &dropped},
    {roce_operation, "dropped.roce.operation",
     "Messages that can become no event, so weir does not acknowledge them: "
     "without an immediate where the event number is in it, or not of `message_bytes`. "
     "On a reliable connection the queue pair is in error until it is reset. Check `event` and what the sender sends.",
     Fate::lost, &dropped},
    {roce_key, "dropped.roce.key",
     "Packets of another partition (P_Key) or with the wrong Q_Key. They are dropped without an answer. "
     "Compare `pkey` and `qkey` with the sender's settings.",
     Fate::lost, &dropped},
    {roce_peer, "dropped.roce.peer",
     "Packets for a queue pair from another address than that of its peer. Two senders were given one queue pair, "
     "or a sender changed its address: correct `peer`, or reset the queue pair.",
     Fate::lost, &dropped},
    {roce_service, "dropped.roce.service",
     "Packets of another transport than the queue pair's `service`: "
     "an unreliable sender to a reliable queue pair or the like. Set `service` to what the sender uses, "
     "or \"listen\" to take everything and answer nothing.",
     Fate::lost, &dropped},
    {roce_reset, "dropped.roce.reset",
     "Packets for a queue pair that is not connected: it was reset, or its handshake has not been made. "
     "They are dropped without an answer. The sender began before it was connected, "
     "or goes on after it was disconnected.",
     Fate::lost, &dropped},
    {roce_flushed, "dropped.roce.flushed",
     "Packets for a queue pair that is in error because weir answered a request of it with a fatal NAK: "
     "see `dropped.roce.invalid_request`, `access` and `operation` for the cause. Reset the queue pair, "
     "or restart the run.",
     Fate::lost, &dropped},
    {duplicate, "dropped.duplicate",
     "Data that had already arrived: RoCE retransmissions, a mirrored link seen twice, "
     "or a sender that repeats itself. No data is lost. With RC, the number says how much the sender had to repeat: "
     "look for losses or slow acknowledgements.",
     Fate::spared, &dropped},
    {conflict, "dropped.conflict",
     "Data for a place that other data had taken: from another sender, with another header or payload, or overlapping "
     "without being the same range; or it contradicts the message's size or end. Two senders use the same source, "
     "stream or event number, or firmware sends wrong offsets; with `dune` and `ess`, "
     "several streams or output queues share a source (`source_ids`), "
     "or a pulse has more packets than `packets_per_pulse`. "
     "The first data is kept.",
     Fate::lost, &dropped},
    {too_fragmented, "dropped.too_fragmented",
     "Messages that arrived in more separate pieces than weir tracks. Extreme reordering or loss: "
     "check load balancing over several links on the way, then the number of packets in a message.",
     Fate::lost, &dropped},
    {late, "dropped.late",
     "Data for events that had already left. The network delays or reorders by more than `timeout_ms`, "
     "one source lags behind the others, or a source numbers its events differently. Raise `timeout_ms`, "
     "or synchronise the sources.",
     Fate::lost, &dropped},
    {no_room, "dropped.no_room",
     "Data for which there was no memory even after the oldest event was evicted. Raise `[events] memory`, "
     "shorten `timeout_ms`, or find what keeps events open: usually a source that does not send.",
     Fate::lost, &dropped},
    {queue_full, "dropped.queue_full",
     "Data of events that were refused as a whole because closed events waited for a worker or the disk and their queue was full. "
     "The reducer or the disk is slower than the detector: the summary's bottleneck names which. "
     "More `work` lcores, a lighter reducer, a faster disk, or `overload = \"prescale:N\"` to lose what you choose.",
     Fate::lost, &dropped},
    {prescaled, "dropped.prescaled",
     "Data of events that `[events] overload = \"prescale:N\"` left out while weir was overloaded: "
     "those whose number N does not divide. Meant to be lost; the summary's bottleneck says what caused the overload.",
     Fate::lost, &dropped},
    {ring_full_capture, "dropped.ring_full.capture",
     "`weir replay --drop` read the capture faster than the pipeline took packets, as a network card would lose them. "
     "Use more lcores or a slower `--pace`; without `--drop` replay waits instead.",
     Fate::unread, &dropped},
    {ring_full_steer, "dropped.ring_full.steer",
     "The ring from the steering lcore to an assembling lcore was full: that lcore is too slow, "
     "or starved by another program on its core. Spread the streams over more rx lcores, isolate the cores, "
     "or let the NIC steer.",
     Fate::unread, &dropped},
    {unbound, "dropped.unbound",
     "Data of messages whose event number or beginning never arrived: "
     "the FIRST or LAST packet of an RDMA message was lost, or a listener started in the middle of one. "
     "A few at the start are normal; otherwise look for packet loss.",
     Fate::lost, &dropped},
});

}  // namespace weir::wire

#include "resend/packets_not_sent.hpp"

namespace weir::resend {

constexpr std::array<NotSentReason, core::count_of<NotSent>> not_sent_reasons{{
    {"truncated", "the capture has only a part of it"},
    {"too_long", "longer than the MTU of the device, or of the way to the host"},
    {"too_short", "shorter than an Ethernet header"},
    {"arp", "ARP"},
    {"icmp", "ICMP"},
    {"other_ip", "another IP protocol than UDP"},
    {"not_ip", "another protocol than IP"},
    {"ip_fragment", "a part of a datagram: a device sends it, a socket cannot"},
    {"malformed", "IP or UDP headers that contradict themselves"},
    {"unsent", "read already when sending ended early"},
}};
static_assert(!not_sent_reasons.back().name.empty(), "every reason has a name and words");

}  // namespace weir::resend

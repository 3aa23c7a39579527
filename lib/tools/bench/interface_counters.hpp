// What the kernel's interface counts, in the network namespace of the calling thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weir::bench {

/// Since the interface was made. Packets as the interface sees them: what offloads joined counts once.
struct InterfaceCounters {
    std::uint64_t received = 0;
    std::uint64_t receive_dropped = 0;
    std::uint64_t sent = 0;
    std::uint64_t send_dropped = 0;
};

/// Nothing if there is no such interface. Source: proc(5), /proc/[pid]/net/dev.
[[nodiscard]] std::optional<InterfaceCounters> interface_counters(const std::string& interface);

/// The interface that has the IPv4 address; empty if none has.
[[nodiscard]] std::string interface_with(const std::string& address);

/// Our IPv4 address that packets to this one leave with; empty if there is no way there.
[[nodiscard]] std::string own_address_to(const std::string& address);

/// The interface that packets to this IPv4 address go out of; empty if there is no way there.
[[nodiscard]] std::string interface_to(const std::string& address);

/// Driver, speed and MTU, for people.
[[nodiscard]] std::string interface_text(const std::string& interface);

}  // namespace weir::bench

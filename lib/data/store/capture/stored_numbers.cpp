#include "store/capture/stored_numbers.hpp"

#include <algorithm>
#include <limits>

namespace weir::store {

std::uint32_t snapshot_of(std::uint32_t stored) noexcept {
    const bool limits = stored != 0 && stored <= static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max());
    return limits ? stored : capture_bytes_max;
}

core::TimeNs capture_time(std::int64_t seconds, std::int64_t fraction_ns) noexcept {
    // pcapng time stamps have 64 bits and any resolution, so a damaged one can be beyond what TimeNs holds.
    constexpr std::int64_t last_s = std::numeric_limits<core::TimeNs>::max() / core::ns_per_s - 8;
    // A damaged pcap record can hold 2^32 microseconds.
    return std::clamp<std::int64_t>(seconds, 0, last_s) * core::ns_per_s +
           std::clamp<std::int64_t>(fraction_ns, 0, 5 * core::ns_per_s);
}

}  // namespace weir::store

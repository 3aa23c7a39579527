// Why an event was not sent.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::stream {

enum class DropCause : std::uint8_t {
    no_consumer,      ///< nobody was connected
    consumer_behind,  ///< the consumer had not taken enough of what was sent before
    too_late,  ///< it was with ZeroMQ, and the consumer had not taken it when the run had been over for linger_ms
};
inline constexpr std::array<std::string_view, 3> drop_causes{"no_consumer", "consumer_behind", "too_late"};

}  // namespace weir::stream

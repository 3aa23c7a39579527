// Reads multi-event packets (multi_event.hpp) from any bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reduce/mfp/multi_event.hpp"

namespace weir::reduce {

/// One event out of a multi-event packet.
struct MepFragment {
    MepSource source;
    std::uint8_t type = 0;
    std::span<const std::byte> bytes;
};

/// Reads a packet. Made for any bytes: nothing is believed before it is checked.
class MepView {
public:
    /// Nothing, and the reason in `problem`, if this is no packet. `bytes` must outlive the view.
    static std::optional<MepView> parse(std::span<const std::byte> bytes, std::string& problem);

    [[nodiscard]] MepOrder order() const noexcept { return order_; }
    [[nodiscard]] std::uint64_t first_event() const noexcept { return first_event_; }
    [[nodiscard]] std::uint32_t events() const noexcept { return events_; }
    [[nodiscard]] const std::vector<MepSource>& sources() const noexcept { return sources_; }
    [[nodiscard]] MepFragment fragment(std::uint32_t event, std::size_t source) const;

private:
    bool parse_sources(std::span<const std::byte> bytes, std::string& problem);
    bool parse_events(std::span<const std::byte> bytes, std::string& problem);

    MepOrder order_ = MepOrder::sources;
    std::uint64_t first_event_ = 0;
    std::uint32_t events_ = 0;
    std::vector<MepSource> sources_;
    std::vector<std::uint8_t> types_;               ///< [source][event]
    std::vector<std::span<const std::byte>> data_;  ///< [source][event]
};

}  // namespace weir::reduce

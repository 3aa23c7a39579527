// [[sink]]: where a run goes. What all kinds that write have in common; each kind is a file of its own in sinks/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "options/held.hpp"
#include "options/place.hpp"
#include "store/write_policy.hpp"

namespace weir::config {

using options::Place;
using store::Toggle;

/// What becomes of the run when a sink fails.
enum class SinkError : std::uint8_t {
    stop,      ///< it ends, with an error
    carry_on,  ///< it goes on as long as another sink takes events
};

/// kind = "null" has no keys.
struct NullSinkConfig {
    bool operator==(const NullSinkConfig&) const = default;
};

/// One [[sink]].
struct SinkConfig {
    // Of all kinds that write.
    std::string path;  ///< with {name}, {run}, {run:06}, {date}, {node} still in it; empty: no files are written
    std::uint32_t full_warning_seconds = 600;  ///< a warning when the disk will be full in less; 0: none
    std::string require_mount;                 ///< a file system must be mounted here; empty: not asked
    SinkError on_error = SinkError::stop;
    options::Held options{NullSinkConfig{}};  ///< of the kind, which they tell
    Place place;

    /// The options if the sink is of their kind.
    template <class Options>
    [[nodiscard]] const Options* as() const noexcept {
        return options.get_if<Options>();
    }
    /// As in the configuration: "events".
    [[nodiscard]] std::string_view kind() const;
    /// Events or packets, somewhere.
    [[nodiscard]] bool writes() const;
    /// To files.
    [[nodiscard]] bool has_path() const;
    [[nodiscard]] bool stores_events() const;
    bool operator==(const SinkConfig&) const = default;
};

}  // namespace weir::config

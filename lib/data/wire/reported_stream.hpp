// A stream as a run's configuration reports it (config::config_json): the options of its format, and its images. For
// whoever has a run's files, and not its configuration as it was read.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "wire/format.hpp"

namespace weir::wire {

/// The keys of the format. Throws core::UsageError if a value is none that it has.
[[nodiscard]] FormatOptions read_format_keys(const FormatEntry& format, const nlohmann::json& stream);

/// How images lie in the messages of all `streams`; nothing if they differ, or are no images.
[[nodiscard]] std::optional<ImageShape> image_of_streams(const nlohmann::json& streams);

}  // namespace weir::wire

// Numbers of a running weir, as its page writes them: counts are exact, rates have three digits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace weir::app {

/// 1234567 is "1,234,567"; what is no number is "unknown".
[[nodiscard]] std::string watch_count(const nlohmann::json& value);
/// 1234567 and "packets/s" are "1.23 M packets/s"; up to 9999 as it is.
[[nodiscard]] std::string watch_rate(const nlohmann::json& value, std::string_view unit);
/// 1234567 is "1.23 MB".
[[nodiscard]] std::string watch_bytes(const nlohmann::json& value);
/// 0.513 is "51 %"; a little is "< 1 %".
[[nodiscard]] std::string watch_percent(double part);
/// 200.4 is "3 min 20 s", 0.0003 is "300 us".
[[nodiscard]] std::string watch_duration(const nlohmann::json& seconds);

}  // namespace weir::app

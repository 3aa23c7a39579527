// The text of URLs and addresses, taken apart. What does not follow the rules is refused, never guessed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::web {

/// With each %XX replaced by its byte. Nothing if one is not whole, or is a zero byte.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

/// "/a/b/" → {"a", "b"}. Nothing if a part is empty, "." or "..", or there are more than 32.
[[nodiscard]] std::optional<std::vector<std::string_view>> path_parts(std::string_view path);

struct HostPort {
    std::string host;  ///< in lower case; of IPv6 without brackets
    std::optional<std::uint16_t> port;
    bool operator==(const HostPort&) const = default;
};
/// "HOST", "HOST:PORT", "[V6]" or "[V6]:PORT".
[[nodiscard]] std::optional<HostPort> parse_host_port(std::string_view text);

}  // namespace weir::web

// Bytes of a file that packets carry in place of a pattern: real frames, for links and programs to which it matters.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace weir::bench {

using Content = std::shared_ptr<const std::vector<std::byte>>;

inline constexpr std::size_t content_bytes_max = 8U << 20;

/// The beginning of a file, content_bytes_max at most. Throws core::RunError with the path.
[[nodiscard]] Content read_content(const std::string& path);

/// Messages for the receiver's side, which has to know what it checks.
[[nodiscard]] std::vector<nlohmann::json> content_messages(const Content& content);

/// Puts them together again.
class ContentReader {
public:
    /// Throws core::RunError for what is no such message, or too much; nlohmann::json::exception for what has not its
    /// keys.
    void add(const nlohmann::json& message);
    /// Null before the last message.
    [[nodiscard]] const Content& content() const noexcept { return content_; }

private:
    std::vector<std::byte> bytes_;
    Content content_;
};

}  // namespace weir::bench

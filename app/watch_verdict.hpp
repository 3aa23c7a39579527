// Is a running weir losing data? In words, from its document; as its page says it (lib/operate/web/page/verdict.js).
// tests/page/verdicts.py has what both have to say.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace weir::app {

struct WatchVerdict {
    enum class Level : std::uint8_t { ok, losing, lost, unknown, idle };

    Level level = Level::unknown;
    std::string headline;
    std::string detail;
};

/// `Level::ok` only where every place is known and nothing was lost.
[[nodiscard]] WatchVerdict watch_verdict(const nlohmann::json& document);

/// "queue_full" is "queue full", "device" is "dropped by the device".
[[nodiscard]] std::string watch_cause(std::string_view cause);

/// What a pointer leads to; null where there is nothing. The document of a newer or older weir may lack anything.
[[nodiscard]] const nlohmann::json& watch_value(const nlohmann::json& document, const char* pointer);
/// The same as text, without what could change a terminal; empty where there is none.
[[nodiscard]] std::string watch_words(const nlohmann::json& document, const char* pointer);
/// The same as a number, 0 where there is none.
[[nodiscard]] double watch_number(const nlohmann::json& document, const char* pointer);

}  // namespace weir::app

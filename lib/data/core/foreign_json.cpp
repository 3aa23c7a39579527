#include "core/foreign_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace weir::core {

std::size_t json_levels(std::string_view text) noexcept {
    std::size_t now = 0;
    std::size_t most = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted && c == '\\')
            ++i;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{'))
            most = std::max(most, ++now);
        else if (!quoted && (c == ']' || c == '}') && now > 0)
            --now;
    }
    return most;
}

std::optional<nlohmann::json> read_json(std::string_view text, std::size_t levels_max) {
    if (json_levels(text) > levels_max) return {};
    nlohmann::json read = nlohmann::json::parse(text, nullptr, false);
    if (read.is_discarded()) return {};
    return read;
}

std::string text_member(const nlohmann::json& object, const char* key, std::string_view otherwise) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string(otherwise);
}

}  // namespace weir::core

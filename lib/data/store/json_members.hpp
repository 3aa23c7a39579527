// Members of a JSON document of which nothing is known: wrong types are answered like missing members.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace weir::store {

/// A member of a JSON object that must be a whole number ≥ 0; nothing if it is not.
inline std::optional<std::uint64_t> number_at(const nlohmann::json& object, const char* key) {
    if (!object.is_object()) return {};
    const auto member = object.find(key);
    if (member == object.end() || !member->is_number_unsigned()) return {};
    return member->get<std::uint64_t>();
}

/// Its text; empty if it is none.
inline std::string text_at(const nlohmann::json& object, const char* key) {
    if (!object.is_object()) return {};
    const auto member = object.find(key);
    return member != object.end() && member->is_string() ? member->get<std::string>() : std::string{};
}

/// The member, or null.
inline const nlohmann::json& at_or_null(const nlohmann::json& object, const char* key) {
    static const nlohmann::json null;
    if (!object.is_object()) return null;
    const auto member = object.find(key);
    return member == object.end() ? null : *member;
}

}  // namespace weir::store

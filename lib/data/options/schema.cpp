#include "options/schema.hpp"

#include "options/option.hpp"

namespace weir::options {

using nlohmann::json;

json integer_schema(Bounds bounds) {
    return {{"type", "integer"}, {"minimum", bounds.min}, {"maximum", bounds.max}};
}

json number_schema(double min, double max) {
    return {{"type", "number"}, {"minimum", min}, {"maximum", max}};
}

json size_schema(Bounds bounds) {
    const json text = {{"type", "string"}, {"pattern", "^[0-9.]+ *[A-Za-z]+$"}};
    return {{"anyOf", {integer_schema(bounds), text}}};
}

json boolean_schema() {
    return {{"type", "boolean"}};
}

json words_schema(const std::vector<std::string_view>& words) {
    return {{"enum", words}};
}

json text_schema() {
    return {{"type", "string"}, {"minLength", 1}};
}

json name_schema() {
    return {{"type", "string"}, {"pattern", "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$"}};
}

json integers_schema(Bounds bounds) {
    return one_or_more_schema({{"anyOf", {integer_schema(bounds), {{"type", "string"}}}}});
}

json one_or_more_schema(json of_one) {
    json list = {{"type", "array"}, {"items", of_one}, {"minItems", 1}};
    return {{"anyOf", {std::move(of_one), std::move(list)}}};
}

json table_schema(const std::vector<Explained>& keys) {
    json out = {{"type", "object"},
                {"properties", json::object()},
                {"required", json::array()},
                {"additionalProperties", false}};
    for (const Explained& key : keys) {
        json& property = out["properties"][key.key] = key.schema;
        property["description"] = key.meaning;
        if (key.always) out["required"].push_back(key.key);
    }
    return out;
}

}  // namespace weir::options

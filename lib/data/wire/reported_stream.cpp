#include "wire/reported_stream.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"
#include "options/option.hpp"

namespace weir::wire {
namespace {

std::string text_of(const nlohmann::json& stream, const char* key) {
    const auto found = stream.find(key);
    return found != stream.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::optional<ImageShape> image_of_stream(const nlohmann::json& stream) {
    if (!stream.is_object()) return {};
    const FormatEntry* entry = find_format(text_of(stream, "format"));
    if (entry == nullptr || entry->image_shape == nullptr) return {};
    try {
        FormatOptions options = read_format_keys(*entry, stream);
        options.sls.interfaces_joined = text_of(stream, "source_by") == "header";
        return entry->image_shape(options);
    } catch (const core::UsageError&) {  // of a weir that had other keys
        return {};
    }
}

}  // namespace

FormatOptions read_format_keys(const FormatEntry& format, const nlohmann::json& stream) {
    FormatOptions options;
    if (format.describe == nullptr) return options;
    toml::table values;
    for (const std::string_view key : format.keys) {
        const auto found = stream.find(key);
        if (found == stream.end()) continue;
        if (found->is_boolean()) values.insert(key, found->get<bool>());
        if (found->is_number_integer()) values.insert(key, found->get<std::int64_t>());
    }
    options::TableReader table(values, "stream", "the report");
    const auto described = format.describe();
    for (const auto& option : described.all())
        if (std::ranges::find(format.keys, option.key()) != format.keys.end()) option.read(table, &options);
    return options;
}

std::optional<ImageShape> image_of_streams(const nlohmann::json& streams) {
    std::optional<ImageShape> common;
    if (!streams.is_array()) return {};
    for (const nlohmann::json& stream : streams) {
        const std::optional<ImageShape> shape = image_of_stream(stream);
        if (!shape || (common && *common != *shape)) return {};
        common = shape;
    }
    return common;
}

}  // namespace weir::wire

#include "config/schema.hpp"

#include <algorithm>
#include <string>

#include "config/parts.hpp"

namespace weir::config {

using namespace detail;

namespace {

using nlohmann::json;

constexpr std::string_view dialect = "http://json-schema.org/draft-07/schema#";

const options::ReferenceTable* table_named(const Reference& reference, const std::string& name) {
    const auto found = std::ranges::find(reference, name, &options::ReferenceTable::name);
    return found == reference.end() ? nullptr : &*found;
}

json list_of(json item) {
    return {{"type", "array"}, {"items", std::move(item)}, {"minItems", 1}};
}

/// One of a kind: the keys that all have, and those of this kind.
json kind_schema(const Reference& reference, const std::string& table, const std::string& kind) {
    std::vector<Explained> keys{{"kind", "", "", "", {{"const", kind}}, true}};
    for (const std::string& name : {table, table + "." + kind})
        if (const auto* found = table_named(reference, name); found != nullptr)
            for (const Explained& key : found->keys)
                if (key.key != "kind") keys.push_back(key);
    return options::table_schema(keys);
}

json sinks_schema(const Reference& reference) {
    json kinds = json::array();
    for (const json& kind : table_named(reference, "sink")->keys.front().schema.at("enum"))
        kinds.push_back(kind_schema(reference, "sink", kind));
    return list_of({{"anyOf", std::move(kinds)}});
}

json reducers_schema(const Reference& reference) {
    constexpr std::string_view prefix = "reduce.";
    json kinds = json::array();
    for (const options::ReferenceTable& table : reference)
        if (table.name.starts_with(prefix))
            kinds.push_back(kind_schema(reference, "reduce", table.name.substr(prefix.size())));
    return list_of({{"anyOf", std::move(kinds)}});
}

}  // namespace

json config_schema() {
    const Reference reference = config_reference();
    const auto of = [&](const char* name) { return options::table_schema(table_named(reference, name)->keys); };
    json out = of("top");
    out["$schema"] = dialect;
    out["title"] = "configuration of weir";
    json& properties = out["properties"];
    properties["include"] = options::one_or_more_schema(options::text_schema());
    for (const char* name : {"port", "stream", "format", "node"}) properties[name] = list_of(of(name));
    for (const char* name : {"events", "lcores", "serve", "cluster"}) properties[name] = of(name);
    properties["reduce"] = reducers_schema(reference);
    properties["sink"] = sinks_schema(reference);
    out["required"] = {"port", "stream", "events", "sink"};
    return out;
}

}  // namespace weir::config

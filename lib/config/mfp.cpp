// [[reduce]] kind = "mfp": multi-fragment packets. docs/reference/reduce/mfp.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "config/reducer.hpp"

namespace weir::pipeline::detail {

namespace {

constexpr auto keys =
    std::to_array<std::string_view>({"layout", "output", "source_ids", "version", "versions", "fragments_max"});

using reduce::MepOrder;
using reduce::MfpField;
using reduce::MfpLayout;

constexpr std::array order_names{Named{"mep", MepOrder::sources}, Named{"events", MepOrder::events}};
constexpr std::string_view built_in = "lhcb-2019";
constexpr std::string_view layout_accepted = "\"lhcb-2019\", or a table that describes the header ([reduce.layout])";

std::uint32_t small(TableReader& table, std::string_view key, Bounds bounds, std::uint32_t otherwise) {
    return static_cast<std::uint32_t>(table.integer(key, bounds).value_or(otherwise));
}

MfpField place_of(TableReader& table, std::initializer_list<std::string_view> more = {}) {
    std::vector<std::string_view> keys{"offset", "bytes"};
    keys.insert(keys.end(), more);
    table.allow(keys);
    MfpField field;
    const auto offset = table.integer("offset", {0, reduce::mfp_header_bytes_max});
    if (!offset) table.missing("offset", "where the field begins, in bytes");
    const auto bytes = table.integer("bytes", {1, 8});
    if (!bytes) table.missing("bytes", "1, 2, 4 or 8");
    field.offset = static_cast<std::uint32_t>(*offset);
    field.bytes = static_cast<std::uint8_t>(*bytes);
    return field;
}

/// A length is checked unless it says false: most layouts have one.
void read_length(TableReader& table, MfpLayout& layout) {
    const toml::node* node = table.get("length");
    if (node == nullptr) return;
    if (const auto* flag = node->as_boolean(); flag != nullptr && !flag->get()) {
        layout.length = {};
        return;
    }
    auto field = table.table("length");
    layout.length = place_of(*field, {"of"});
    const auto of = field->word("of", {"fragments", "message"});
    layout.length_is_of_message = of.value_or(0) == 1;
    field->finish();
}

MfpLayout read_layout(TableReader& table) {
    MfpLayout layout;
    layout.big_endian = table.word("byte_order", {"little", "big"}).value_or(0) == 1;
    layout.header_bytes = small(table, "header_bytes", {1, reduce::mfp_header_bytes_max}, layout.header_bytes);
    for (const auto& [key, field] : {std::pair{"first_event", &layout.first_event}, {"fragments", &layout.fragments}})
        if (auto place = table.table(key)) {
            *field = place_of(*place);
            place->finish();
        }
    read_length(table, layout);
    if (auto magic = table.table("magic")) {
        layout.magic = place_of(*magic, {"value"});
        const auto value = magic->integer("value", {0, ~std::uint64_t{0}});
        if (!value) magic->missing("value", "what stands there");
        layout.magic_value = *value;
        magic->finish();
    }
    layout.type_bytes = static_cast<std::uint8_t>(small(table, "type_bytes", {0, 1}, layout.type_bytes));
    layout.size_bytes = static_cast<std::uint8_t>(small(table, "size_bytes", {0, 4}, layout.size_bytes));
    layout.table_align = small(table, "table_align", {1, 4096}, layout.table_align);
    layout.fragment_align = small(table, "fragment_align", {1, 4096}, layout.fragment_align);
    if (auto size = table.table("size_in_fragment")) {
        layout.size_in_fragment = place_of(*size, {"adds"});
        layout.size_adds = small(*size, "adds", {0, 65535}, 0);
        size->finish();
    }
    table.finish();
    const std::string problem = reduce::mfp_layout_problem(layout);
    if (!problem.empty())
        fail(table.place(), "reduce.layout", problem, "a layout that can be (docs/reference/reduce/mfp.md)");
    return layout;
}

/// Unlike other lists of numbers it may have one several times.
std::vector<std::uint32_t> read_versions(TableReader& table) {
    constexpr std::string_view accepted = "the version of each source's content, 0..65535, in source order";
    std::vector<std::uint32_t> versions;
    const toml::node* node = table.get("versions");
    if (node == nullptr) return versions;
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty()) table.wrong("versions", describe(*node), accepted);
    for (const toml::node& element : *array) {
        const auto* version = element.as_integer();
        if (version == nullptr || version->get() < 0 || version->get() > 65535)
            table.wrong("versions", describe(element), accepted);
        versions.push_back(static_cast<std::uint32_t>(version->get()));
    }
    return versions;
}

ReduceOptions read(TableReader& table) {
    MfpOptions options;
    if (const toml::node* layout = table.get("layout")) {
        if (layout->is_table()) {
            auto reader = table.table("layout");
            options.layout = read_layout(*reader);
        } else if (!layout->is_string() || !reduce::mfp_layout(layout->as_string()->get())) {
            table.wrong("layout", describe(*layout), layout_accepted);
        }
    }
    options.order = table.choice("output", order_names).value_or(options.order);
    options.source_ids = table.integers("source_ids", {0, 65535}, "the number of each source, in source order");
    options.version = static_cast<std::uint16_t>(small(table, "version", {0, 65535}, options.version));
    options.versions = read_versions(table);
    if (!options.versions.empty()) table.refuse("version", "nothing: versions says it of each source");
    options.fragments_max = small(table, "fragments_max", {1, 65535}, options.fragments_max);
    return options;
}

std::string place_text(const MfpField& field, std::string_view more = "") {
    return fmt::format("{{ offset = {}, bytes = {}{} }}", field.offset, field.bytes, more);
}

std::string layout_text(const MfpLayout& layout) {
    if (layout == MfpLayout{}) return in_quotes(built_in);
    std::string text = fmt::format(
        "{{ byte_order = \"{}\", header_bytes = {}, first_event = {}, fragments = {}, length = {}",
        layout.big_endian ? "big" : "little", layout.header_bytes, place_text(layout.first_event),
        place_text(layout.fragments),
        layout.length.bytes == 0 ? std::string("false")
                                 : place_text(layout.length, layout.length_is_of_message ? ", of = \"message\"" : ""));
    if (layout.magic.bytes > 0)
        text += fmt::format(", magic = {}", place_text(layout.magic, fmt::format(", value = {}", layout.magic_value)));
    text += fmt::format(", type_bytes = {}, size_bytes = {}, table_align = {}, fragment_align = {}", layout.type_bytes,
                        layout.size_bytes, layout.table_align, layout.fragment_align);
    if (layout.size_in_fragment.bytes > 0)
        text += fmt::format(", size_in_fragment = {}",
                            place_text(layout.size_in_fragment, fmt::format(", adds = {}", layout.size_adds)));
    return text + " }";
}

void print(Printer& out, const ReduceOptions& from) {
    const auto& options = std::get<MfpOptions>(from);
    const MfpOptions defaults;
    out.line("layout", layout_text(options.layout), options.layout == defaults.layout);
    out.choice("output", order_names, options.order, defaults.order);
    if (options.source_ids.empty())
        out.comment("source_ids: 0, 1, 2, ... (default)");
    else
        out.line("source_ids", fmt::format("[{}]", fmt::join(options.source_ids, ", ")));
    if (options.versions.empty())
        out.number("version", options.version, defaults.version);
    else
        out.line("versions", fmt::format("[{}]", fmt::join(options.versions, ", ")));
    out.number("fragments_max", options.fragments_max, defaults.fragments_max);
}

nlohmann::json json(const ReduceOptions& from) {
    const auto& options = std::get<MfpOptions>(from);
    return {{"layout", options.layout == MfpLayout{} ? std::string(built_in) : layout_text(options.layout)},
            {"output", name_of(order_names, options.order)},
            {"source_ids", options.source_ids},
            {"version", options.version},
            {"versions", options.versions},
            {"fragments_max", options.fragments_max}};
}

}  // namespace

const ReducerEntry mfp_entry{"mfp", set_of(ReduceData::bytes), ReduceData::mep, {}, keys, read, print, json};

}  // namespace weir::pipeline::detail

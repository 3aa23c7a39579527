// [[reduce]] kind = "mfp": multi-fragment packets. docs/reference/reduce/mfp.md.
#include <fmt/format.h>

#include "config/files.hpp"
#include "config/reducers/entry.hpp"
#include "config/reducers/mfp.hpp"

namespace weir::config::detail {

namespace {

using reduce::MepOrder;
using reduce::MfpField;
using reduce::MfpLayout;

constexpr std::array order_names{Named{"mep", MepOrder::sources}, Named{"events", MepOrder::events}};
constexpr std::string_view built_in = "lhcb-2019";
constexpr std::string_view layout_accepted = "\"lhcb-2019\", or a table that describes the header ([reduce.layout])";

/// A field of the header, and what may stand beside it.
struct LayoutField {
    MfpField field;
    std::uint64_t value = 0;     ///< magic
    std::uint32_t adds = 0;      ///< size_in_fragment
    bool is_of_message = false;  ///< length
};

constexpr std::array of_names{Named{"fragments", false}, Named{"message", true}};

/// With the keys of `more`, which are described here for all fields.
OptionTable<LayoutField> layout_field(std::string_view more) {
    const auto of = [](auto member) {
        return [member](auto& from) -> auto& {
            return from.field.*member;
        };
    };
    OptionTable<LayoutField> out;
    out.integer("offset", {0, reduce::mfp_header_bytes_max}, of(&MfpField::offset), "where the field begins, in bytes")
        .required("where the field begins, in bytes");
    out.integer("bytes", {1, 8}, of(&MfpField::bytes), "1, 2, 4 or 8").required("1, 2, 4 or 8");
    if (more == "value")
        out.integer("value", {0, ~std::uint64_t{0}}, &LayoutField::value, "what stands there")
            .required("what stands there");
    if (more == "adds") out.integer("adds", {0, 65535}, &LayoutField::adds, "bytes that the size has too few");
    if (more == "of") out.choice("of", of_names, &LayoutField::is_of_message, "what the length is of");
    return out;
}

void read_length(TableReader& table, MfpLayout& layout) {
    const toml::node* node = table.get("length");
    if (const auto* flag = node->as_boolean(); flag != nullptr && !flag->get()) {
        layout.length = {};
        return;
    }
    const LayoutField length = layout_field("of").read(*table.table("length"));
    layout.length = length.field;
    layout.length_is_of_message = length.is_of_message;
}

constexpr std::array byte_orders{Named{"little", false}, Named{"big", true}};

OptionTable<MfpLayout> layout_options() {
    using L = MfpLayout;
    OptionTable<L> out;
    const auto field = [&out](const char* key, const char* more, auto get, auto set, const char* meaning) {
        out.add(key, "field", meaning)
            .reads([key, more, set](TableReader& table, L& into) {
                set(into, layout_field(more).read(*table.table(key)));
            })
            .shows([more, get](const L& from) {
                const LayoutField value = get(from);
                return value.field.bytes == 0 ? nlohmann::json() : layout_field(more).brief(value);
            })
            .written([more](const nlohmann::json& value) { return layout_field(more).inline_text(value); });
    };
    out.choice("byte_order", byte_orders, &L::big_endian, "of all fields");
    out.integer("header_bytes", {1, reduce::mfp_header_bytes_max}, &L::header_bytes, "before the tables");
    field(
        "first_event", "", [](const L& from) { return LayoutField{from.first_event}; },
        [](L& into, const LayoutField& read) { into.first_event = read.field; }, "number of the first event");
    field(
        "fragments", "", [](const L& from) { return LayoutField{from.fragments}; },
        [](L& into, const LayoutField& read) { into.fragments = read.field; }, "how many fragments there are");
    out.add("length", "field, or false", "a length is checked unless it says false: most layouts have one")
        .reads(read_length)
        .shows([](const L& from) {
            if (from.length.bytes == 0) return nlohmann::json(false);
            return layout_field("of").brief({from.length, 0, 0, from.length_is_of_message});
        })
        .written([](const nlohmann::json& value) {
            return value.is_boolean() ? std::string("false") : layout_field("of").inline_text(value);
        });
    field(
        "magic", "value",
        [](const L& from) {
            return LayoutField{from.magic, from.magic_value};
        },
        [](L& into, const LayoutField& read) {
            into.magic = read.field;
            into.magic_value = read.value;
        },
        "a number that always stands there");
    out.integer("type_bytes", {0, 1}, &L::type_bytes, "of an entry in the table of types");
    out.integer("size_bytes", {0, 4}, &L::size_bytes, "of an entry in the table of sizes");
    out.integer("table_align", {1, 4096}, &L::table_align, "where a table begins");
    out.integer("fragment_align", {1, 4096}, &L::fragment_align, "where a fragment begins");
    field(
        "size_in_fragment", "adds",
        [](const L& from) {
            return LayoutField{from.size_in_fragment, 0, from.size_adds};
        },
        [](L& into, const LayoutField& read) {
            into.size_in_fragment = read.field;
            into.size_adds = read.adds;
        },
        "where a fragment says its own size");
    return out;
}

void read_layout(TableReader& table, MfpOptions& options) {
    const toml::node* layout = table.get("layout");
    if (!layout->is_table()) {
        if (!layout->is_string() || !reduce::mfp_layout(layout->as_string()->get()))
            table.wrong("layout", describe(*layout), layout_accepted);
        return;
    }
    auto reader = table.table("layout");
    options.layout = layout_options().read(*reader);
    const std::string problem = reduce::mfp_layout_problem(options.layout);
    if (!problem.empty())
        fail(reader->place(), "reduce.layout", problem, "a layout that can be (docs/reference/reduce/mfp.md)");
}

/// Unlike other lists of numbers it may have one several times.
std::vector<std::uint32_t> read_versions(TableReader& table) {
    constexpr std::string_view accepted = "the version of each source's content, 0..65535, in source order";
    std::vector<std::uint32_t> versions;
    const toml::node* node = table.get("versions");
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

}  // namespace

OptionTable<MfpOptions> mfp_options() {
    using M = MfpOptions;
    OptionTable<M> out;
    out.add("layout", "`\"lhcb-2019\"`, or table",
            "of the packets that come in: a name, or a table of your own ([mfp.md](reduce/mfp.md))")
        .reads(read_layout)
        .shows([](const M& from) {
            return from.layout == MfpLayout{} ? nlohmann::json(built_in) : layout_options().report(from.layout);
        })
        .written([](const nlohmann::json& value) {
            return value.is_string() ? toml_text(value) : layout_options().inline_text(value);
        });
    out.choice("output", order_names, &M::order,
               "`\"mep\"`: source by source, as LHCb's event builder of late 2019. `\"events\"`: event by event, "
               "so that one event lies in one place");
    out.integers("source_ids", {0, 65535}, "the number of each source, in source order", &M::source_ids,
                 "what the sources are called in the packets, 16 bits each, in source order")
        .unset("0, 1, 2, ...");
    out.add("versions", "integers, 0..65535",
            "where sources differ: one for each, in source order, instead of `version`")
        .reads([](TableReader& table, M& into) { into.versions = read_versions(table); })
        .shows([](const M& from) { return value_of(from.versions); })
        .usually("`version` for all");
    out.integer("version", {0, 65535}, &M::version, "of the packets' content")
        .refused_where([](const M& from) -> std::string {
            return from.versions.empty() ? "" : "nothing: versions says it of each source";
        });
    out.integer("fragments_max", {1, 65535}, &M::fragments_max,
                "the largest packing factor. Memory: 15 bytes for each source and fragment, for each work lcore");
    return out;
}

ReducerEntry mfp_reducer() {
    return {.kind = kind_of("mfp", mfp_options()), .takes = set_of(ReduceData::bytes), .gives = ReduceData::mep};
}

}  // namespace weir::config::detail

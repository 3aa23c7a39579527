// [[format]]: a declared format. What is checked here is checked with the line in hand; wire makes the decoder of it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "config/field.hpp"
#include "config/parts.hpp"

namespace weir::config::detail {

namespace {

using wire::DeclaredSpec;

void check_name(TableReader& table, const DeclaredSpec& spec) {
    if (wire::find_format(spec.name) != nullptr)
        table.wrong("name", in_quotes(spec.name), "a name that is not one of the built-in formats");
}

/// A key that has a field of the header.
Option<DeclaredSpec> add_field(OptionTable<DeclaredSpec>& out, const char* key,
                               std::optional<wire::DeclaredField> DeclaredSpec::*member, std::string_view meaning) {
    return out.add(key, "field", meaning)
        .reads([key, member](TableReader& table, DeclaredSpec& spec) {
            spec.*member = read_field(*table.table(key), spec.header_bytes).field;
        })
        .shows([member](const DeclaredSpec& spec) {
            return spec.*member ? field_json({*(spec.*member), {}, {}}) : nlohmann::json();
        })
        .written(field_text);
}

void add_event(OptionTable<DeclaredSpec>& out) {
    add_field(
        out, "event", &DeclaredSpec::event,
        "the event number. May also have `wrap_bits`: the width of the counter, if it is narrower than the field. "
        "Two fields, [{...}, {..., count = N}], are a number of two parts: seconds, and which of N in each")
        .required("where the event number is: event = { offset = 0, bytes = 8 }")
        .kind("field, or two")
        .reads([](TableReader& table, DeclaredSpec& spec) {
            const toml::array* both = table.get("event")->as_array();
            if (both == nullptr || !both->is_homogeneous(toml::node_type::table)) {
                const WrittenField read = read_field(*table.table("event"), spec.header_bytes, FieldExtra::wrap_bits);
                spec.event = read.field;
                spec.wrap_bits = read.wrap_bits;
                return;
            }
            std::vector<TableReader> fields = table.tables("event");
            if (fields.size() != 2) table.wrong("event", fmt::format("{} fields", fields.size()), "one field, or two");
            spec.event = read_field(fields.front(), spec.header_bytes).field;
            const WrittenField second = read_field(fields.back(), spec.header_bytes, FieldExtra::count);
            spec.event_part = second.field;
            spec.event_count = *second.count;
        })
        .shows([](const DeclaredSpec& spec) {
            if (!spec.event) return nlohmann::json();
            nlohmann::json first = field_json({*spec.event, {}, spec.wrap_bits});
            if (!spec.event_part) return first;
            return nlohmann::json::array({first, field_json({*spec.event_part, {}, {}, spec.event_count})});
        })
        .written([](const nlohmann::json& value) {
            return value.is_array() ? fmt::format("[{}, {}]", field_text(value[0]), field_text(value[1]))
                                    : field_text(value);
        });
}

void add_magic(OptionTable<DeclaredSpec>& out) {
    add_field(out, "magic", &DeclaredSpec::magic, "a packet in which the field has another value is malformed")
        .kind("field with `value`")
        .reads([](TableReader& table, DeclaredSpec& spec) {
            const WrittenField read = read_field(*table.table("magic"), spec.header_bytes, FieldExtra::own_value);
            spec.magic = read.field;
            spec.magic_value = *read.value;
        })
        .shows([](const DeclaredSpec& spec) {
            return spec.magic ? field_json({*spec.magic, spec.magic_value, {}}) : nlohmann::json();
        });
}

/// A field of the header, or a number of bytes that all messages have.
void read_total(TableReader& format, DeclaredSpec& spec) {
    const toml::node* node = format.get("total");
    if (node->is_table())
        spec.total = read_field(*format.table("total"), spec.header_bytes).field;
    else if (node->is_integer() || node->is_string())
        spec.total_bytes = static_cast<std::uint32_t>(*format.size("total", {1, message_bytes_limit}));
    else
        format.wrong("total", describe(*node), "a field, total = { offset = 8, bytes = 4 }, or a number of bytes");
}

/// Where a packet's payload belongs, and how much there is in all.
void check_message_place(TableReader& format, const DeclaredSpec& spec) {
    if (spec.index && spec.offset) format.wrong("offset", "both index and offset", "one of them");
    const bool total = spec.total || spec.total_bytes;
    if (spec.packets && total) format.wrong("total", "both packets and total", "one of them");
    if (spec.index && !spec.payload_bytes)
        format.missing("payload_bytes", "the payload of a full packet: a packet's place is index * payload_bytes");
    if (spec.packets && !spec.payload_bytes)
        format.missing("payload_bytes", "the payload of a full packet: a message has packets * payload_bytes");
    const bool placed = spec.index || spec.offset;
    if (placed && !spec.packets && !total)
        format.missing("packets", "the packets of a message, or total: its bytes, as a number or a field {...}");
    if (!placed && spec.packets.value_or(1) != 1)
        format.wrong("packets", "messages of several packets without index or offset",
                     "index = {...} or offset = {...}, which says where a packet belongs");
    const std::uint64_t bytes = std::uint64_t{spec.packets.value_or(0)} * spec.payload_bytes.value_or(0);
    if (bytes > message_bytes_limit)
        format.wrong("packets", fmt::format("messages of {} bytes", bytes), "messages of less than 4GiB");
}

}  // namespace

OptionTable<DeclaredSpec> format_table_options() {
    OptionTable<DeclaredSpec> out;
    out.name("name", &DeclaredSpec::name, "what `stream.format` calls it; not the name of a built-in format")
        .required("a name for [[stream]] to refer to")
        .check(check_name);
    out.choice("byte_order", byte_order_names, &DeclaredSpec::byte_order, "of all its fields");
    out.size("header_bytes", {1, header_bytes_max}, &DeclaredSpec::header_bytes, "in front of the payload; stripped")
        .kind("1..1024")
        .required("the bytes of each packet before its payload")
        .written(toml_text);
    add_event(out);
    add_field(out, "index", &DeclaredSpec::index,
              "the packet's number within the message: its payload belongs at index * `payload_bytes`");
    add_field(out, "offset", &DeclaredSpec::offset,
              "or: where the payload belongs, in bytes. With neither, each packet is a whole message");
    out.size("payload_bytes", {1, 65507}, &DeclaredSpec::payload_bytes,
             "payload of a full packet; required with `index` or `packets`")
        .written(toml_text);
    out.integer("packets", {1, message_bytes_limit}, &DeclaredSpec::packets,
                "packets of a message: it has packets * `payload_bytes`");
    out.add("total", "size or field",
            "or: the bytes of the message, always the same or in the header. With `index` or `offset`, "
            "one of the two is required")
        .reads(read_total)
        .shows([](const DeclaredSpec& spec) {
            if (spec.total) return field_json({*spec.total, {}, {}});
            return value_of(spec.total_bytes);
        })
        .written([](const nlohmann::json& value) { return value.is_object() ? field_text(value) : toml_text(value); })
        .check(check_message_place)
        .check_unset(check_message_place);
    add_magic(out);
    add_field(out, "source", &DeclaredSpec::source, "the source id, for `source_by = \"header\"`");
    add_field(out, "sequence", &DeclaredSpec::sequence,
              "counts the packets of a source, by one, through all its messages: what is missing is exact by it");
    return out;
}

namespace {

/// The decoder's own opinion, with the line in front.
void check_decoder(TableReader& table, const wire::DeclaredSpec& spec) {
    wire::FormatOptions options;
    options.message_bytes_max = static_cast<std::uint32_t>(message_bytes_limit);
    options.declared = spec;
    try {
        wire::described_format().make_context(options);
    } catch (const core::UsageError& error) {
        throw core::UsageError(fmt::format("{}:{}: {}", table.file(), table.place().line, error.what()));
    }
}

/// The [[format]] tables of one file, after those that there are already.
void append_formats(TableReader& root, std::vector<wire::DeclaredSpec>& out) {
    for (TableReader& table : root.tables("format")) {
        wire::DeclaredSpec spec = format_table_options().read(table);
        for (const wire::DeclaredSpec& other : out)
            if (other.name == spec.name)
                table.wrong("name", fmt::format("{} twice", in_quotes(spec.name)),
                            "a name of its own for each format, those of included files too");
        check_decoder(table, spec);
        out.push_back(std::move(spec));
    }
}

/// A file that the configuration includes: formats and nothing else, so that it means the same wherever it is used.
void append_included(TableReader& root, const std::string& name, std::vector<wire::DeclaredSpec>& out) {
    const std::filesystem::path path = std::filesystem::path(root.file()).parent_path() / name;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        root.wrong("include", fmt::format("{} ({} is not a file)", in_quotes(name), path.string()),
                   "files with [[format]] tables; a path is relative to the configuration's folder");
    const std::string file_name = path.string();
    const toml::table document = parse_toml(read_text(path), file_name);
    TableReader included(document, "", file_name);
    included.allow({"format"});
    append_formats(included, out);
}

}  // namespace

std::vector<wire::DeclaredSpec> read_formats(TableReader& root) {
    std::vector<wire::DeclaredSpec> out;
    for (const std::string& name : root.texts("include", "a file with [[format]] tables"))
        append_included(root, name, out);
    append_formats(root, out);
    return out;
}

}  // namespace weir::config::detail

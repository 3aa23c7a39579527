// [[format]]: a declared format. What is checked here is checked with the line in hand; wire makes the decoder of it.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>

#include "config/parts.hpp"

namespace weir::pipeline::detail {

namespace {

constexpr std::uint32_t header_bytes_max = 1024;

std::uint64_t width_mask(std::uint32_t bytes) {
    return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * bytes) - 1;
}

std::uint64_t value_mask(const wire::DeclaredField& field) {
    return (field.mask.value_or(width_mask(field.bytes)) & width_mask(field.bytes)) >> field.shift;
}

}  // namespace

wire::DeclaredField read_field(TableReader& table, std::uint32_t header_bytes,
                               std::initializer_list<std::string_view> more) {
    std::vector<std::string_view> keys{"offset", "bytes", "mask", "shift"};
    keys.insert(keys.end(), more);
    table.allow(keys);
    wire::DeclaredField field;
    const auto offset = table.integer("offset", {0, header_bytes_max - 1});
    if (!offset) table.missing("offset", "the field's first byte, counted from the start of the header");
    const auto bytes = table.integer("bytes", {1, 8});
    if (!bytes) table.missing("bytes", "the field's width, 1..8 bytes");
    field.offset = static_cast<std::uint32_t>(*offset);
    field.bytes = static_cast<std::uint32_t>(*bytes);
    if (field.offset + field.bytes > header_bytes)
        table.wrong("offset", fmt::format("bytes {}..{}", field.offset, field.offset + field.bytes - 1),
                    fmt::format("a field inside the {} bytes of header_bytes", header_bytes));
    // TOML integers are signed: a mask with the top bit set is written as a negative number, or left out.
    if (const auto mask = table.signed_integer("mask")) {
        const auto value = static_cast<std::uint64_t>(*mask);
        if (value == 0 || (value & ~width_mask(field.bytes)) != 0)
            table.wrong("mask", fmt::format("{:#x}", value),
                        fmt::format("1..{:#x}, the bits of {} bytes", width_mask(field.bytes), field.bytes));
        field.mask = value;
    }
    field.shift = static_cast<std::uint32_t>(table.integer("shift", {0, 8 * *bytes - 1}).value_or(0));
    if (value_mask(field) == 0)
        table.wrong("shift", fmt::format("{}, which leaves no bit of the field", field.shift),
                    "less than the width of the field or its mask");
    return field;
}

namespace {

std::optional<wire::DeclaredField> read_optional_field(TableReader& format, std::string_view key,
                                                       std::uint32_t header_bytes) {
    auto table = format.table(key);
    if (!table) return std::nullopt;
    const wire::DeclaredField field = read_field(*table, header_bytes);
    table->finish();
    return field;
}

void read_event(TableReader& format, wire::DeclaredSpec& spec) {
    auto table = format.table("event");
    if (!table) format.missing("event", "where the event number is: event = { offset = 0, bytes = 8 }");
    spec.event = read_field(*table, spec.header_bytes, {"wrap_bits"});
    const auto width = static_cast<std::uint32_t>(std::bit_width(value_mask(*spec.event)));
    if (const auto bits = table->integer("wrap_bits", {1, width})) spec.wrap_bits = static_cast<std::uint32_t>(*bits);
    table->finish();
}

void read_magic(TableReader& format, wire::DeclaredSpec& spec) {
    auto table = format.table("magic");
    if (!table) return;
    spec.magic = read_field(*table, spec.header_bytes, {"value"});
    const auto value = table->signed_integer("value");
    if (!value) table->missing("value", "the number that the field always has");
    spec.magic_value = static_cast<std::uint64_t>(*value);
    if ((spec.magic_value & ~value_mask(*spec.magic)) != 0)
        table->wrong("value", fmt::format("{:#x}", spec.magic_value),
                     fmt::format("0..{:#x}, what the field can hold", value_mask(*spec.magic)));
    table->finish();
}

/// A field of the header, or a number of bytes that all messages have.
void read_total(TableReader& format, wire::DeclaredSpec& spec) {
    const toml::node* node = format.get("total");
    if (node == nullptr) return;
    if (node->is_table()) {
        spec.total = read_optional_field(format, "total", spec.header_bytes);
    } else if (node->is_integer() || node->is_string()) {
        spec.total_bytes = static_cast<std::uint32_t>(*format.size("total", {1, message_bytes_limit}));
    } else {
        format.wrong("total", describe(*node), "a field, total = { offset = 8, bytes = 4 }, or a number of bytes");
    }
}

/// Where a packet's payload belongs, and how much there is in all.
void read_place(TableReader& format, wire::DeclaredSpec& spec) {
    spec.index = read_optional_field(format, "index", spec.header_bytes);
    spec.offset = read_optional_field(format, "offset", spec.header_bytes);
    if (spec.index && spec.offset) format.wrong("offset", "both index and offset", "one of them");
    if (const auto bytes = format.size("payload_bytes", {1, 65507}))
        spec.payload_bytes = static_cast<std::uint32_t>(*bytes);
    if (const auto packets = format.integer("packets", {1, message_bytes_limit}))
        spec.packets = static_cast<std::uint32_t>(*packets);
    read_total(format, spec);
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

wire::DeclaredSpec read_format(TableReader& table) {
    table.allow({"name", "byte_order", "header_bytes", "event", "index", "offset", "payload_bytes", "packets", "total",
                 "magic", "source"});
    wire::DeclaredSpec spec;
    const auto name = table.name("name");
    if (!name) table.missing("name", "a name for [[stream]] to refer to");
    spec.name = *name;
    const bool taken = spec.name == "declared" ||
                       std::find(built_in_formats.begin(), built_in_formats.end(), spec.name) != built_in_formats.end();
    if (taken) table.wrong("name", in_quotes(spec.name), "a name that is not one of the built-in formats");
    spec.byte_order = table.choice("byte_order", byte_order_names).value_or(spec.byte_order);
    const auto header_bytes = table.size("header_bytes", {1, header_bytes_max});
    if (!header_bytes) table.missing("header_bytes", "the bytes of each packet before its payload");
    spec.header_bytes = static_cast<std::uint32_t>(*header_bytes);
    read_event(table, spec);
    read_place(table, spec);
    read_magic(table, spec);
    spec.source = read_optional_field(table, "source", spec.header_bytes);
    table.finish();
    return spec;
}

/// The decoder's own opinion, with the line in front.
void check_decoder(TableReader& table, const wire::DeclaredSpec& spec) {
    wire::FormatOptions options;
    options.message_bytes_max = static_cast<std::uint32_t>(message_bytes_limit);
    options.declared = spec;
    try {
        wire::find_format("declared")->make_context(options);
    } catch (const core::UsageError& error) {
        throw core::UsageError(fmt::format("{}:{}: {}", table.file(), table.place().line, error.what()));
    }
}

/// The [[format]] tables of one file, after those that there are already.
void append_formats(TableReader& root, std::vector<wire::DeclaredSpec>& out) {
    for (TableReader& table : root.tables("format")) {
        wire::DeclaredSpec spec = read_format(table);
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

}  // namespace weir::pipeline::detail

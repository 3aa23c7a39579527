#include "config/run_config.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <tuple>

#include "config/parts.hpp"

namespace weir::pipeline {

using namespace detail;

namespace detail {

std::string read_text(const std::filesystem::path& file) {
    constexpr std::size_t file_bytes_max = 16U << 20;
    std::error_code error;
    if (std::filesystem::is_directory(file, error))
        throw core::UsageError(fmt::format("{}: found a directory; accepted: a TOML file", file.string()));
    std::ifstream in(file, std::ios::binary);
    if (!in)
        throw core::UsageError(fmt::format("{}: cannot be read; accepted: a TOML file that exists", file.string()));
    std::string text;
    std::array<char, 65536> chunk;
    while (in.read(chunk.data(), chunk.size()) || in.gcount() > 0) {
        text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
        if (text.size() > file_bytes_max)
            throw core::UsageError(fmt::format("{}: longer than {}; accepted: a TOML file of a sensible size",
                                               file.string(), format_size(file_bytes_max)));
    }
    return text;
}

toml::table parse_toml(std::string_view text, std::string_view file_name) {
    try {
        return toml::parse(text, file_name);
    } catch (const toml::parse_error& error) {
        const auto begin = error.source().begin;
        throw core::UsageError(fmt::format("{}:{}: not valid TOML (column {}): {}", file_name, begin.line, begin.column,
                                           error.description()));
    }
}

std::string overload_text(const EventsConfig& events) {
    if (events.overload == OverloadMode::prescale) return fmt::format("prescale:{}", events.prescale);
    return std::string(name_of(overload_names, events.overload));
}

namespace {

void read_overload(TableReader& table, EventsConfig& events) {
    constexpr std::uint32_t prescale_max = 1'000'000'000;
    constexpr std::string_view prefix = "prescale:";
    const auto text = table.text("overload");
    if (!text) return;
    if (text->starts_with(prefix)) {
        std::uint32_t every = 0;
        const char* const end = text->data() + text->size();
        const auto [read, error] = std::from_chars(text->data() + prefix.size(), end, every);
        if (error == std::errc() && read == end && every >= 2 && every <= prescale_max) {
            events.overload = OverloadMode::prescale;
            events.prescale = every;
            return;
        }
    }
    const auto* const named = std::ranges::find(overload_names, *text, &Named<OverloadMode>::name);
    if (named == overload_names.end())
        table.wrong("overload", fmt::format("the string {}", in_quotes(*text)),
                    fmt::format("\"evict-oldest\", \"refuse-new\", \"prescale:N\" with N from 2 to {}, or \"wait\"",
                                prescale_max));
    events.overload = named->value;
}

void read_stride(TableReader& table, EventsConfig& events) {
    constexpr Bounds stride{1, std::uint64_t{1} << 40U};
    const toml::node* const node = table.get("stride");
    if (node == nullptr) return;
    if (!node->is_string()) {
        events.stride = table.integer("stride", stride);
        return;
    }
    const std::string text = table.text("stride").value_or("");
    if (text == "sparse")
        events.stride = EventsConfig::stride_sparse;
    else if (text != "learn")
        table.wrong("stride", fmt::format("the string {}", in_quotes(text)),
                    fmt::format("an integer from 1 to {}, \"learn\" or \"sparse\"", stride.max));
}

}  // namespace

EventsConfig read_events(TableReader& root) {
    constexpr Bounds memory{1U << 20, std::uint64_t{1} << 44};
    constexpr std::uint32_t day_ms = 86'400'000;
    EventsConfig events;
    auto table = root.table("events");
    if (!table) root.missing("events.sources", "[events] with sources = the number of sources that make an event");
    table->allow({"sources", "memory", "window", "timeout_ms", "ip_fragment_timeout_ms", "incomplete", "assembly",
                  "overload", "horizon", "stride"});
    const auto sources = table->integer("sources", {1, sources_max});
    if (!sources) table->missing("sources", "the number of sources that make an event complete");
    events.sources = static_cast<std::uint32_t>(*sources);
    events.memory_bytes = table->size("memory", memory).value_or(events.memory_bytes);
    if (const auto window = table->integer("window", {1, 1U << 20}))
        events.window = static_cast<std::uint32_t>(*window);
    events.timeout_ms =
        static_cast<std::uint32_t>(table->integer("timeout_ms", {1, day_ms}).value_or(events.timeout_ms));
    // Far below the time in which a source uses up its 65536 identifications: 44 ms at 1.5 million datagrams a second.
    constexpr std::uint32_t fragment_timeout_max_ms = 60'000;
    events.ip_fragment_timeout_ms = static_cast<std::uint32_t>(
        table->integer("ip_fragment_timeout_ms", {1, fragment_timeout_max_ms}).value_or(events.ip_fragment_timeout_ms));
    events.incomplete = table->choice("incomplete", incomplete_names).value_or(events.incomplete);
    events.assembly = table->choice("assembly", assembly_names).value_or(events.assembly);
    read_overload(*table, events);
    events.horizon = static_cast<std::uint32_t>(table->integer("horizon", {1, 1U << 20}).value_or(events.horizon));
    read_stride(*table, events);
    table->finish();
    return events;
}

LcoresConfig read_lcores(TableReader& root) {
    constexpr Bounds cpus{0, 1023};
    LcoresConfig lcores;
    auto table = root.table("lcores");
    if (!table) return lcores;
    table->allow({"rx", "build", "work", "idle"});
    lcores.rx = table->integers("rx", cpus, "CPU number");
    lcores.build = table->integers("build", cpus, "CPU number");
    lcores.work = table->integers("work", cpus, "CPU number");
    lcores.idle = table->choice("idle", idle_names).value_or(lcores.idle);
    table->finish();
    return lcores;
}

}  // namespace detail

std::optional<IpAddress> parse_ip_address(std::string_view text) {
    IpAddress address;
    address.text = text;
    if (text.find('\0') != std::string_view::npos) return std::nullopt;
    if (inet_pton(AF_INET, address.text.c_str(), address.bytes.data()) == 1) return address;
    address.bytes.fill(0);
    address.v6 = true;
    if (inet_pton(AF_INET6, address.text.c_str(), address.bytes.data()) == 1) return address;
    return std::nullopt;
}

RunConfig parse_config(std::string_view text, std::string_view file_name) {
    const toml::table document = parse_toml(text, file_name);
    TableReader root(document, "", file_name);
    root.allow({"name", "include", "port", "stream", "events", "reduce", "sink", "lcores", "format"});
    RunConfig run;
    run.name = root.name("name").value_or(run.name);
    run.ports = read_ports(root);
    run.formats = read_formats(root);
    run.events = read_events(root);
    run.reduce = read_reducers(root);
    run.sinks = read_sinks(root);
    run.lcores = read_lcores(root);
    read_streams(root, run);
    check_recorders(run);
    check_reducers(run);
    warn_of_codecs(run);
    return run;
}

RunConfig load_config(const std::filesystem::path& file) {
    return parse_config(read_text(file), file.string());
}

std::vector<wire::DeclaredSpec> load_formats(const std::filesystem::path& file) {
    const std::string name = file.string();
    const toml::table document = parse_toml(read_text(file), name);
    TableReader root(document, "", name);
    return read_formats(root);
}

wire::FormatOptions format_options(const RunConfig& run, const StreamConfig& stream) {
    wire::FormatOptions options;
    options.interfaces = static_cast<int>(stream.interfaces);
    options.message_bytes_max = stream.max_message_bytes;
    options.sls = {.rows = stream.rows,
                   .bit_depth = stream.bit_depth,
                   .tengiga = stream.tengiga,
                   .lane_by = stream.source_by == SourceBy::port ? wire::LaneBy::datagram : wire::LaneBy::row,
                   // Both interfaces of a module send the same module id.
                   .interfaces_joined = stream.source_by == SourceBy::header};
    options.spead = stream.spead;
    for (const wire::DeclaredSpec& spec : run.formats)
        if (spec.name == stream.format) options.declared = spec;
    return options;
}

const wire::FormatEntry& format_entry(const StreamConfig& stream) {
    const bool built_in =
        std::find(built_in_formats.begin(), built_in_formats.end(), stream.format) != built_in_formats.end();
    const wire::FormatEntry* entry = wire::find_format(built_in ? std::string_view(stream.format) : "declared");
    if (entry == nullptr) throw core::UsageError("the format " + in_quotes(stream.format) + " is not in this build");
    return *entry;
}

namespace {

bool equal(const std::optional<wire::DeclaredField>& a, const std::optional<wire::DeclaredField>& b) {
    if (a.has_value() != b.has_value()) return false;
    return !a || std::tie(a->offset, a->bytes, a->mask, a->shift) == std::tie(b->offset, b->bytes, b->mask, b->shift);
}

bool equal(const wire::DeclaredSpec& a, const wire::DeclaredSpec& b) {
    return std::tie(a.name, a.byte_order, a.header_bytes, a.wrap_bits, a.payload_bytes, a.packets, a.total_bytes,
                    a.magic_value) == std::tie(b.name, b.byte_order, b.header_bytes, b.wrap_bits, b.payload_bytes,
                                               b.packets, b.total_bytes, b.magic_value) &&
           equal(a.event, b.event) && equal(a.index, b.index) && equal(a.offset, b.offset) && equal(a.total, b.total) &&
           equal(a.magic, b.magic) && equal(a.source, b.source);
}

}  // namespace

bool operator==(const RunConfig& a, const RunConfig& b) {
    return std::tie(a.name, a.ports, a.streams, a.events, a.reduce, a.sinks, a.lcores, a.sources) ==
               std::tie(b.name, b.ports, b.streams, b.events, b.reduce, b.sinks, b.lcores, b.sources) &&
           std::equal(a.formats.begin(), a.formats.end(), b.formats.begin(), b.formats.end(),
                      [](const auto& x, const auto& y) { return equal(x, y); });
}

}  // namespace weir::pipeline

#include "config/run_config.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <tuple>

#include "config/format_text.hpp"
#include "config/parts.hpp"

namespace weir::config {

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

namespace {

void read_overload(TableReader& table, EventsConfig& events) {
    constexpr std::uint32_t prescale_max = 1'000'000'000;
    constexpr std::string_view prefix = "prescale:";
    const std::string text = *table.text("overload");
    if (text.starts_with(prefix)) {
        std::uint32_t every = 0;
        const char* const end = text.data() + text.size();
        const auto [read, error] = std::from_chars(text.data() + prefix.size(), end, every);
        if (error == std::errc() && read == end && every >= 2 && every <= prescale_max) {
            events.overload = OverloadMode::prescale;
            events.prescale = every;
            return;
        }
    }
    const auto* const named = std::ranges::find(overload_names, text, &Named<OverloadMode>::name);
    if (named == overload_names.end())
        table.wrong("overload", fmt::format("the string {}", in_quotes(text)),
                    fmt::format("\"evict-oldest\", \"refuse-new\", \"prescale:N\" with N from 2 to {}, or \"wait\"",
                                prescale_max));
    events.overload = named->value;
}

void read_stride(TableReader& table, EventsConfig& events) {
    constexpr Bounds bounds{1, std::uint64_t{1} << 40U};
    if (!table.get("stride")->is_string()) {
        events.stride = table.integer("stride", bounds);
        return;
    }
    const std::string text = *table.text("stride");
    if (text == "sparse")
        events.stride = EventsConfig::stride_sparse;
    else if (text != "learn")
        table.wrong("stride", fmt::format("the string {}", in_quotes(text)),
                    fmt::format("an integer from 1 to {}, \"learn\" or \"sparse\"", bounds.max));
}

}  // namespace

OptionTable<EventsConfig> events_options() {
    constexpr std::uint32_t day_ms = 86'400'000;
    OptionTable<EventsConfig> out;
    out.integer("sources", {1, sources_max}, &EventsConfig::sources,
                "how many whole messages make an event complete, if no other message of it has begun and is not whole. "
                "An event with a message in parts waits for it until `timeout_ms` and is incomplete then")
        .kind("1..declared sources")
        .required("the number of sources that make an event complete");
    out.size("memory", {1U << 20, std::uint64_t{1} << 44}, &EventsConfig::memory_bytes,
             "for open events. The number of open events follows from it");
    out.integer("window", {1, 1U << 20}, &EventsConfig::window,
                "cap on open events, of all `build` lcores together. weir prints which of the two limits binds. "
                "With more than 1024 sources, where 8 to 63 are open by themselves, it may also ask for up to 64")
        .unset("as many open events as the memory holds")
        .usually("none");
    out.integer("timeout_ms", {1, day_ms}, &EventsConfig::timeout_ms,
                "an event closes as incomplete this long after its first packet");
    // Far below the time in which a source uses up its 65536 identifications: 44 ms at 1.5 million datagrams a second.
    out.integer(
        "ip_fragment_timeout_ms", {1, 60'000}, &EventsConfig::ip_fragment_timeout_ms,
        "a datagram that came in IP fragments is given up this long after its first fragment ([NETWORK.md](NETWORK.md))");
    out.choice("incomplete", incomplete_names, &EventsConfig::incomplete,
               "incomplete events are written with their gaps listed, or dropped and counted");
    out.choice(
        "assembly", assembly_names, &EventsConfig::assembly,
        "events refer to the packets' buffers, or copy them; auto decides by size and by what the pool has left");
    out.add("overload", "`\"evict-oldest\"`, `\"refuse-new\"`, `\"prescale:N\"` (N from 2), `\"wait\"`",
            "what is lost when there is more than weir can take, whole events only: "
            "[OVERLOAD.md](../guides/OVERLOAD.md)")
        .reads(read_overload)
        .schema({{"type", "string"}, {"pattern", "^(evict-oldest|refuse-new|wait|prescale:[0-9]+)$"}})
        .shows([](const EventsConfig& events) { return nlohmann::json(overload_text(events)); });
    out.integer("horizon", {1, 1U << 20}, &EventsConfig::horizon,
                "closed event numbers that are remembered, per source: what still comes for them is `late`")
        .unset("1024; less with more than 4096 sources")
        .usually("1024; less with more than 4096 sources");
    out.add("stride", "1..1099511627776, `\"learn\"`, `\"sparse\"`",
            "how far apart the numbers of consecutive events are. "
            "It decides which whole events are missing ([LOSSES.md](../guides/LOSSES.md#numbers)); "
            "`\"sparse\"` says that the numbers tell nothing about that")
        .reads(read_stride)
        .schema({{"anyOf", {options::integer_schema({1, std::uint64_t{1} << 40U}), {{"enum", {"learn", "sparse"}}}}}})
        .shows([](const EventsConfig& events) {
            if (!events.stride) return nlohmann::json("learn");
            return *events.stride == EventsConfig::stride_sparse ? nlohmann::json("sparse")
                                                                 : nlohmann::json(*events.stride);
        });
    return out;
}

OptionTable<RunConfig> run_options() {
    OptionTable<RunConfig> out;
    out.name("name", &RunConfig::name, "`{name}` in the path of a sink");
    return out;
}

OptionTable<LcoresConfig> lcores_options() {
    constexpr Bounds cpus{0, 1023};
    OptionTable<LcoresConfig> out;
    const auto list = [&](std::string_view key, std::vector<std::uint32_t> LcoresConfig::*member,
                          std::string_view meaning) {
        out.integers(key, cpus, "CPU number", member, meaning).unset("proposed at start").usually("proposed");
    };
    list("rx", &LcoresConfig::rx,
         "receive and assemble messages. A queue goes to the one with the fewest, "
         "of those on the NUMA node of the port's device if there are any");
    list("build", &LcoresConfig::build,
         "build events of messages: each has a part of the events, by their number; at most 16");
    list("work", &LcoresConfig::work, "reduce and format events");
    out.choice("idle", idle_names, &LcoresConfig::idle,
               "what an lcore does when there is nothing to do. `\"spin\"` reacts fastest; "
               "on a machine with few CPUs it starves everything else, and `\"sleep\"` gives the CPU away");
    return out;
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

std::string overload_text(const EventsConfig& events) {
    if (events.overload == OverloadMode::prescale) return fmt::format("prescale:{}", events.prescale);
    return std::string(name_of(overload_names, events.overload));
}

RunConfig parse_config(std::string_view text, std::string_view file_name, bool has_out) {
    toml::table document = parse_toml(text, file_name);
    if (has_out && !document.contains("sink"))
        document.insert("sink", toml::array{toml::table{{"kind", "events"}, {"path", "out"}}});
    TableReader root(document, "", file_name);
    root.allow({"name", "include", "port", "stream", "events", "reduce", "sink", "lcores", "serve", "format", "cluster",
                "node"});
    RunConfig run;
    run_options().read_values(root, run);
    read_cluster(root, run);
    run.ports = read_ports(root, run);
    run.formats = read_formats(root);
    auto events = root.table("events");
    if (!events) root.missing("events.sources", "[events] with sources = the number of sources that make an event");
    run.events = events_options().read(*events);
    run.reduce = read_reducers(root);
    run.sinks = read_sinks(root, run);
    if (auto lcores = root.table("lcores")) run.lcores = lcores_options().read(*lcores);
    if (auto serve = root.table("serve")) run.serve = serve_options().read(*serve);
    read_streams(root, run);
    check_cluster(run);
    check_sinks(run);
    check_reducers(run);
    warn_of_sinks(run);
    return run;
}

RunConfig load_config(const std::filesystem::path& file, bool has_out) {
    return parse_config(read_text(file), file.string(), has_out);
}

std::vector<wire::DeclaredSpec> load_formats(const std::filesystem::path& file) {
    return parse_formats(read_text(file), file.string());
}

std::vector<wire::DeclaredSpec> parse_formats(std::string_view text, std::string_view file_name) {
    const std::string name(file_name);
    const toml::table document = parse_toml(text, name);
    TableReader root(document, "", name);
    return read_formats(root);
}

wire::FormatOptions format_options(const RunConfig& run, const StreamConfig& stream) {
    wire::FormatOptions options = stream.own;
    options.message_bytes_max = stream.max_message_bytes;
    options.sls.lane_by = stream.source_by == SourceBy::port ? wire::LaneBy::datagram : wire::LaneBy::row;
    // Both interfaces of a module send the same module id.
    options.sls.interfaces_joined = stream.source_by == SourceBy::header;
    for (const wire::DeclaredSpec& spec : run.formats)
        if (spec.name == stream.format) options.declared = spec;
    return options;
}

const wire::FormatEntry& format_entry(const StreamConfig& stream) {
    return wire::is_built_in(stream.format) ? *wire::find_format(stream.format) : wire::described_format();
}

bool operator==(const RunConfig& a, const RunConfig& b) {
    const auto all = [](const RunConfig& of) {
        return std::tie(of.name, of.node, of.ports, of.streams, of.events, of.reduce, of.sinks, of.lcores, of.serve,
                        of.cluster, of.sources, of.formats);
    };
    return all(a) == all(b);
}

}  // namespace weir::config

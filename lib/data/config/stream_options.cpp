#include "config/stream_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/parts.hpp"

namespace weir::config::detail {

namespace {

/// The formats whose headers say the source, as a list in a sentence.
std::string formats_with_source_ids() {
    std::string text;
    for (const wire::FormatEntry& entry : wire::formats())
        if (entry.source_id)
            text += fmt::format("{}{}, ", entry.name,
                                entry.source_id->empty() ? "" : fmt::format(" ({})", *entry.source_id));
    return text;
}

void add_port(OptionTable<StreamConfig>& out, const RunConfig& run) {
    std::vector<std::string_view> names;
    for (const PortConfig& port : run.ports) names.push_back(port.name);
    out.add("port", "text", "the name of a `[[port]]`")
        .required("the name of a [[port]]: " + any_of(names))
        .reads([names](TableReader& table, StreamConfig& stream) {
            stream.port = static_cast<std::uint32_t>(*table.word("port", names));
        })
        .schema(options::name_schema())
        .shows([names](const StreamConfig& stream) {
            return stream.port < names.size() ? nlohmann::json(names[stream.port]) : nlohmann::json();
        });
}

void add_format(OptionTable<StreamConfig>& out, const RunConfig& run) {
    const std::vector<std::string_view> built_in = wire::built_in_formats();
    std::vector<std::string_view> names = built_in;
    for (const wire::DeclaredSpec& spec : run.formats) names.push_back(spec.name);
    const std::string accepted = any_of(names) + "; others are declared by a [[format]] with that name";
    out.text("format", &StreamConfig::format,
             fmt::format("what is in the payload: {} (which has no header of its own), or the name of a `[[format]]`",
                         quoted_words(built_in)))
        .required(accepted)
        .check([names, accepted](TableReader& table, const StreamConfig& stream) {
            if (std::find(names.begin(), names.end(), stream.format) != names.end()) return;
            const auto guess = nearest(stream.format, names);
            table.wrong(
                "format",
                in_quotes(stream.format) + (guess ? "; did you mean " + in_quotes(*guess) + "?" : std::string()),
                accepted);
        });
}

std::vector<IpAddress> read_addresses(TableReader& table, std::string_view key) {
    std::vector<IpAddress> out;
    for (const std::string& text : table.texts(key, "an IPv4 or IPv6 address")) {
        const auto address = parse_ip_address(text);
        if (!address) table.wrong(key, in_quotes(text), "an IPv4 or IPv6 address, as \"10.1.0.10\"");
        if (std::find(out.begin(), out.end(), *address) != out.end())
            table.wrong(key, in_quotes(text) + " twice", "each address once");
        out.push_back(*address);
    }
    return out;
}

void add_addresses(OptionTable<StreamConfig>& out, std::string_view key, std::vector<IpAddress> StreamConfig::*member,
                   std::string_view meaning) {
    out.add(key, "addresses", meaning)
        .reads([key = std::string(key), member](TableReader& table, StreamConfig& stream) {
            stream.*member = read_addresses(table, key);
        })
        .schema(options::one_or_more_schema(options::text_schema()))
        .shows([member](const StreamConfig& stream) {
            nlohmann::json texts;
            for (const IpAddress& address : stream.*member) texts.push_back(address.text);
            return texts;
        })
        .usually("any");
}

void add_udp(OptionTable<StreamConfig>& out) {
    const auto only_udp = [](const std::string& why) {
        return [why](const StreamConfig& stream) {
            return stream.transport == Transport::udp ? std::string() : "nothing: " + why;
        };
    };
    const auto not_a_source = only_udp("with transport = \"roce\" every queue pair in qp is a source");
    out.integers("udp_dst", {1, 65535}, "UDP port", &StreamConfig::udp_dst, "udp only: destination ports")
        .required("the destination UDP ports, as [50001, 50002] or \"50001-50008\"")
        .refused_where(only_udp("RoCEv2 always uses UDP port 4791; the sources are those of qp = [...]"));
    out.choice("source_by", source_by_names, &StreamConfig::source_by,
               fmt::format("udp only: what tells the sources apart. `\"header\"` needs a format with a source id: "
                           "{}or a declared one with `source`",
                           formats_with_source_ids()))
        .refused_where(not_a_source)
        .check([](TableReader& table, const StreamConfig& stream) {
            if (stream.source_by == SourceBy::address && stream.src.empty())
                table.missing("src", "the address of each source, because source_by = \"address\"");
        });
    out.choice("senders", senders_names, &StreamConfig::senders,
               "udp only: whether the packets of one message come from one IP address, so that those from another are "
               "`conflict`, or from any")
        .refused_where(not_a_source);
    out.integers("source_ids", {0, 0xffff'ffff}, "source id", &StreamConfig::source_ids,
                 "udp with `source_by = \"header\"`: the ids in source order. Left out, they count from 0, "
                 "for as many sources as `events.sources` leaves after the other streams")
        .refused_where([not_a_source](const StreamConfig& stream) -> std::string {
            if (stream.transport != Transport::udp) return not_a_source(stream);
            return stream.source_by == SourceBy::header ? "" : "nothing: it belongs to source_by = \"header\"";
        })
        .usually("0, 1, 2, ...");
}

void add_roce(OptionTable<StreamConfig>& out) {
    constexpr std::uint32_t qp_max = (1U << 24) - 1;
    out.integers("qp", {0, qp_max}, "queue pair number (24 bits)", &StreamConfig::qp,
                 "roce only: the destination queue pair of each source. "
                 "Two streams may have the same one if `src` or `dst` tell them apart")
        .kind("integers, 24 bits")
        .required("the destination queue pair of each source, as [0x11, 0x12]")
        .refused_where(not_roce)
        .written(hex_text);
    out.choice("icrc", icrc_names, &StreamConfig::icrc,
               "roce only: packets with a bad invariant CRC are malformed, or are believed")
        .refused_where(not_roce);
    add_responder_options(out);
}

void add_event(OptionTable<StreamConfig>& out) {
    out.choice("event", event_by_names, &StreamConfig::event, "where the event number comes from")
        .otherwise([](StreamConfig& stream) {
            const bool numbered = stream.transport == Transport::udp || format_entry(stream).numbers_events;
            stream.event = numbered ? EventBy::format : EventBy::immediate;
        })
        .usually("see below");
    out.size("message_bytes", {1, message_bytes_limit}, &StreamConfig::message_bytes,
             "roce with `event = \"count\"`: every message has exactly this size, which lets UC count across losses")
        .refused_where([](const StreamConfig& stream) -> std::string {
            if (stream.transport == Transport::udp) return not_roce(stream);
            return stream.event == EventBy::count ? "" : "nothing: it belongs to event = \"count\"";
        });
}

/// What is known to be sent, if messages have a size of their own.
std::uint64_t fixed_bytes(const RunConfig& run, const StreamConfig& stream) {
    const auto says = format_entry(stream).message_bytes;
    std::uint64_t fixed = std::max(stream.message_bytes.value_or(0), says != nullptr ? says(stream.own) : 0);
    for (const wire::DeclaredSpec& spec : run.formats)
        if (spec.name == stream.format)
            fixed = std::max<std::uint64_t>({fixed,
                                             std::uint64_t{spec.packets.value_or(0)} * spec.payload_bytes.value_or(0),
                                             spec.total_bytes.value_or(0)});
    return fixed;
}

/// The bound on messages that do not say their size. It has to hold what is known to be sent, and fit the memory.
void add_message_bound(OptionTable<StreamConfig>& out, const RunConfig& run) {
    const auto bound_to_memory = [&run](TableReader& table, std::string_view key, std::uint64_t bytes) {
        if (bytes > run.events.memory_bytes)
            table.wrong(key, fmt::format("messages of up to {}", format_size(bytes)),
                        fmt::format("messages that fit into events.memory = {}, or more memory",
                                    format_size(run.events.memory_bytes)));
    };
    const auto usual = [&run](const StreamConfig& stream) {
        return std::max<std::uint64_t>(fixed_bytes(run, stream),
                                       std::min<std::uint64_t>(message_bytes_default, run.events.memory_bytes));
    };
    out.size("max_message_bytes", {1, message_bytes_limit}, &StreamConfig::max_message_bytes,
             "a larger message is not believed. Must fit into `events.memory`")
        .otherwise([usual](StreamConfig& stream) {
            // What is too large for the field is refused below.
            stream.max_message_bytes = static_cast<std::uint32_t>(std::min(usual(stream), message_bytes_limit));
        })
        .usually("16MiB; the size of a message where it is fixed and larger")
        .check([&run, bound_to_memory](TableReader& table, const StreamConfig& stream) {
            if (const std::uint64_t fixed = fixed_bytes(run, stream); stream.max_message_bytes < fixed)
                table.wrong("max_message_bytes", format_size(stream.max_message_bytes),
                            fmt::format("at least the {} of a message", format_size(fixed)));
            bound_to_memory(table, "max_message_bytes", stream.max_message_bytes);
        })
        .check_unset([bound_to_memory, usual](TableReader& table, const StreamConfig& stream) {
            bound_to_memory(table, stream.message_bytes ? "message_bytes" : "format", usual(stream));
        });
}

}  // namespace

std::string not_roce(const StreamConfig& stream) {
    return stream.transport == Transport::roce
               ? ""
               : "nothing: it belongs to transport = \"roce\", and this stream has \"udp\"";
}

OptionTable<StreamConfig> stream_options(const RunConfig& run) {
    OptionTable<StreamConfig> out;
    add_port(out, run);
    add_node(out, run);
    out.choice("transport", transport_names, &StreamConfig::transport,
               "UDP datagrams; RoCEv2 SEND and WRITE on RC, UC and UD, listened to ([the rules](formats/roce.md))")
        .required("\"udp\" or \"roce\"");
    add_format(out, run);
    add_addresses(out, "src", &StreamConfig::src,
                  "only packets from these; with `source_by = \"address\"` required: source by source");
    add_addresses(out, "dst", &StreamConfig::dst, "only packets to these");
    out.integer("mark", {0, 0xffff'ffff}, &StreamConfig::mark,
                "only packets that a flow rule of the port gives this mark (`mark id N`)")
        .usually("any")
        .check([&run](TableReader& table, const StreamConfig& stream) {
            check_mark(table, run.ports[stream.port], *stream.mark);
        });
    add_udp(out);
    add_roce(out);
    add_event(out);
    add_format_keys(out);
    add_message_bound(out, run);
    return out;
}

}  // namespace weir::config::detail

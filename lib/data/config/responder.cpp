// The keys of a stream whose queue pairs weir answers: which service they give, who their peers are, and what memory a
// peer may write to.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "config/parts.hpp"
#include "config/stream_options.hpp"

namespace weir::config::detail {

namespace {

constexpr std::uint64_t qp_max = (1U << 24) - 1;
constexpr std::uint32_t perftest_qkey = 0x11111111;          // perftest_parameters.h, DEF_QKEY
constexpr std::uint64_t number_max = 0x7fff'ffff'ffff'ffff;  // TOML's integers are signed

std::string one_for_each(const StreamConfig& stream) {
    return fmt::format("{}, one for each of qp", stream.qp.size());
}

OptionTable<RoceConfig::Peer> peer_options() {
    OptionTable<RoceConfig::Peer> out;
    out.integer("qp", {0, qp_max}, &RoceConfig::Peer::qp, "the sender's queue pair, where answers go")
        .required("the sender's own queue pair number (24 bits): answers go there")
        .written(hex_text);
    out.add("address", "address", "its address")
        .reads([](TableReader& table, RoceConfig::Peer& peer) {
            const std::string text = *table.text("address");
            peer.address = parse_ip_address(text);
            if (!peer.address) table.wrong("address", in_quotes(text), "an IPv4 or IPv6 address, as \"10.1.0.10\"");
        })
        .schema(options::text_schema())
        .shows([](const RoceConfig::Peer& peer) {
            return peer.address ? nlohmann::json(peer.address->text) : nlohmann::json();
        })
        .usually("that of the first packet");
    return out;
}

void check_region(TableReader& table, const RoceConfig::Region& at) {
    const roce::Region& region = at.region;
    if (region.stride < region.bytes)
        table.wrong("stride", format_size(region.stride),
                    fmt::format("at least bytes = {}: buffers do not overlap", format_size(region.bytes)));
    if (region.va > number_max - std::uint64_t{region.count} * region.stride)
        table.wrong("va", fmt::format("{:#x}", region.va), "an address from which all of the region can be counted");
}

OptionTable<RoceConfig::Region> region_options() {
    using At = RoceConfig::Region;
    const auto of = [](auto member) {
        return [member](auto& at) -> auto& {
            return at.region.*member;
        };
    };
    OptionTable<At> out;
    out.integer("va", {0, number_max}, of(&roce::Region::va), "the address that the sender writes to")
        .required("the address that the sender writes to")
        .written(hex_text);
    out.size("bytes", {1, message_bytes_limit}, of(&roce::Region::bytes), "how many bytes may be written from va on")
        .required("how many bytes may be written from va on");
    out.integer("rkey", {0, 0xffff'ffff}, of(&roce::Region::rkey), "the R_Key that the sender uses")
        .required("the R_Key that the sender uses")
        .written(hex_text);
    out.integer("count", {1, 1U << 24}, of(&roce::Region::count), "so many buffers under one key");
    out.size("stride", {1, std::uint64_t{1} << 40}, of(&roce::Region::stride), "from one buffer to the next")
        .otherwise([](At& at) { at.region.stride = at.region.bytes; })
        .usually("`bytes`")
        .check(check_region)
        .check_unset(check_region);
    out.boolean("write", of(&roce::Region::remote_write), "whether the sender may write there");
    out.choice("backing", backing_names, of(&roce::Region::backed),
               "`\"memory\"`: frames are scattered over real memory");
    out.integer("qp", {0, qp_max}, &At::qp, "only for this queue pair of the stream").written(hex_text).usually("all");
    return out;
}

/// Whose keys they are: why a key is not of this stream, or nothing.
using Why = std::function<std::string(const StreamConfig&)>;

Why only(std::initializer_list<roce::Service> services, std::string_view where) {
    return [services = std::vector(services), where = std::string(where)](const StreamConfig& stream) {
        if (std::string why = not_roce(stream); !why.empty()) return why;
        return std::ranges::find(services, stream.roce.service) != services.end() ? std::string()
                                                                                  : "nothing: it belongs to " + where;
    };
}

Why unless_exchanged(Why first, std::string_view what) {
    return [first = std::move(first), what = std::string(what)](const StreamConfig& stream) {
        const std::string why = first(stream);
        return why.empty() && stream.exchange != Exchange::none ? "nothing: with an exchange, each program says " + what
                                                                : why;
    };
}

void check_peers(TableReader& table, const StreamConfig& stream) {
    if (stream.roce.peers.size() != stream.qp.size())
        table.wrong("peer", fmt::format("{} peers", stream.roce.peers.size()), one_for_each(stream));
}

/// One for each queue pair, and all may be the same.
void read_psns(TableReader& table, StreamConfig& stream) {
    const toml::node& node = *table.get("psn");
    const std::string accepted = one_for_each(stream) + ", of 24 bits: psn = [0x1000]";
    const auto add = [&](const toml::node& element) {
        const auto* value = element.as_integer();
        if (value == nullptr || value->get() < 0 || value->get() > static_cast<std::int64_t>(qp_max))
            table.wrong("psn", describe(element), accepted);
        stream.roce.psn.push_back(static_cast<std::uint32_t>(value->get()));
    };
    if (const auto* array = node.as_array())
        for (const toml::node& element : *array) add(element);
    else
        add(node);
    if (stream.roce.psn.size() != stream.qp.size())
        table.wrong("psn", fmt::format("{} numbers", stream.roce.psn.size()), accepted);
}

void check_regions(TableReader& table, const StreamConfig& stream) {
    const auto entries = table.one_or_more("region");
    for (std::size_t i = 0; i < entries.size(); ++i)
        if (const auto& qp = stream.roce.regions[i].qp; qp && std::ranges::find(stream.qp, *qp) == stream.qp.end())
            entries[i].wrong("qp", fmt::format("{:#x}", *qp),
                             "one of the stream's qp; without it the region is for all");
    for (const std::uint32_t qp : stream.qp) {
        const auto count = std::ranges::count_if(stream.roce.regions,
                                                 [qp](const RoceConfig::Region& at) { return !at.qp || *at.qp == qp; });
        if (count > roce::QueuePair::regions_max)
            table.wrong("region", fmt::format("{} regions for qp {:#x}", count, qp),
                        fmt::format("at most {} for a queue pair; buffers that are evenly spaced are one, "
                                    "with count and stride",
                                    roce::QueuePair::regions_max));
    }
}

/// What weir answers, and when.
void add_answers(OptionTable<StreamConfig>& out) {
    using roce::Service;
    const auto of = [](auto member) {
        return [member](auto& stream) -> auto& {
            return stream.roce.*member;
        };
    };
    const Why answered = only({Service::rc, Service::uc, Service::ud},
                              "service = \"rc\", \"uc\" or \"ud\", and this stream only listens");
    const Why acknowledged = only({Service::rc}, "service = \"rc\": nothing else is acknowledged");
    out.integer("path_mtu", {256, wire::roce_mtu_max}, of(&RoceConfig::path_mtu),
                "not with `\"listen\"`: payload of a full packet")
        .kind("256, 512, 1024, 2048, 4096")
        .refused_where(answered)
        .unset(0, "as the first message of several packets has it")
        .usually("the first message's")
        .check([](TableReader& table, const StreamConfig& stream) {
            if (!std::has_single_bit(stream.roce.path_mtu))
                table.wrong("path_mtu", std::to_string(stream.roce.path_mtu), "256, 512, 1024, 2048 or 4096");
        });
    out.integer("pkey", {0, 0xffff}, of(&RoceConfig::pkey), "not with `\"listen\"`: the partition")
        .kind("0..0xffff")
        .refused_where(answered)
        .written(hex_text);
    out.integer("qkey", {0, 0xffff'ffff}, of(&RoceConfig::qkey), "`\"ud\"`: the key that datagrams carry")
        .kind("0..0xffffffff")
        .refused_where(only({Service::ud}, "service = \"ud\""))
        .written(hex_text)
        .usually("required with `\"ud\"`")
        .otherwise([](StreamConfig& stream) { stream.roce.qkey = perftest_qkey; })
        .check_unset([](TableReader& table, const StreamConfig& stream) {
            if (stream.exchange == Exchange::none)
                table.missing("qkey", "the Q_Key that the senders use (0x11111111 with perftest and ibv_ud_pingpong)");
        });
    out.integer("rnr_timer_us", {10, 655'360}, of(&RoceConfig::rnr_timer_us),
                "`\"rc\"`: how long a sender waits that was told that there is no room; "
                "rounded up to one of the 32 times that there are")
        .refused_where(acknowledged);
    out.integer("ack_every", {0, 1U << 16}, of(&RoceConfig::ack_every),
                "`\"rc\"`: acknowledge after so many packets and at the end of each message, asked or not; 0: "
                "only when asked")
        .refused_where(acknowledged);
    out.integer("cnp_interval_us", {0, 10'000'000}, of(&RoceConfig::cnp_interval_us),
                "not with `\"listen\"`: least time between congestion notifications of a queue pair; 0: none")
        .refused_where(answered);
}

}  // namespace

void add_responder_options(OptionTable<StreamConfig>& out) {
    using roce::Service;
    const auto of = [](auto member) {
        return [member](auto& stream) -> auto& {
            return stream.roce.*member;
        };
    };
    const Why connected = only({Service::rc, Service::uc}, "service = \"rc\" or \"uc\"");
    out.choice("service", service_names, of(&RoceConfig::service),
               "roce only: `\"listen\"` answers nothing; "
               "otherwise weir is the responder of a reliable or unreliable connection, "
               "or of datagrams ([what it answers](../guides/ROCE.md))")
        .refused_where(not_roce);
    add_exchange_options(out);
    out.tables(
           "peer", peer_options(), of(&RoceConfig::peers),
           "`\"rc\"`, `\"uc\"`: `{ qp = 0x21, address = \"10.1.0.10\" }` for each of `qp`: the sender's queue pair, "
           "where answers go, and its address (default: that of the first packet)")
        .refused_where(unless_exchanged(connected, "who it is"))
        .usually("required with `\"rc\"`")
        .check(check_peers)
        .check_unset([](TableReader& table, const StreamConfig& stream) {
            if (stream.roce.service == Service::rc)
                table.missing("peer",
                              "[{ qp = 0x11, address = \"10.1.0.10\" }], for each of qp who sends to it: "
                              "service = \"rc\" answers, and has to know where to");
        });
    out.add("psn", "0..0xffffff, each of `qp`",
            "not with `\"ud\"`: the PSN that each sender begins with. "
            "Then it is known whether the first messages were lost")
        .refused_where(unless_exchanged(only({Service::listen, Service::rc, Service::uc},
                                             "service = \"rc\" or \"uc\", and to streams that only listen"),
                                        "its own"))
        .reads(read_psns)
        .shows([](const StreamConfig& stream) { return value_of(stream.roce.psn); })
        .written(hex_text)
        .usually("the first message's");
    out.tables(
           "region", region_options(), of(&RoceConfig::regions),
           "`\"rc\"`, `\"uc\"`: memory that WRITEs may name, `{ va = 0x10000000, bytes = \"1MiB\", rkey = 0x1234 }`; "
           "with `count` (1) and `stride` (`bytes`) as many buffers under one key, "
           "with `qp` only for that queue pair, with `write = false` without permission, "
           "with `backing = \"memory\"` real memory that frames are scattered over. At most 16 for a queue pair")
        .refused_where(connected)
        .check(check_regions);
    add_answers(out);
}

void check_backed_regions(TableReader& table, const RunConfig& run, const StreamConfig& stream) {
    std::uint64_t bytes = 0;
    for (const RoceConfig::Region& at : stream.roce.regions)
        if (at.region.backed) bytes += at.region.count * at.region.bytes * (at.qp ? 1 : stream.qp.size());
    if (bytes == 0) return;
    const bool has_header = stream.event == EventBy::format && format_entry(stream).decode_whole != nullptr;
    if (stream.event != EventBy::immediate && !has_header)
        table.wrong("event", in_quotes(name_of(event_by_names, stream.event)),
                    "\"immediate\": a frame in memory (backing = \"memory\") ends with one; or \"format\" with a "
                    "detector's format, whose header is in the memory, too");
    if (bytes > run.events.memory_bytes)
        table.wrong("region", fmt::format("{} with backing = \"memory\"", format_size(bytes)),
                    fmt::format("at most events.memory = {}", format_size(run.events.memory_bytes)));
}

void check_frame_bytes(TableReader& table, const StreamConfig& stream, const wire::FormatContext& context) {
    if (stream.event != EventBy::format) return;
    const std::uint64_t bytes = std::uint64_t{context.header_bytes} + context.message_bytes;
    for (const RoceConfig::Region& at : stream.roce.regions)
        if (at.region.backed && at.region.bytes != bytes)
            table.wrong("region", fmt::format("buffers of {} bytes with backing = \"memory\"", at.region.bytes),
                        fmt::format("{}: {} of {}'s header and {} of a frame. A frame without a header has its number "
                                    "in the immediate: event = \"immediate\"",
                                    bytes, context.header_bytes, stream.format, context.message_bytes));
}

}  // namespace weir::config::detail

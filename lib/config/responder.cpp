// The keys of a stream whose queue pairs weir answers: which service they give, who their peers are, and what memory a
// peer may write to.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "config/parts.hpp"

namespace weir::pipeline::detail {

namespace {

constexpr std::uint64_t qp_max = (1U << 24) - 1;
constexpr std::uint32_t perftest_qkey = 0x11111111;          // perftest_parameters.h, DEF_QKEY
constexpr std::uint64_t number_max = 0x7fff'ffff'ffff'ffff;  // TOML's integers are signed

/// The tables of a key that has one, or an array of them.
std::vector<TableReader> tables_of(TableReader& table, std::string_view key) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return {};
    std::vector<TableReader> out;
    if (node->is_table())
        out.push_back(*table.table(key));
    else
        out = table.tables(key);
    return out;
}

std::string one_for_each(const StreamConfig& stream) {
    return fmt::format("{}, one for each of qp", stream.qp.size());
}

void read_peers(TableReader& table, StreamConfig& stream) {
    if (stream.exchange != Exchange::none)
        return table.refuse("peer", "nothing: with an exchange, each program says who it is");
    for (TableReader& entry : tables_of(table, "peer")) {
        entry.allow({"qp", "address"});
        RoceConfig::Peer peer;
        const auto qp = entry.integer("qp", {0, qp_max});
        if (!qp) entry.missing("qp", "the sender's own queue pair number (24 bits): answers go there");
        peer.qp = static_cast<std::uint32_t>(*qp);
        if (const auto text = entry.text("address")) {
            peer.address = parse_ip_address(*text);
            if (!peer.address) entry.wrong("address", in_quotes(*text), "an IPv4 or IPv6 address, as \"10.1.0.10\"");
        }
        entry.finish();
        stream.roce.peers.push_back(peer);
    }
    const bool reliable = stream.roce.service == roce::Service::rc;
    if (stream.roce.peers.empty() && !reliable) return;
    if (stream.roce.peers.empty())
        table.missing("peer",
                      "[{ qp = 0x11, address = \"10.1.0.10\" }], for each of qp who sends to it: service = \"rc\" "
                      "answers, and has to know where to");
    if (stream.roce.peers.size() != stream.qp.size())
        table.wrong("peer", fmt::format("{} peers", stream.roce.peers.size()), one_for_each(stream));
}

/// One for each queue pair, and all may be the same.
void read_psns(TableReader& table, StreamConfig& stream) {
    if (stream.exchange != Exchange::none)
        return table.refuse("psn", "nothing: with an exchange, each program says its own");
    const toml::node* node = table.get("psn");
    if (node == nullptr) return;
    const std::string accepted = one_for_each(stream) + ", of 24 bits: psn = [0x1000]";
    const auto add = [&](const toml::node& element) {
        const auto* value = element.as_integer();
        if (value == nullptr || value->get() < 0 || value->get() > static_cast<std::int64_t>(qp_max))
            table.wrong("psn", describe(element), accepted);
        stream.roce.psn.push_back(static_cast<std::uint32_t>(value->get()));
    };
    if (const auto* array = node->as_array())
        for (const toml::node& element : *array) add(element);
    else
        add(*node);
    if (stream.roce.psn.size() != stream.qp.size())
        table.wrong("psn", fmt::format("{} numbers", stream.roce.psn.size()), accepted);
}

RoceConfig::Region read_region(TableReader& table, const StreamConfig& stream) {
    table.allow({"va", "rkey", "bytes", "count", "stride", "write", "backing", "qp"});
    RoceConfig::Region out;
    roce::Region& region = out.region;
    const auto required = [&table](std::string_view key, Bounds bounds, std::string_view what) {
        const auto value = table.integer(key, bounds);
        if (!value) table.missing(key, what);
        return *value;
    };
    region.va = required("va", {0, number_max}, "the address that the sender writes to");
    region.rkey = static_cast<std::uint32_t>(required("rkey", {0, 0xffff'ffff}, "the R_Key that the sender uses"));
    const auto bytes = table.size("bytes", {1, message_bytes_limit});
    if (!bytes) table.missing("bytes", "how many bytes may be written from va on");
    region.bytes = *bytes;
    region.count = static_cast<std::uint32_t>(table.integer("count", {1, 1U << 24}).value_or(1));
    region.stride = table.size("stride", {1, std::uint64_t{1} << 40}).value_or(region.bytes);
    if (region.stride < region.bytes)
        table.wrong("stride", format_size(region.stride),
                    fmt::format("at least bytes = {}: buffers do not overlap", format_size(region.bytes)));
    if (region.va > number_max - std::uint64_t{region.count} * region.stride)
        table.wrong("va", fmt::format("{:#x}", region.va), "an address from which all of the region can be counted");
    region.remote_write = table.boolean("write").value_or(true);
    region.backed = table.choice("backing", backing_names).value_or(false);
    if (const auto qp = table.integer("qp", {0, qp_max})) {
        out.qp = static_cast<std::uint32_t>(*qp);
        if (std::ranges::find(stream.qp, *out.qp) == stream.qp.end())
            table.wrong("qp", fmt::format("{:#x}", *qp), "one of the stream's qp; without it the region is for all");
    }
    table.finish();
    return out;
}

void read_regions(TableReader& table, StreamConfig& stream) {
    for (TableReader& entry : tables_of(table, "region")) stream.roce.regions.push_back(read_region(entry, stream));
    for (const std::uint32_t qp : stream.qp) {
        const auto count = std::ranges::count_if(stream.roce.regions,
                                                 [qp](const RoceConfig::Region& at) { return !at.qp || *at.qp == qp; });
        if (count > roce::QueuePair::regions_max)
            table.wrong(
                "region", fmt::format("{} regions for qp {:#x}", count, qp),
                fmt::format("at most {} for a queue pair; buffers that are evenly spaced are one, with count and "
                            "stride",
                            roce::QueuePair::regions_max));
    }
}

}  // namespace

void read_responder_keys(TableReader& table, StreamConfig& stream) {
    RoceConfig& roce = stream.roce;
    roce.service = table.choice("service", service_names).value_or(roce.service);
    const bool connected = roce.service == roce::Service::rc || roce.service == roce::Service::uc;
    const auto belongs = [&table](std::initializer_list<const char*> keys, bool here, const char* where) {
        for (const char* key : keys)
            if (!here) table.refuse(key, fmt::format("nothing: it belongs to {}", where));
    };
    belongs({"pkey", "path_mtu", "cnp_interval_us"}, roce.service != roce::Service::listen,
            "service = \"rc\", \"uc\" or \"ud\", and this stream only listens");
    belongs({"peer", "region"}, connected, "service = \"rc\" or \"uc\"");
    belongs({"psn"}, roce.service != roce::Service::ud, "service = \"rc\" or \"uc\", and to streams that only listen");
    belongs({"rnr_timer_us", "ack_every"}, roce.service == roce::Service::rc,
            "service = \"rc\": nothing else is acknowledged");
    belongs({"qkey"}, roce.service == roce::Service::ud, "service = \"ud\"");
    if (roce.service != roce::Service::ud) read_psns(table, stream);
    if (roce.service == roce::Service::listen) return;

    roce.path_mtu = static_cast<std::uint32_t>(table.integer("path_mtu", {256, wire::roce_mtu_max}).value_or(0));
    if (roce.path_mtu != 0 && !std::has_single_bit(roce.path_mtu))
        table.wrong("path_mtu", std::to_string(roce.path_mtu), "256, 512, 1024, 2048 or 4096");
    roce.pkey = static_cast<std::uint32_t>(table.integer("pkey", {0, 0xffff}).value_or(roce.pkey));
    roce.cnp_interval_us =
        static_cast<std::uint32_t>(table.integer("cnp_interval_us", {0, 10'000'000}).value_or(roce.cnp_interval_us));
    if (roce.service == roce::Service::ud) {
        const auto qkey = table.integer("qkey", {0, 0xffff'ffff});
        if (!qkey && stream.exchange == Exchange::none)
            table.missing("qkey", "the Q_Key that the senders use (0x11111111 with perftest and ibv_ud_pingpong)");
        roce.qkey = static_cast<std::uint32_t>(qkey.value_or(perftest_qkey));
        return;
    }
    roce.rnr_timer_us =
        static_cast<std::uint32_t>(table.integer("rnr_timer_us", {10, 655'360}).value_or(roce.rnr_timer_us));
    roce.ack_every = static_cast<std::uint32_t>(table.integer("ack_every", {0, 1U << 16}).value_or(roce.ack_every));
    read_peers(table, stream);
    read_regions(table, stream);
}

void check_backed_regions(TableReader& table, const RunConfig& run, const StreamConfig& stream) {
    std::uint64_t bytes = 0;
    for (const RoceConfig::Region& at : stream.roce.regions)
        if (at.region.backed) bytes += at.region.count * at.region.bytes * (at.qp ? 1 : stream.qp.size());
    if (bytes == 0) return;
    if (stream.event != EventBy::immediate)
        table.wrong("event", in_quotes(name_of(event_by_names, stream.event)),
                    "\"immediate\": a frame in memory (backing = \"memory\") ends with one");
    if (bytes > run.events.memory_bytes)
        table.wrong("region", fmt::format("{} with backing = \"memory\"", format_size(bytes)),
                    fmt::format("at most events.memory = {}", format_size(run.events.memory_bytes)));
}

}  // namespace weir::pipeline::detail

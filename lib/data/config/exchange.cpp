// The keys of [[stream]] that are about agreeing on queue pairs with a program at run time.
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "config/parts.hpp"
#include "config/stream_options.hpp"

namespace weir::config::detail {

namespace {

constexpr std::string_view listen_accepted =
    "an IPv4 address of this machine and a TCP port, as \"0.0.0.0:18515\" or \"10.2.0.1\"";

void read_listen(TableReader& table, StreamConfig& stream) {
    const std::string text = *table.text("listen");
    const std::size_t colon = text.find(':');
    const std::string address = text.substr(0, colon);
    in_addr parsed{};
    if (::inet_pton(AF_INET, address.c_str(), &parsed) != 1) table.wrong("listen", in_quotes(text), listen_accepted);
    stream.listen_address = address;
    if (colon == std::string::npos) return;
    const char* end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data() + colon + 1, end, stream.listen_port);
    if (error != std::errc{} || last != end || stream.listen_port == 0)
        table.wrong("listen", in_quotes(text), listen_accepted);
}

/// A buffer for each queue pair. perftest's programs go round in one of at least a page, however small their messages.
void propose_regions(StreamConfig& stream) {
    constexpr std::uint64_t bytes_min = 64 << 10;
    for (std::uint32_t i = 0; i < stream.qp.size(); ++i) {
        RoceConfig::Region region;
        region.qp = stream.qp[i];
        region.region.va = std::uint64_t{i + 1} << 32U;
        region.region.bytes = std::max<std::uint64_t>(stream.max_message_bytes, bytes_min);
        region.region.stride = region.region.bytes;
        region.region.rkey = 0x1000 + i;
        stream.roce.regions.push_back(region);
    }
}

}  // namespace

void add_exchange_options(OptionTable<StreamConfig>& out) {
    out.choice(
           "exchange", exchange_names, &StreamConfig::exchange,
           "`\"rc\"`, `\"uc\"`, `\"ud\"`: "
           "`\"perftest\"` agrees on queue pairs over TCP with ib_send_bw and ib_write_bw ([perftest as the sender](../guides/PERFTEST.md)); "
           "or `weir send --connect`; then no `peer` and no `psn`, and the port needs an IPv4 `address`. "
           "perftest's programs send no immediates: for them `event` is `\"count\"` or `\"arrival\"`")
        .refused_where(not_roce);
    out.add("listen", "address:port",
            "`exchange`: where the TCP connections come to, an IPv4 address of this machine's kernel; "
            "the port may be left out")
        .refused_where([](const StreamConfig& stream) -> std::string {
            if (std::string why = not_roce(stream); !why.empty()) return why;
            return stream.exchange != Exchange::none ? "" : "nothing: it belongs to exchange = \"perftest\"";
        })
        .reads(read_listen)
        .shows([](const StreamConfig& stream) {
            return nlohmann::json(fmt::format("{}:{}", stream.listen_address, stream.listen_port));
        });
}

void agree_on_exchange(TableReader& table, const RunConfig& run, StreamConfig& stream) {
    if (stream.roce.service == roce::Service::listen)
        table.wrong("exchange", "\"perftest\" with service = \"listen\"",
                    "\"perftest\" with service = \"rc\", \"uc\" or \"ud\": the program's own option -c");
    if (!run.ports[stream.port].ipv4())
        table.wrong("exchange", "\"perftest\" on a port without an IPv4 address",
                    fmt::format("a port with `address`, which the program is told to send to (port {})",
                                in_quotes(run.ports[stream.port].name)));
    if (stream.roce.service != roce::Service::ud && stream.roce.regions.empty()) propose_regions(stream);
}

/// Two streams cannot listen at one place, nor one at an address of which another has all.
void check_listeners(const RunConfig& run, std::vector<TableReader>& readers) {
    for (std::size_t i = 0; i < run.streams.size(); ++i)
        for (std::size_t k = 0; k < i; ++k) {
            const StreamConfig& a = run.streams[k];
            const StreamConfig& b = run.streams[i];
            if (a.node != b.node) continue;
            if (a.exchange == Exchange::none || b.exchange == Exchange::none || a.listen_port != b.listen_port)
                continue;
            if (a.listen_address != b.listen_address && a.listen_address != "0.0.0.0" && b.listen_address != "0.0.0.0")
                continue;
            readers[i].wrong("listen",
                             fmt::format("TCP port {}, as the stream in line {}", b.listen_port, a.place.line),
                             "a port of its own for every stream that listens");
        }
}

}  // namespace weir::config::detail

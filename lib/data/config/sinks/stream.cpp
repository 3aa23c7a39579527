// [[sink]] of kind "stream".
#include "config/sinks/stream.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "config/parts.hpp"
#include "config/sinks/entry.hpp"
#include "core/clock_ns.hpp"
#include "stream/sink.hpp"

namespace weir::config {

namespace {

using namespace detail;

constexpr std::string_view address_accepted =
    "an address to listen at, as \"tcp://127.0.0.1:31001\", \"tcp://*:31001\" or \"ipc:///run/weir/events\"";
constexpr std::array on_full_names{options::Named{"drop", OnFull::drop}, options::Named{"wait", OnFull::wait}};

bool is_tcp_address(std::string_view text) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
    const std::string_view port = text.substr(colon + 1);
    if (port == "*") return true;
    constexpr std::size_t digits_max = 5;
    if (port.size() > digits_max || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; }))
        return false;
    return std::stoul(std::string(port)) <= UINT16_MAX;
}

bool is_address(std::string_view text) {
    constexpr std::string_view tcp = "tcp://";
    constexpr std::string_view ipc = "ipc://";
    if (text.starts_with(tcp)) return is_tcp_address(text.substr(tcp.size()));
    return text.starts_with(ipc) && text.size() > ipc.size();
}

/// Each end has a port of its own; those that the kernel chooses ("*", 0) differ anyway.
void check_addresses(TableReader& table, const char* key, const std::vector<std::string>& addresses) {
    std::set<std::string> seen;
    for (const std::string& address : addresses) {
        if (!is_address(address)) table.wrong(key, options::in_quotes(address), address_accepted);
        const bool chosen = address.ends_with(":*") || address.ends_with(":0");
        if (!chosen && !seen.insert(address).second)
            table.wrong(key, options::in_quotes(address) + " twice", "a port of its own for each consumer");
    }
}

OptionTable<StreamSinkConfig> stream_options() {
    OptionTable<StreamSinkConfig> out;
    out.add(
           "listen", "address, or list of them",
           "where consumers connect (ZeroMQ PULL), **one address for each consumer**: two at one address would share the "
           "events. `\"tcp://127.0.0.1:31001\"` takes programs of this host, `\"tcp://*:31001\"` of the network, "
           "without any authentication")
        .required("where a consumer connects, as \"tcp://127.0.0.1:31001\"")
        .reads([](TableReader& table, StreamSinkConfig& stream) {
            stream.listen = table.texts("listen", "an address to listen at");
            if (stream.listen.empty()) table.wrong("listen", "an empty list", address_accepted);
            check_addresses(table, "listen", stream.listen);
        })
        .shows([](const StreamSinkConfig& stream) {
            return stream.listen.size() == 1 ? nlohmann::json(stream.listen.front()) : nlohmann::json(stream.listen);
        })
        .usually("required");
    out.choice("on_full", on_full_names, &StreamSinkConfig::on_full,
               "what becomes of an event that a consumer has no room for, or that has no consumer: it is dropped, and "
               "counted by cause; or the run waits, which holds up the readout, until there is room or the run is "
               "stopped. Beside another sink, what is dropped here is no loss of the run");
    out.integer("queue", {1, 1'000'000}, &StreamSinkConfig::queue, "messages on their way to a consumer at most,");
    out.size("queue_bytes", {1U << 20, std::uint64_t{1} << 40}, &StreamSinkConfig::queue_bytes,
             "and bytes of them: what ZeroMQ keeps in memory for one that is slow");
    out.text("previews", &StreamSinkConfig::previews,
             "where previews are published (ZeroMQ PUB, any number of subscribers), like `listen`")
        .kind("address")
        .unset("none")
        .check([](TableReader& table, const StreamSinkConfig& stream) {
            std::vector<std::string> all = stream.listen;
            all.push_back(stream.previews);
            check_addresses(table, "previews", all);
        });
    out.integer("preview_every", {1, 1U << 30}, &StreamSinkConfig::preview_every, "a preview of every Nth image,");
    out.integer("preview_bin", {1, 1024}, &StreamSinkConfig::preview_bin,
                "in which a pixel is the mean of a square of so many pixels a side");
    out.integer(
        "linger_ms", {0, 3'600'000}, &StreamSinkConfig::linger_ms,
        "how long the end of the run waits for what has not left yet; with `on_full = \"wait\"`, how long since a "
        "consumer last took something");
    out.integer("start_timeout_ms", {0, 60'000}, &StreamSinkConfig::start_timeout_ms,
                "how long the start of the run waits for consumers to connect. It starts without them");
    return out;
}

std::unique_ptr<store::EventSink> open_stream(const SinkContext& context) {
    const StreamSinkConfig& stream = *context.sink.as<StreamSinkConfig>();
    stream::Sink::Config config;
    config.listen = stream.listen;
    config.wait = stream.on_full == OnFull::wait;
    config.queue = stream.queue;
    config.queue_bytes = stream.queue_bytes;
    config.previews = stream.previews;
    config.preview_every = stream.preview_every;
    config.preview_bin = stream.preview_bin;
    config.linger = std::chrono::milliseconds(stream.linger_ms);
    config.start_timeout = std::chrono::milliseconds(stream.start_timeout_ms);
    // Where no path has a number the time is one: no two runs have the same.
    config.run = context.path.run ? *context.path.run
                                  : static_cast<std::uint64_t>(core::clock_ns(CLOCK_REALTIME) / core::ns_per_s);
    config.name = context.config.name;
    config.start_json = context.start_json;
    return std::make_unique<stream::Sink>(config);
}

}  // namespace

SinkEntry stream_sink() {
    return {.kind = kind_of("stream", stream_options()),
            .meaning = "other programs while the run goes on ([STREAM.md](STREAM.md))",
            .has_path = false,
            .open = open_stream};
}

}  // namespace weir::config

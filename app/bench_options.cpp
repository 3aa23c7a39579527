#include "bench_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "bench/loopback.hpp"
#include "bench/server.hpp"
#include "bench/transports.hpp"
#include "core/error.hpp"
#include "options_common.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

constexpr const char* bench_usage = R"(weir bench --loopback [options]
weir bench --server [--listen ADDRESS[:PORT]] [--token WORD]
weir bench --client HOST[:PORT] --token WORD [options]
weir bench compare BEFORE.json AFTER.json [options]

Finds the highest rate at which nothing is lost, for each way to receive and each packet size, and says where packets are lost
above it, what a gigabyte costs in CPU time, and how long packets are on their way. Packets are counted on every layer; a trial
whose sender did not keep to its schedule says nothing about the receiver: it is done again, and shown as invalid.

--loopback does it on this machine alone, in two network namespaces that it makes itself; without root they need user
namespaces. Where those are refused it goes over shared memory (--over memif), by DPDK alone. Between two hosts start the server first: it prints the line for the client.

Examples:
  weir bench --loopback                                       a first look, in two minutes
  weir bench --loopback --transport udp-tuned --bytes 8240 --goal ndr --html udp.html
  weir bench --client 10.1.0.2 --token 8c1f --at 20Gb/s --seconds 10
  weir bench --client 10.1.0.2 --token 8c1f --table ponsard2020 --json table.json

)";

constexpr std::string_view back_to_back = "back-to-back";

constexpr const char* after_options = R"(
A RATE is a number with Gb/s (of UDP payload; the default), Mb/s, Mpps, kpps, pps, or Meps, keps, eps (messages a second). docs/guides/BENCH.md says how to read the
results.
)";

std::vector<std::string> words_of(const po::variables_map& given, const char* name) {
    std::vector<std::string> words;
    if (given.count(name) == 0) return words;
    for (const std::string& text : given[name].as<std::vector<std::string>>())
        for (std::size_t at = 0; at <= text.size();) {
            const std::size_t comma = std::min(text.find(',', at), text.size());
            words.push_back(text.substr(at, comma - at));
            at = comma + 1;
        }
    return words;
}

double positive_number(std::string_view text, std::string_view option, std::string_view accepted) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    core::require(error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value > 0,
                  fmt::format("--{}: found '{}'; accepted: {}", option, text, accepted));
    return value;
}

std::uint32_t positive_whole(std::string_view text, std::string_view option) {
    constexpr std::string_view accepted = "a whole number above 0";
    const double value = positive_number(text, option, accepted);
    core::require(value == std::floor(value) && value <= 1e9,
                  fmt::format("--{}: found '{}'; accepted: {}", option, text, accepted));
    return static_cast<std::uint32_t>(value);
}

/// In Gb/s of UDP payload, for events (messages) of `packets` packets of `bytes`.
double gbps_of(std::string_view text, std::string_view option, std::uint32_t bytes, std::uint32_t packets) {
    struct Unit {
        std::string_view name;
        double gbps;  // of one
    };
    const double packet = bytes * 8e-9;
    const double event = packet * packets;
    // An ending is looked for in this order.
    const Unit units[] = {{"Gb/s", 1},     {"Mb/s", 1e-3},        {"Mpps", packet * 1e6}, {"kpps", packet * 1e3},
                          {"pps", packet}, {"Meps", event * 1e6}, {"keps", event * 1e3},  {"eps", event}};
    for (const Unit& unit : units)
        if (text.ends_with(unit.name))
            return positive_number(text.substr(0, text.size() - unit.name.size()), option, "a rate: 20Gb/s, 1.5Mpps") *
                   unit.gbps;
    return positive_number(text, option, "a rate: 20Gb/s, 500Mb/s, 1.5Mpps, 300kpps, 1000pps, 2keps, 50eps");
}

/// "rate=20000,loss=0.001": each key's number goes where `values` says.
void read_faults(const po::variables_map& given, const char* option,
                 const std::vector<std::pair<std::string_view, double*>>& values) {
    for (const std::string& word : words_of(given, option)) {
        const std::size_t equals = word.find('=');
        const auto found = std::ranges::find(values, std::string_view(word).substr(0, equals),
                                             &std::pair<std::string_view, double*>::first);
        if (found == values.end() || equals == std::string::npos) {
            std::string accepted;
            for (const auto& [key, value] : values) accepted += fmt::format("{}{}=", accepted.empty() ? "" : ", ", key);
            throw core::UsageError(fmt::format("--{}: found '{}'; accepted: {}", option, word, accepted));
        }
        *found->second = positive_number(std::string_view(word).substr(equals + 1), option, "a number above 0");
    }
}

bench::ReceiverFaults receiver_faults_of(const po::variables_map& given) {
    bench::ReceiverFaults faults;
    read_faults(given, "receiver-fault",
                {{"rate", &faults.packets_per_s},
                 {"loss", &faults.loss_ratio},
                 {"pause", &faults.pause_s},
                 {"every", &faults.pause_every_s}});
    return faults;
}

bench::SenderFaults sender_faults_of(const po::variables_map& given) {
    bench::SenderFaults faults;
    double reorder = 0;
    double seed = 1;
    read_faults(given, "sender-fault",
                {{"drop", &faults.drop}, {"duplicate", &faults.duplicate}, {"reorder", &reorder}, {"seed", &seed}});
    core::require(faults.drop < 1 && faults.duplicate <= 1, "--sender-fault: drop and duplicate are probabilities");
    core::require(reorder == std::floor(reorder) && reorder <= 1000 && seed == std::floor(seed) && seed <= 1e9,
                  "--sender-fault: reorder is a whole number up to 1000, seed one up to 10^9");
    faults.reorder = static_cast<std::uint32_t>(reorder);
    faults.seed = static_cast<std::uint64_t>(seed);
    return faults;
}

void split_host(const std::string& text, BenchOptions& options) {
    const std::size_t colon = text.rfind(':');
    options.host = text.substr(0, colon);
    options.port = bench::control_port;
    if (colon != std::string::npos) {
        const std::uint32_t port = positive_whole(std::string_view(text).substr(colon + 1), "client");
        core::require(port <= 65535, fmt::format("{}: a port is at most 65535", text));
        options.port = static_cast<std::uint16_t>(port);
    }
    core::require(!options.host.empty(), "--client needs a HOST");
}

po::options_description describe() {
    const auto list = [] { return po::value<std::vector<std::string>>(); };
    const auto text = [] { return po::value<std::string>(); };
    po::options_description description = options_for_terminal("Options");
    // clang-format off
    description.add_options()
        ("loopback", "both sides on this machine")
        ("over", text()->value_name("LINK"), "loopback: veth, two network namespaces and their virtual cable, or memif, memory that DPDK shares, without any rights; default veth")
        ("server", "the receiver's side: waits for clients until Ctrl-C")
        ("client", text()->value_name("HOST[:PORT]"), "the sender's side")
        ("listen", text()->value_name("ADDRESS[:PORT]"), "server: where to wait for clients; default 0.0.0.0:7474")
        ("token", text()->value_name("WORD"), "a word that both sides know; default: WEIR_BENCH_TOKEN, or one that the server makes up")
        ("transport", list()->value_name("NAMES"), "ways to receive, separated by commas (--list); default: all that there are")
        ("depth", list()->value_name("NAMES"), "how far a packet goes: receive (counted and checked), assemble (to messages), full (reduced and written, by weir run); default: receive")
        ("bytes", list()->value_name("N,..."), "UDP payload of a packet; default 2048,8240")
        ("message-bytes", list()->value_name("N,..."), "of a message, in whole packets; default 65536. Packets are no longer than a message")
        ("sources", text()->value_name("N"), "that take turns to send a message: one of each makes an event; default 1")
        ("addresses", list()->value_name("N,..."), "places in the receiver's memory that payload goes to in turn; default 1: as few as possible")
        ("sender", text()->value_name("NAME"), "way to send (--list); default sendmmsg, or dpdk where only that can")
        ("address", text()->value_name("ADDRESS"), "send to this address of the server's; default: that of the control connection")
        ("sender-device", text()->value_name("DEVICE"), "what the senders dpdk and weir send through, a PCI address or VDEV,ARGS; default: net_af_packet on the interface")
        ("burst", text()->value_name("N"), "send so many packets at once, and then none until their time is over; default 1")
        ("content", text()->value_name("FILE"), "packets carry what is in this file (the first 8 MiB), real frames for example, in place of a pattern")
        ("sender-fault", list()->value_name("KEY=VALUE,..."), "what happens to packets on the way: drop, duplicate (probabilities), reorder (places that a packet may come later), seed (default 1)")
        ("goal", text()->value_name("NAME"), "what to search for (--list); default quick")
        ("bursts", text()->value_name("N"), "with --goal back-to-back: so often the longest burst without loss; default 10 (RFC 9004 asks for 50)")
        ("most", text()->value_name("RATE"), "search up to this rate; default: what the sender can do")
        ("at", text()->value_name("RATE"), "measure this rate only; max: as fast as the sender can")
        ("seconds", text()->value_name("S"), "with --at: for so long; default 1")
        ("search-seconds", text()->value_name("S"), "end a search after so many seconds of trials; default 600")
        ("repeats", text()->value_name("N"), "do all of it N times, in turns; default 1. To compare two results takes at least 4 of each")
        ("table", text()->value_name("NAME"), "ponsard2020: sizes, addresses and repeats of Ponsard et al. (J. Synchrotron Rad. 2020); cms2014: receiving beside event building, for messages of 1 kB to 1 MB of two sources (CMS, TIPP 2014)")
        ("device", text()->value_name("DEVICE"), "server: what dpdk-udp and dpdk-roce receive with, a PCI address or VDEV,ARGS; default: net_af_packet on the interface")
        ("cpu", text()->value_name("N"), "server, loopback: the CPU that receives")
        ("receiver-fault", list()->value_name("KEY=VALUE,..."), "server, loopback: make the receiver worse, to see that it is found out: rate (packets/s that it takes), loss (ratio that it forgets), pause (s) once in every (s)")
        ("json", text()->value_name("FILE"), "write everything, with all trials, as JSON")
        ("html", text()->value_name("FILE"), "write a page with tables and plots, in one file")
        ("list", "say what can be measured, and end")
        ("quiet", "neither progress nor a table")
        ("help,h", "this text");
    // clang-format on
    return description;
}

void print_list() {
    std::cout << "Transports (--transport):\n";
    for (const bench::Transport& one : bench::transports())
        std::cout << fmt::format("  {:14} {}\n", one.name, one.text);
    std::cout << "\nSenders (--sender):\n";
    for (const bench::SenderKind& one : bench::sender_kinds())
        std::cout << fmt::format("  {:14} {}\n", one.name, one.text);
    std::cout << "\nGoals (--goal):\n";
    for (const search::Goal& goal : search::named_goals())
        std::cout << fmt::format("  {:14} {}\n", goal.name, search::goal_text(goal.name));
    std::cout << fmt::format("  {:14} {}\n", back_to_back,
                             "quick, and then the longest burst at full speed of which nothing is lost (RFC 9004)");
}

/// Everything but the lists.
bench::Measurement common_of(const po::variables_map& given) {
    const auto text = [&given](const char* name, const char* otherwise) {
        return given.count(name) > 0 ? given[name].as<std::string>() : std::string(otherwise);
    };
    bench::Measurement one;
    if (given.count("sender") > 0) one.sender = bench::sender_named(given["sender"].as<std::string>()).name;
    one.address = text("address", "");
    one.device = text("sender-device", "");
    one.faults = sender_faults_of(given);
    const std::string goal = text("goal", "quick");
    const std::uint32_t bursts = positive_whole(text("bursts", "10"), "bursts");
    core::require(bursts <= 1000, "--bursts: at most 1000");
    one.bursts = goal == back_to_back ? static_cast<int>(bursts) : 0;
    one.goal = search::goal_named(one.bursts > 0 ? "quick" : goal);
    core::require(one.bursts > 0 || given.count("bursts") == 0, "--bursts goes with --goal back-to-back");
    one.at_s = positive_number(text("seconds", "1"), "seconds", "a number above 0");
    one.search_s = positive_number(text("search-seconds", "600"), "search-seconds", "a number above 0");
    one.burst = positive_whole(text("burst", "1"), "burst");
    core::require(given.count("seconds") == 0 || given.count("at") > 0, "--seconds goes with --at");
    core::require(given.count("goal") == 0 || given.count("at") == 0,
                  "--goal searches, --at does not: give one of them");
    return one;
}

/// Everything but the transport.
bench::Measurement measurement_of(const po::variables_map& given, const std::string& depth,
                                  const std::string& addresses, const std::string& bytes, const std::string& message,
                                  const std::string& sources) {
    bench::Measurement one = common_of(given);
    one.depth = bench::name_of(bench::depth_named(depth));
    one.addresses = positive_whole(addresses, "addresses");
    one.bytes = positive_whole(bytes, "bytes");
    bench::check(bench::PacketPlan{.trial = 0, .bytes = one.bytes});
    const std::uint32_t message_bytes = positive_whole(message.empty() ? "65536" : message, "message-bytes");
    if (!message.empty()) one.bytes = std::clamp(message_bytes, bench::PacketPlan::bytes_min, one.bytes);
    const std::uint32_t packets = std::max(1U, message_bytes / (one.bytes - bench::PacketPlan::header_bytes));
    one.sources = positive_whole(given.count("sources") > 0 ? given["sources"].as<std::string>() : sources, "sources");
    bench::check(bench::PacketPlan{.trial = 0, .bytes = one.bytes, .packets = packets, .sources = one.sources});
    const std::uint32_t per_event = packets * one.sources;
    // A packet that is only counted is of no message, unless one was asked for.
    if (one.depth != "receive" || !message.empty()) one.packets = packets;
    one.at_most = given.count("at") > 0 && given["at"].as<std::string>() == "max";
    if (given.count("at") > 0 && !one.at_most)
        one.at_gbps = gbps_of(given["at"].as<std::string>(), "at", one.bytes, per_event);
    if (given.count("most") > 0) one.most_gbps = gbps_of(given["most"].as<std::string>(), "most", one.bytes, per_event);
    return one;
}

/// What is measured unless options say otherwise.
struct PublishedTable {
    std::string_view name;
    std::vector<std::string> depths{"receive"};
    std::vector<std::string> bytes{"2048", "8240"};
    std::vector<std::string> addresses{"1"};
    std::vector<std::string> message_bytes{""};  // empty: 65536 where there are messages
    std::string sources = "1";
    std::uint32_t repeats = 1;
};

const PublishedTable& table_named(std::string_view name) {
    static const std::array<PublishedTable, 3> tables{
        {{.name = ""},
         // Ponsard et al., J. Synchrotron Rad. 2020: packet sizes, and addresses in the receiver's memory.
         {.name = "ponsard2020", .bytes = {"2048", "4096", "8240", "8246"}, .addresses = {"1", "100000"}, .repeats = 5},
         // CMS, TIPP 2014: throughput against message size, N to N as such and with event building on top.
         {.name = "cms2014",
          .depths = {"receive", "assemble"},
          .bytes = {"4096"},
          .message_bytes = {"1024", "4096", "16384", "65536", "262144", "1048576"},
          .sources = "2",
          .repeats = 5}}};
    const auto found = std::ranges::find(tables, name, &PublishedTable::name);
    core::require(found != tables.end(), fmt::format("--table: found '{}'; accepted: ponsard2020, cms2014", name));
    return *found;
}

/// Each combination of what was listed.
std::vector<bench::Measurement> measurements_of(const po::variables_map& given, const PublishedTable& table,
                                                bool memif) {
    using Words = std::vector<std::string>;
    const auto or_default = [&given](const char* name, Words otherwise) {
        Words words = words_of(given, name);
        return words.empty() ? otherwise : words;
    };
    Words all;
    for (const bench::Transport& one : bench::transports())
        if (one.on_device || !memif) all.emplace_back(one.name);
    const Words sizes = or_default("bytes", table.bytes);
    const Words places = or_default("addresses", table.addresses);
    const Words messages = or_default("message-bytes", table.message_bytes);
    std::vector<bench::Measurement> kinds;
    for (const std::string& depth : or_default("depth", table.depths))
        for (const std::string& addresses : places)
            for (const std::string& bytes : sizes)
                for (const std::string& message : messages)
                    kinds.push_back(measurement_of(given, depth, addresses, bytes, message, table.sources));
    std::vector<bench::Measurement> measurements;
    for (const std::string& transport : or_default("transport", all))
        for (bench::Measurement one : kinds) {
            const bench::Transport& named = bench::transport_named(transport);
            // What was not asked for by name need not be said to be missing.
            const bench::Depth depth = bench::depth_named(one.depth);
            if (given.count("sender") == 0) one.sender = memif ? "dpdk" : bench::usual_sender(named, depth);
            const bench::SenderKind& sender = bench::sender_named(one.sender);
            const bool can = sender.open != nullptr ? named.has(depth) : named.by_pipeline(depth, true);
            if (given.count("transport") == 0 && (!can || !bench::fit(named, sender, depth))) continue;
            bench::require_fit(named, sender, depth);
            core::require(!memif || sender.on_device,
                          fmt::format("--over memif: the sender {} needs a network of the kernel's", sender.name));
            one.transport = named.name;
            measurements.push_back(std::move(one));
        }
    return measurements;
}

/// Where network namespaces are refused, what can do without them is measured all the same.
void choose_link(const po::variables_map& given, BenchOptions& options) {
    const std::string over = given.count("over") > 0 ? given["over"].as<std::string>() : "";
    core::require(over.empty() || over == "veth" || over == "memif", "--over: accepted: veth, memif");
    options.over_memif = over == "memif";
    if (over.empty()) {
        const std::vector<std::string> named = words_of(given, "transport");
        const bool can =
            std::ranges::all_of(named, [](const std::string& name) { return bench::transport_named(name).on_device; });
        const bool devices = given.count("device") + given.count("sender-device") > 0;
        if (can && !devices) options.why_memif = bench::namespaces_problem();
        options.over_memif = !options.why_memif.empty();
    }
    core::require(!options.over_memif || given.count("device") + given.count("sender-device") == 0,
                  "--over memif makes the devices of both sides itself");
}

/// Results are shown to others, the token is not.
std::string command_of(const std::vector<std::string>& args) {
    std::string command = "weir bench";
    for (std::size_t i = 0; i < args.size(); ++i) {
        if (args[i] == "--token" && i + 1 < args.size())
            ++i;
        else if (!args[i].starts_with("--token="))
            command += " " + args[i];
    }
    return command;
}

}  // namespace

std::optional<BenchOptions> bench_options(const std::vector<std::string>& args) {
    const po::options_description description = describe();
    const po::variables_map given = parse(args, description, nullptr);
    if (given.count("help") > 0) {
        print_help(bench_usage, description, after_options);
        return std::nullopt;
    }
    if (given.count("list") > 0) {
        print_list();
        return std::nullopt;
    }
    core::require(given.count("loopback") + given.count("server") + given.count("client") == 1,
                  "weir bench needs one of --loopback, --server, --client HOST (weir bench --help)");
    BenchOptions options;
    options.command = command_of(args);
    if (const char* token = std::getenv("WEIR_BENCH_TOKEN"); token != nullptr) options.token = token;
    if (given.count("token") > 0) options.token = given["token"].as<std::string>();
    options.quiet = given.count("quiet") > 0;
    if (given.count("json") > 0) options.json = given["json"].as<std::string>();
    if (given.count("html") > 0) options.html = given["html"].as<std::string>();
    if (given.count("cpu") > 0) options.receiving.cpu = positive_whole(given["cpu"].as<std::string>(), "cpu");
    if (given.count("device") > 0) options.device = given["device"].as<std::string>();
    options.receiving.faults = receiver_faults_of(given);
    if (given.count("server") > 0) {
        options.role = BenchOptions::Role::server;
        split_host(given.count("listen") > 0 ? given["listen"].as<std::string>() : "0.0.0.0", options);
        return options;
    }
    core::require(given.count("over") == 0 || given.count("loopback") > 0, "--over goes with --loopback");
    if (given.count("client") > 0) {
        options.role = BenchOptions::Role::client;
        split_host(given["client"].as<std::string>(), options);
    }
    const PublishedTable& table = table_named(given.count("table") > 0 ? given["table"].as<std::string>() : "");
    options.repeats = table.repeats;
    if (given.count("repeats") > 0) options.repeats = positive_whole(given["repeats"].as<std::string>(), "repeats");
    if (options.role == BenchOptions::Role::loopback) choose_link(given, options);
    options.measurements = measurements_of(given, table, options.over_memif);
    if (given.count("content") > 0) {
        const bench::Content content = bench::read_content(given["content"].as<std::string>());
        for (bench::Measurement& one : options.measurements) {
            one.content = content;
            bench::check(bench::PacketPlan{.bytes = one.bytes, .packets = one.packets, .content = content});
        }
    }
    return options;
}

}  // namespace weir::app

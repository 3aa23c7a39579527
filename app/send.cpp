// `weir send`: options, the paced loop from simulator to target, and the account at the end. The work is in lib/port.
#include "send.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/program_options.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "pipeline/config.hpp"
#include "port/frame_target.hpp"
#include "port/paced_sender.hpp"
#include "port/simulator.hpp"

namespace weir::app {

namespace {

namespace po = boost::program_options;
using core::UsageError;
using nlohmann::json;
using port::SimulatedFormat;
using port::SimulatedTransport;

constexpr std::string_view intro = R"(usage: weir send --to TARGET [options]

Simulates a detector: frames with the headers of a real one and contents that depend only on seed and event number,
to a capture file, a UDP socket of the kernel, or a DPDK device. What the simulated network does to the packets is
drawn from the seed, so the same command sends the same packets again. At the end it says what was sent, and whether
it kept to the rate that was asked for.

)";

constexpr std::string_view examples = R"(
targets:
  FILE.pcap            a new capture with nanosecond stamps (an existing file is refused); needs --events
  udp:HOST[:PORT]      a kernel socket; PORT is that of source 0. Truncation makes shorter datagrams
  device:VDEV[,ARGS]   a DPDK device without hugepages; or a PCI address, with them

examples:
  weir send --format jungfrau --sources 2 --events 20 --drop 0.001 --to jf.pcap
      20 frames of two modules, one packet in a thousand lost
  weir send --sources 2 --rate 100 --to udp:10.1.0.2:50001
      two modules at 100 frames/s (1.7 Gb/s) to the ports 50001 and 50002, until Ctrl-C
  weir send --format ejfat --lb --sources 2 --bytes 500000 --gbps 3 --events 10000 --to udp:10.1.0.2
      EJFAT event buffers of 1 to 500,000 bytes behind a load balancer header, to the ports 19522 and 19523
  weir send --format dune --sources 4 --rate 30517 --events 1000000 --to udp:10.1.0.2
      WIBEth frames of four streams, 2048 ticks of 16 ns apart (7.1 Gb/s), to the ports 50001 to 50004
  weir send --format message --transport roce-write --bytes 65536 --mtu 1024 --first-psn 16777200 --events 50 \
            --reorder 5 --duplicate 0.01 --seed 7 --to roce.pcap
      RoCEv2 UC WRITEs whose packet numbers wrap, out of order by up to 5 places, 1 % twice
  weir send --format eiger --bit-depth 12 --sources 2 --events 10 --to eiger.pcap
      one EIGER half module; jungfrau and moench have --interfaces and --rows
  weir send --format srs --config formats/srs.toml --port 6006 --one-port --source-id 1 --sources 2 --events 50 --to srs.pcap
      a declared format: two front-end cards that send to one port
  weir send --sources 2 --rate 50 --to device:net_af_packet0,iface=gen0
      the same frames through DPDK onto a kernel interface

Exit status: 0 sent (also when Ctrl-C ended it), 1 it could not send, 2 wrong usage.
docs/SEND.md has the formats, the faults and the report.
)";

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

struct Options {
    port::SimulatorConfig simulator;
    port::Pacer::Config pace;
    std::string to;
    std::string report;
    std::string format;
    std::string config;  ///< where declared formats are
    double duration_s = 0;
    bool quiet = false;
};

template <class T>
T choice(const char* option, const std::string& found, const std::map<std::string, T>& accepted) {
    if (const auto it = accepted.find(found); it != accepted.end()) {
        return it->second;
    }
    std::string names;
    for (const auto& [name, value] : accepted) {
        names += (names.empty() ? "" : ", ") + name;
    }
    throw UsageError(fmt::format("send: --{} {}: {} are accepted", option, found, names));
}

std::uint64_t number(const char* option, const std::string& text, std::uint64_t limit) {
    try {
        std::size_t used = 0;
        const std::uint64_t value = std::stoull(text, &used, 0);
        if (used == text.size() && text[0] != '-' && value <= limit) {
            return value;
        }
    } catch (const std::logic_error&) {
    }
    throw UsageError(
        fmt::format("send: --{} {}: a number from 0 to {} is accepted (0x for hexadecimal)", option, text, limit));
}

std::uint32_t ip_address(const char* option, const std::string& text) {
    in_addr address{};
    if (::inet_pton(AF_INET, text.c_str(), &address) != 1) {
        throw UsageError(fmt::format("send: --{} {}: an IPv4 address is accepted, like 10.1.0.2", option, text));
    }
    return ntohl(address.s_addr);
}

/// An IPv6 address goes to `to6` of the pair, made when the first of the two comes; IPv4 to `to`.
void any_address(const char* option, const std::string& text, std::uint32_t* to,
                 std::optional<wire::Ipv6Addresses>* pair, std::array<std::uint8_t, 16> wire::Ipv6Addresses::*to6) {
    std::array<std::uint8_t, 16> address{};
    if (text.find(':') == std::string::npos) {
        *to = ip_address(option, text);
        return;
    }
    if (::inet_pton(AF_INET6, text.c_str(), address.data()) != 1)
        throw UsageError(
            fmt::format("send: --{} {}: an IP address is accepted, like 10.1.0.2 or fd00::2", option, text));
    if (!*pair)
        *pair = wire::Ipv6Addresses{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a},
                                    {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
    (**pair).*to6 = address;
}

std::array<std::uint8_t, 6> mac_address(const char* option, const std::string& text) {
    std::array<unsigned, 6> parts{};
    int used = 0;
    const int count = std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%n", &parts[0], &parts[1], &parts[2], &parts[3],
                                  &parts[4], &parts[5], &used);
    if (count != 6 || static_cast<std::size_t>(used) != text.size()) {
        throw UsageError(fmt::format("send: --{} {}: a MAC address is accepted, like 02:00:00:00:00:02", option, text));
    }
    std::array<std::uint8_t, 6> mac{};
    std::ranges::transform(parts, mac.begin(), [](unsigned part) { return static_cast<std::uint8_t>(part); });
    return mac;
}

template <class T>
struct Unwrapped {
    using type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
    using type = T;
};

/// An option whose text becomes a number (decimal or hexadecimal) in `*to` when the options are read.
template <class T>
po::typed_value<std::string>* number_option(const char* option, T* to, const std::string& shown = {}) {
    auto* value = po::value<std::string>()->value_name("N")->notifier([option, to](const std::string& text) {
        using Number = typename Unwrapped<T>::type;
        *to = static_cast<Number>(number(option, text, std::numeric_limits<Number>::max()));
    });
    if (!shown.empty()) {
        value->default_value(shown);
    }
    return value;
}

void describe_addresses(port::SimulatorConfig& simulator, po::options_description& all) {
    const auto ip = [&simulator](const char* option, std::uint32_t* to,
                                 std::array<std::uint8_t, 16> wire::Ipv6Addresses::*to6) {
        return po::value<std::string>()->value_name("IP")->notifier(
            [=, pair = &simulator.ipv6](const std::string& text) { any_address(option, text, to, pair, to6); });
    };
    const auto mac = [](const char* option, std::array<std::uint8_t, 6>* to) {
        return po::value<std::string>()->value_name("MAC")->notifier(
            [=](const std::string& text) { *to = mac_address(option, text); });
    };
    auto add = all.add_options();
    add("src-port", number_option("src-port", &simulator.src_port), "source port of all sources");
    add("src-ip", ip("src-ip", &simulator.src_ip, &wire::Ipv6Addresses::src),
        "of source 0, the others count on (10.1.0.10; RoCE with an IPv6 --dst-ip: fd00::a)");
    add("dst-ip", ip("dst-ip", &simulator.dst_ip, &wire::Ipv6Addresses::dst),
        "(10.1.0.2; RoCE with an IPv6 --src-ip: fd00::2)");
    add("src-mac", mac("src-mac", &simulator.src_mac), "of source 0, the last byte counts on (02:00:00:00:00:0a)");
    add("dst-mac", mac("dst-mac", &simulator.dst_mac), "(02:00:00:00:00:02)");
    add("vlan", number_option("vlan", &simulator.vlan), "VLAN id");
}

void describe_faults(port::SimulatorConfig& simulator, po::options_description& all) {
    auto add = all.add_options();
    add("seed", number_option("seed", &simulator.seed, "1"), "of contents, sizes and faults");
    add("drop", po::value(&simulator.drop)->value_name("P"), "probability that a packet is not sent");
    add("duplicate", po::value(&simulator.duplicate)->value_name("P"), "probability that it is sent twice");
    add("truncate", po::value(&simulator.truncate)->value_name("P"), "probability that it is cut short");
    add("reorder", number_option("reorder", &simulator.reorder), "places that a packet may move, either way");
}

void describe_detectors(port::SimulatorConfig& simulator, po::options_description& all) {
    const auto yes_or_no = [&simulator](const std::string& text) {
        simulator.tengiga = choice<bool>("tengiga", text, {{"true", true}, {"false", false}});
    };
    auto add = all.add_options();
    add("interfaces", number_option("interfaces", &simulator.interfaces, "1"),
        "jungfrau, moench: UDP ports per module, 1 or 2; every port is a source");
    add("rows", number_option("rows", &simulator.rows),
        "jungfrau, moench: partial readout of a module, steps of 8 or 16; eiger: of a port");
    add("bit-depth", number_option("bit-depth", &simulator.bit_depth),
        "eiger: bits per pixel, 4, 8, 12, 16 or 32 (16 if not given)");
    add("tengiga", po::value<std::string>()->value_name("true|false")->notifier(yes_or_no),
        "eiger: packets of 4096 bytes (true, if not given) or of 1024");
    add("source-id", number_option("source-id", &simulator.source_id, "0"),
        "declared formats: id in the header of source 0, the others count on");
    add("one-port", po::bool_switch(&simulator.one_port),
        "udp: all sources send to --port; addresses or headers tell them apart");
}

/// A format by name: one of weir's own, or one that the file given with --config declares.
void choose_format(Options& options) {
    const std::map<std::string, SimulatedFormat> own{
        {"jungfrau", SimulatedFormat::jungfrau}, {"moench", SimulatedFormat::moench},
        {"eiger", SimulatedFormat::eiger},       {"ejfat", SimulatedFormat::ejfat},
        {"dune", SimulatedFormat::dune},         {"ess", SimulatedFormat::ess},
        {"spead", SimulatedFormat::spead},       {"message", SimulatedFormat::message}};
    if (options.config.empty() || own.contains(options.format)) {
        options.simulator.format = choice("format", options.format, own);
        return;
    }
    std::string names;
    for (wire::DeclaredSpec& spec : pipeline::load_formats(options.config)) {
        names += ", " + spec.name;
        if (spec.name != options.format) {
            continue;
        }
        options.simulator.format = SimulatedFormat::declared;
        options.simulator.declared = std::move(spec);
        return;
    }
    throw UsageError(fmt::format(
        "send: --format {}: jungfrau, moench, eiger, ejfat, dune, ess, spead, message{} are accepted with --config {}",
        options.format, names, options.config));
}

po::options_description describe(Options& options) {
    port::SimulatorConfig& simulator = options.simulator;
    const auto transport = [&simulator](const std::string& text) {
        simulator.transport = choice<SimulatedTransport>("transport", text,
                                                         {{"udp", SimulatedTransport::udp},
                                                          {"roce-send", SimulatedTransport::roce_send},
                                                          {"roce-write", SimulatedTransport::roce_write}});
    };
    const auto service = [&simulator](const std::string& text) {
        simulator.service = choice<wire::RoceTransport>(
            "service", text,
            {{"uc", wire::RoceTransport::uc}, {"rc", wire::RoceTransport::rc}, {"ud", wire::RoceTransport::ud}});
    };
    po::options_description all("options", 118);
    auto add = all.add_options();
    add("help,h", "this text");
    add("to", po::value(&options.to)->value_name("TARGET"), "where the frames go (--out is the same)");
    add("out", po::value(&options.to)->value_name("TARGET"), "the same as --to");
    add("format", po::value(&options.format)->value_name("NAME")->default_value("jungfrau"),
        "jungfrau, moench, eiger, ejfat, dune, ess, spead, message, or one that --config declares");
    add("config", po::value(&options.config)->value_name("FILE"),
        "a TOML file whose [[format]] tables --format may name; the rest of it is not looked at");
    add("transport", po::value<std::string>()->default_value("udp")->notifier(transport),
        "udp, roce-send or roce-write");
    add("sources", number_option("sources", &simulator.sources, "1"), "UDP ports or queue pairs that send");
    add("events", number_option("events", &simulator.events), "how many events; without it until Ctrl-C");
    add("duration", po::value(&options.duration_s)->value_name("S"), "stop after so many seconds");
    add("rate", po::value(&options.pace.events_per_s)->value_name("HZ"), "events per second");
    add("gbps", po::value(&options.pace.gbps)->value_name("G"),
        "rate on the wire instead, Gb/s with preamble, FCS and gap; without either as fast as the target takes them "
        "(stamps of a capture: 10 Gb/s)");
    add("bytes", number_option("bytes", &simulator.bytes_max),
        "messages of no fixed size: the largest, 20000 if not given; sizes are drawn evenly from");
    add("bytes-min", number_option("bytes-min", &simulator.bytes_min, "1"), "to --bytes");
    add("mtu", number_option("mtu", &simulator.mtu),
        "udp: IP MTU, 9000 if not given; RoCE: path MTU, 4096 if not given");
    describe_detectors(simulator, all);
    add("lb", po::value<unsigned>()->implicit_value(2)->value_name("2|3")->notifier([&simulator](unsigned version) {
        simulator.lb_version = static_cast<std::uint8_t>(std::min(version, 255U));
    }),
        "ejfat: with a load balancer header of this version");
    add("first-event", number_option("first-event", &simulator.first_event, "1"), "number of the first event");
    add("service", po::value<std::string>()->default_value("uc")->notifier(service),
        "RoCE: uc, rc (nobody acknowledges) or ud (roce-send, one packet per message)");
    add("first-psn", number_option("first-psn", &simulator.first_psn, "0"),
        "RoCE, dune, ess: packet number of every source's first packet");
    add("qp", number_option("qp", &simulator.queue_pair, "0x11"), "RoCE: queue pair of source 0, the others count on");
    add("no-immediate", po::bool_switch()->notifier([&simulator](bool off) { simulator.immediate = !off; }),
        "RoCE: without the event number as immediate");
    add("port", number_option("port", &simulator.port),
        "udp: port of source 0 (50001, ejfat 19522, ess 9000, spead 7148); the others count on");
    describe_addresses(simulator, all);
    describe_faults(simulator, all);
    add("report", po::value(&options.report)->value_name("FILE"), "write the account as JSON");
    add("quiet", po::bool_switch(&options.quiet), "nothing on the terminal");
    return all;
}

/// False when help was asked for and given.
bool read_options(const std::vector<std::string>& args, Options& options) {
    const po::options_description all = describe(options);
    po::variables_map given;
    // No abbreviations: a new option would change what an old command line means.
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(args).options(all).positional({}).style(style).run(), given);
    if (given.count("help") != 0) {
        std::cout << intro << all << examples;
        return false;
    }
    po::notify(given);
    choose_format(options);
    const auto require = [](bool holds, const std::string& text) {
        if (!holds) {
            throw UsageError("send: " + text + " (weir send --help)");
        }
    };
    require(given.count("to") + given.count("out") == 1,
            "one target is needed: --to FILE.pcap, udp:HOST or device:VDEV");
    require(given.count("rate") + given.count("gbps") <= 1, "--rate and --gbps exclude each other");
    require(given.count("rate") == 0 || options.pace.events_per_s > 0, "--rate must be more than 0");
    require(given.count("gbps") == 0 || options.pace.gbps > 0, "--gbps must be more than 0");
    require(given.count("duration") == 0 || options.duration_s > 0, "--duration must be more than 0");
    const bool live = options.to.starts_with("udp:") || options.to.starts_with("device:");
    require(!options.to.empty(), "--to is empty");
    require(live || options.simulator.events != 0, "a capture file needs --events");
    require(live || options.duration_s == 0, "--duration is for live targets; a capture file has --events");
    if (options.to.starts_with("udp:")) {
        for (const char* option : {"src-ip", "dst-ip", "src-mac", "dst-mac", "vlan"}) {
            require(given.count(option) == 0,
                    fmt::format("--{}: the kernel writes these headers for --to udp", option));
        }
    }
    return true;
}

std::unique_ptr<port::UdpTarget> open_udp(Options& options) {
    const std::string address = options.to.substr(4);
    const std::size_t colon = address.rfind(':');
    const std::string host = address.substr(0, colon);
    std::uint16_t base = 0;
    if (colon != std::string::npos) {
        base = static_cast<std::uint16_t>(number("to", address.substr(colon + 1), 65535));
    }
    if (host.empty()) {
        throw UsageError(fmt::format("send: --to {}: udp:HOST or udp:HOST:PORT is accepted", options.to));
    }
    if (base != 0 && options.simulator.port != 0 && base != options.simulator.port) {
        throw UsageError(
            fmt::format("send: --to {} and --port {} contradict each other", options.to, options.simulator.port));
    }
    return std::make_unique<port::UdpTarget>(host, base, options.simulator, stop_requested);
}

void show_progress(const port::Simulator& simulator, double seconds, std::uint64_t& last_bytes) {
    const port::SimulatorAccount::Source total = simulator.account().total();
    fmt::print(stderr, "\r{:6.0f} s  {} events  {} packets  {:.2f} Gb/s   ", seconds, simulator.account().events,
               total.emitted, static_cast<double>(total.frame_bytes - last_bytes) * 8e-9);
    std::fflush(stderr);
    last_bytes = total.frame_bytes;
}

json report_of(const Options& options, const port::Simulator& simulator, const port::PacedSender::Result& run,
               std::uint64_t lost) {
    const port::SimulatorConfig& config = simulator.config();
    const port::SimulatorAccount& account = simulator.account();
    const port::SimulatorAccount::Source total = account.total();
    const double seconds = run.seconds > 0 ? run.seconds : 1e-9;
    const bool roce = config.transport != SimulatedTransport::udp;
    json report;
    report["packets"] = {
        {"generated", total.generated},       {"dropped", total.dropped}, {"duplicated", total.duplicated},
        {"truncated", total.truncated},       {"refused", run.refused},   {"lost_by_target", lost},
        {"sent", total.emitted - run.refused}};
    report["bytes"] = {{"frames", total.frame_bytes}, {"messages", account.message_bytes}};
    report["events"] = {{"first", config.first_event},
                        {"sent", account.events},
                        {"whole", account.events_whole},
                        {"damaged", account.events_damaged},
                        {"empty", account.events_empty}};
    report["seconds"] = run.seconds;
    report["clock"] = options.to.starts_with("udp:") || options.to.starts_with("device:") ? "real" : "stamps";
    report["interrupted"] = run.interrupted;
    report["asked"] = {{"events_per_s", options.pace.events_per_s}, {"gbps", options.pace.gbps}};
    report["reached"] = {{"events_per_s", static_cast<double>(account.events) / seconds},
                         {"packets_per_s", static_cast<double>(total.emitted) / seconds},
                         {"gbps", static_cast<double>(total.frame_bytes) * 8e-9 / seconds}};
    report["schedule"] = {{"lag_ms_max", static_cast<double>(run.pacer.lag_ns_max()) * 1e-6},
                          {"slipped_ms", static_cast<double>(run.pacer.slipped_ns()) * 1e-6}};
    for (std::uint32_t id = 0; id < config.sources; ++id) {
        const port::SimulatorAccount::Source& source = account.sources[id];
        report["sources"].push_back({{"id", id},
                                     {roce ? "qp" : "port", simulator.endpoint(id)},
                                     {"generated", source.generated},
                                     {"dropped", source.dropped},
                                     {"duplicated", source.duplicated},
                                     {"truncated", source.truncated},
                                     {"emitted", source.emitted},
                                     {"bytes", source.frame_bytes}});
    }
    report["config"] = {{"to", options.to},
                        {"seed", config.seed},
                        {"sources", config.sources},
                        {"mtu", config.mtu},
                        {"reorder", config.reorder}};
    return report;
}

void print_summary(const json& report) {
    const json& packets = report["packets"];
    const json& events = report["events"];
    fmt::print("sent {} packets of {} events in {:.3f} s{}\n", packets["sent"].get<std::uint64_t>(),
               events["sent"].get<std::uint64_t>(), report["seconds"].get<double>(),
               report["clock"] == "stamps" ? " (as the capture's time stamps say)" : "");
    fmt::print("  {:.1f} events/s, {:.0f} packets/s, {:.3f} Gb/s of frames\n",
               report["reached"]["events_per_s"].get<double>(), report["reached"]["packets_per_s"].get<double>(),
               report["reached"]["gbps"].get<double>());
    fmt::print("  generated {} - dropped {} + duplicated {} = {}; {} of them truncated\n",
               packets["generated"].get<std::uint64_t>(), packets["dropped"].get<std::uint64_t>(),
               packets["duplicated"].get<std::uint64_t>(),
               packets["sent"].get<std::uint64_t>() + packets["refused"].get<std::uint64_t>(),
               packets["truncated"].get<std::uint64_t>());
    fmt::print("  events: {} whole, {} damaged on purpose ({} of them empty)\n", events["whole"].get<std::uint64_t>(),
               events["damaged"].get<std::uint64_t>(), events["empty"].get<std::uint64_t>());
    if (packets["refused"] != 0 || packets["lost_by_target"] != 0) {
        fmt::print("  NOT SENT: {} refused by the target, {} lost by it\n", packets["refused"].get<std::uint64_t>(),
                   packets["lost_by_target"].get<std::uint64_t>());
    }
    const double slipped_ms = report["schedule"]["slipped_ms"];
    constexpr double tolerated = 0.005;  // of the run; the report has it in any case
    if (slipped_ms * 1e-3 > tolerated * report["seconds"].get<double>()) {
        const double rate = report["asked"]["events_per_s"];
        const std::string asked =
            rate > 0 ? fmt::format("{:g} events/s, sent {:.1f}", rate, report["reached"]["events_per_s"].get<double>())
                     : fmt::format("{:g} Gb/s, sent {:.3f}", report["asked"]["gbps"].get<double>(),
                                   report["reached"]["gbps"].get<double>());
        fmt::print("  THE SENDER FELL BEHIND: asked {}; up to {:.1f} ms late, {:.1f} ms never caught up\n", asked,
                   report["schedule"]["lag_ms_max"].get<double>(), slipped_ms);
    }
}

void on_signal(int /*signal*/) {
    stop_requested.store(true, std::memory_order_relaxed);
}

/// SIGINT and SIGTERM ask the sender to stop, a second one ends it. No restart, so that a blocked system call returns.
void catch_signals() {
    stop_requested = false;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

void write_report(const std::string& path, const json& report) {
    std::ofstream file(path);
    file << report.dump(2) << '\n';
    if (!file.flush()) {
        throw core::RunError(fmt::format("send: cannot write the report {}", path));
    }
}

}  // namespace

int send_command(const std::vector<std::string>& args) {
    Options options;
    if (!read_options(args, options)) {
        return 0;
    }
    catch_signals();
    std::unique_ptr<port::UdpTarget> udp;
    if (options.to.starts_with("udp:")) {
        udp = open_udp(options);
    }
    port::Simulator simulator(options.simulator);
    const bool device = options.to.starts_with("device:");
    std::unique_ptr<port::FrameTarget> target;
    if (udp) {
        udp->prepare(simulator);
        target = std::move(udp);
    } else if (device) {
        target = port::open_device_target(options.to.substr(7), simulator, stop_requested);
    } else {
        target = port::open_capture_target(options.to, simulator.frame_bytes_max());
    }
    port::PacedSender::Config config{.pace = options.pace,
                                     .live = device || options.to.starts_with("udp:"),
                                     .duration_s = options.duration_s,
                                     .on_progress = {}};
    const bool progress = !options.quiet && ::isatty(STDERR_FILENO) == 1;
    std::uint64_t shown_bytes = 0;
    if (progress) {
        config.on_progress = [&](double seconds) { show_progress(simulator, seconds, shown_bytes); };
    }
    const port::PacedSender::Result run = port::PacedSender(simulator, *target, config, stop_requested).send();
    if (shown_bytes != 0) {
        fmt::print(stderr, "\n");
    }
    const json report = report_of(options, simulator, run, target->lost());
    if (!options.report.empty()) {
        write_report(options.report, report);
    }
    if (!options.quiet) {
        print_summary(report);
    }
    return 0;
}

}  // namespace weir::app

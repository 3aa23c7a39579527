#include "send_options.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <iostream>
#include <map>
#include <optional>

#include "config/run_config.hpp"
#include "core/error.hpp"
#include "send_text.hpp"
#include "terminal.hpp"

namespace weir::app {

std::uint64_t number_of(const char* option, const std::string& text, std::uint64_t limit) {
    try {
        std::size_t used = 0;
        const std::uint64_t value = std::stoull(text, &used, 0);
        if (used == text.size() && text[0] != '-' && value <= limit) {
            return value;
        }
    } catch (const std::logic_error&) {
    }
    throw core::UsageError(
        fmt::format("send: --{} {}: a number from 0 to {} is accepted (0x for hexadecimal)", option, text, limit));
}

namespace {

namespace po = boost::program_options;
using core::UsageError;
using simulate::SimulatedTransport;

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
        *to = static_cast<Number>(number_of(option, text, std::numeric_limits<Number>::max()));
    });
    if (!shown.empty()) {
        value->default_value(shown);
    }
    return value;
}

void describe_addresses(simulate::SimulatorConfig& simulator, po::options_description& all) {
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
    add("dst-mac", mac("dst-mac", &simulator.dst_mac),
        "(02:00:00:00:00:02; answered rc: by default who answers for --dst-ip)");
    add("vlan", number_option("vlan", &simulator.vlan), "VLAN id");
}

void describe_faults(simulate::SimulatorConfig& simulator, po::options_description& all) {
    auto add = all.add_options();
    add("seed", number_option("seed", &simulator.seed, "1"), "of contents, sizes and faults");
    add("drop", po::value(&simulator.drop)->value_name("P"), "probability that a packet is not sent");
    add("duplicate", po::value(&simulator.duplicate)->value_name("P"), "probability that it is sent twice");
    add("truncate", po::value(&simulator.truncate)->value_name("P"), "probability that it is cut short");
    add("corrupt", po::value(&simulator.corrupt)->value_name("P"), "RoCE: probability that one bit of it is flipped");
    add("reorder", number_option("reorder", &simulator.reorder), "places that a packet may move, either way");
}

void describe_detectors(simulate::SimulatorConfig& simulator, po::options_description& all) {
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
void choose_format(SendOptions& options) {
    const std::vector<std::string_view> own = simulate::simulated_names();
    if (options.config.empty()) {
        if (simulate::choose_format(options.simulator, options.format, {})) return;
        std::vector<std::string_view> sorted = own;
        std::ranges::sort(sorted);
        throw UsageError(fmt::format("send: --format {}: {} are accepted", options.format, fmt::join(sorted, ", ")));
    }
    if (std::ranges::find(own, options.format) != own.end()) {
        options.simulator.format = options.format;
        return;
    }
    const std::vector<wire::DeclaredSpec> described = config::load_formats(options.config);
    if (simulate::choose_format(options.simulator, options.format, described)) return;
    std::string names;
    for (const wire::DeclaredSpec& spec : described) names += ", " + spec.name;
    throw UsageError(fmt::format("send: --format {}: {}{} are accepted with --config {}", options.format,
                                 fmt::join(own, ", "), names, options.config));
}

void describe_roce(simulate::SimulatorConfig& simulator, po::options_description& all) {
    const auto service = [&simulator](const std::string& text) {
        simulator.service = choice<wire::RoceTransport>(
            "service", text,
            {{"uc", wire::RoceTransport::uc}, {"rc", wire::RoceTransport::rc}, {"ud", wire::RoceTransport::ud}});
    };
    auto add = all.add_options();
    add("service", po::value<std::string>()->default_value("uc")->notifier(service),
        "RoCE: uc, rc (to a device: until everything is acknowledged) or ud (roce-send, one packet per message)");
    add("first-psn", number_option("first-psn", &simulator.first_psn, "0"),
        "RoCE, dune, ess: packet number of every source's first packet");
    add("psn", number_option("psn", &simulator.first_psn), "the same as --first-psn");
    add("qp", number_option("qp", &simulator.queue_pair, "0x11"),
        "RoCE: the receiver's queue pair for source 0, the others count on");
    add("va", number_option("va", &simulator.va),
        "roce-write: address of the buffer of source 0 (0x10000000), the others 0x10000000 apart");
    add("rkey", number_option("rkey", &simulator.rkey), "roce-write: key of all buffers (0x1234)");
    add("regions", number_option("regions", &simulator.regions),
        "roce-write: buffers of each source, which its messages go to in turn (1)");
    add("region-stride", number_option("region-stride", &simulator.region_stride),
        "roce-write: bytes from one buffer to the next (those of a message)");
    add("write-bytes", number_option("write-bytes", &simulator.write_bytes),
        "roce-write of frames: pixels of a WRITE in bytes (the rows that a packet holds); "
        "as many as a frame has: one WRITE");
    add("readout-chips", number_option("readout-chips", &simulator.readout_chips),
        "roce-write of frames: parts of a frame that take turns to be written (4)");
    add("no-immediate", po::bool_switch()->notifier([&simulator](bool off) { simulator.immediate = !off; }),
        "RoCE: without the event number as immediate");
}

/// What only a sender that waits for acknowledgements has.
constexpr std::array<const char*, 8> reliable_options = {"window", "depth",     "ack-every", "timeout",
                                                         "retry",  "rnr-retry", "local-qp",  "drop-answers"};

void describe_reliable(SendOptions& options, po::options_description& all) {
    simulate::RcSender::Config& rc = options.rc;
    auto add = all.add_options();
    add("connect", po::value(&options.connect)->value_name("HOST[:PORT]"),
        "answered rc, verbs: agree on queue pairs, "
        "packet numbers and buffers by perftest's exchange with a weir run that has exchange = \"perftest\" (18515)");
    add("unanswered", po::bool_switch(&options.unanswered),
        "rc to a device: nobody acknowledges, nothing is sent again (as to a capture or a kernel socket)");
    add("window", number_option("window", &rc.window),
        "answered rc: packets of a queue pair that may wait for an acknowledgement (128)");
    add("depth", number_option("depth", &rc.depth),
        "answered rc: events under way at once, and what a source may be ahead of another (8)");
    add("ack-every", number_option("ack-every", &rc.ack_every),
        "answered rc: packets until an acknowledgement is asked for in the middle of a message (64)");
    add("timeout", po::value(&options.timeout_ms)->value_name("MS"),
        "answered rc: without an acknowledgement for so long packets are sent again (67.1); doubles up to 16 times");
    add("retry", number_option("retry", &rc.retries),
        "answered rc: how often that is done without any progress before the queue pair fails (7)");
    add("rnr-retry", number_option("rnr-retry", &rc.rnr_retries),
        "answered rc: waits for a receiver that is not ready, 0 to 6; 7 for ever (7)");
    add("local-qp", number_option("local-qp", &rc.local_qp),
        "answered rc: our queue pair for source 0, the others count on (the same as --qp)");
    add("drop-answers", po::value(&rc.drop_answers)->value_name("P"),
        "answered rc: probability that an answer is lost on its way");
}

po::options_description describe(SendOptions& options) {
    simulate::SimulatorConfig& simulator = options.simulator;
    const auto transport = [&simulator, &options](const std::string& text) {
        simulator.transport = choice<SimulatedTransport>("transport", text,
                                                         {{"udp", SimulatedTransport::udp},
                                                          {"roce-send", SimulatedTransport::roce_send},
                                                          {"roce-write", SimulatedTransport::roce_write},
                                                          {"verbs-send", SimulatedTransport::roce_send},
                                                          {"verbs-write", SimulatedTransport::roce_write}});
        options.verbs = text.starts_with("verbs-");
    };
    po::options_description all = options_for_terminal("options");
    auto add = all.add_options();
    add("help,h", "this text");
    add("to", po::value(&options.to)->value_name("TARGET"), "where the frames go (--out is the same)");
    add("out", po::value(&options.to)->value_name("TARGET"), "the same as --to");
    add("format", po::value(&options.format)->value_name("NAME")->default_value("jungfrau"),
        "jungfrau, moench, eiger, ejfat, dune, ess, spead, message, or one that --config declares");
    add("config", po::value(&options.config)->value_name("FILE"),
        "a TOML file whose [[format]] tables --format may name; the rest of it is not looked at");
    add("transport", po::value<std::string>()->default_value("udp")->notifier(transport),
        "udp, roce-send or roce-write; verbs-send or verbs-write through an RDMA adapter (--to verbs:DEVICE)");
    add("sources", number_option("sources", &simulator.sources, "1"), "UDP ports or queue pairs that send");
    add("events", number_option("events", &simulator.events), "how many events; without it until Ctrl-C");
    add("queues", number_option("queues", &options.queues, "1"),
        "transmit queues of a device, batch after batch; 1 to 16");
    add("duration", po::value(&options.duration_s)->value_name("S"), "stop after so many seconds");
    add("rate", po::value(&options.pace.events_per_s)->value_name("HZ"), "events per second");
    add("gbps", po::value(&options.pace.gbps)->value_name("G"),
        "rate on the wire instead, Gb/s with preamble, FCS and gap; "
        "without either as fast as the target takes them (stamps of a capture: 10 Gb/s)");
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
    add("re", po::value<unsigned>()->value_name("1|2")->notifier([&simulator](unsigned version) {
        simulator.re_version = static_cast<std::uint8_t>(std::min(version, 255U));
    }),
        "ejfat: version of the reassembly header, 1 if not given");
    add("first-event", number_option("first-event", &simulator.first_event, "1"), "number of the first event");
    add("port", number_option("port", &simulator.port),
        "udp: port of source 0 (50001, ejfat 19522, ess 9000, spead 7148); the others count on");
    describe_roce(simulator, all);
    describe_reliable(options, all);
    describe_addresses(simulator, all);
    describe_faults(simulator, all);
    add("report", po::value(&options.report)->value_name("FILE"), "write the account as JSON");
    add("digests", po::bool_switch(&options.digests),
        "answered rc: with SHA-256 of every acknowledged event in the account, as weir inspect prints it");
    add("quiet", po::bool_switch(&options.quiet), "nothing on the terminal");
    return all;
}

void require(bool holds, const std::string& text) {
    if (!holds) throw UsageError("send: " + text + " (weir send --help)");
}

/// Which RoCE options go together.
void check_roce_options(const po::variables_map& given, const SendOptions& options) {
    require(given.count("psn") == 0 || given["first-psn"].defaulted(), "--psn and --first-psn are the same option");
    const bool roce = options.simulator.transport != SimulatedTransport::udp;
    require(!options.unanswered || (roce && options.to_device()), "--unanswered goes with RoCE to a device");
    for (const char* option : {"va", "rkey"})
        require(given.count(option) == 0 || options.simulator.transport == SimulatedTransport::roce_write,
                fmt::format("--{} goes with --transport roce-write", option));
    require(options.verbs == options.to_verbs(),
            "--transport verbs-send and verbs-write go with --to verbs:DEVICE, and nothing else does");
    require(!options.verbs || !options.connect.empty(),
            "--to verbs:... needs --connect HOST[:PORT]: the adapter chooses our queue pairs");
    const bool acknowledged = options.answered() || options.verbs;
    for (const char* option : reliable_options)
        require(given.count(option) == 0 || acknowledged,
                fmt::format("--{} goes with --service rc --to device:..., where messages are acknowledged", option));
    require(options.connect.empty() || acknowledged,
            "--connect goes with --service rc --to device:... and with --to verbs:...");
    require(!options.digests || acknowledged,
            "--digests goes with --service rc --to device:... and with --to verbs:...");
    if (!options.connect.empty()) {
        for (const char* option : {"va", "rkey", "dst-ip"})
            require(given.count(option) == 0,
                    fmt::format("--{} and --connect contradict each other: the receiver says it", option));
        require(options.verbs || !options.simulator.ipv6, "--connect: IPv4 addresses are accepted");
    }
    if (options.verbs)
        for (const char* option : {"drop", "duplicate", "truncate", "corrupt", "drop-answers", "window", "ack-every",
                                   "local-qp", "gbps", "vlan", "src-ip", "src-mac", "dst-mac", "src-port"})
            require(given.count(option) == 0,
                    fmt::format("--{}: the adapter makes the packets of --to verbs:...", option));
}

}  // namespace

bool read_send_options(const std::vector<std::string>& args, SendOptions& options) {
    const po::options_description all = describe(options);
    po::variables_map given;
    // No abbreviations: a new option would change what an old command line means.
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(args).options(all).positional({}).style(style).run(), given);
    if (given.count("help") != 0) {
        print_help(send_intro, all, send_examples);
        return false;
    }
    po::notify(given);
    choose_format(options);
    require(given.count("to") + given.count("out") == 1,
            "one target is needed: --to FILE.pcap, udp:HOST, device:VDEV or verbs:DEVICE");
    require(given.count("rate") + given.count("gbps") <= 1, "--rate and --gbps exclude each other");
    require(given.count("rate") == 0 || options.pace.events_per_s > 0, "--rate must be more than 0");
    require(given.count("gbps") == 0 || options.pace.gbps > 0, "--gbps must be more than 0");
    require(options.queues >= 1 && options.queues <= 16, "--queues: 1 to 16 are accepted");
    require(options.queues == 1 || (options.to_device() && !options.answered()),
            "--queues is for devices, without --service rc");
    require(given.count("duration") == 0 || options.duration_s > 0, "--duration must be more than 0");
    const bool live = options.live();
    require(!options.to.empty(), "--to is empty");
    require(live || options.simulator.events != 0, "a capture file needs --events");
    require(live || options.duration_s == 0, "--duration is for live targets; a capture file has --events");
    if (options.to_udp()) {
        for (const char* option : {"src-ip", "dst-ip", "src-mac", "dst-mac", "vlan"}) {
            require(given.count(option) == 0,
                    fmt::format("--{}: the kernel writes these headers for --to udp", option));
        }
    }
    check_roce_options(given, options);
    require(given.count("timeout") == 0 || options.timeout_ms > 0, "--timeout must be more than 0");
    if (options.timeout_ms > 0) options.rc.timeout_ns = static_cast<core::TimeNs>(options.timeout_ms * 1e6);
    options.rc.pace = options.pace;
    options.rc.duration_s = options.duration_s;
    options.dst_mac_given = given.count("dst-mac") != 0;
    return true;
}

}  // namespace weir::app

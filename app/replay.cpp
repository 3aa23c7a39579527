#include "command.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>

#include "core/error.hpp"
#include "options_common.hpp"
#include "replay_to_wire.hpp"
#include "resend/rewrite_text.hpp"
#include "serve/shown_run.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

constexpr const char* replay_usage = R"(weir replay CAPTURE... --config FILE [options]
weir replay CAPTURE... --to device:DEVICE|udp:HOST[:PORT] [options]

Turns captures (pcap or pcapng, microseconds or nanoseconds, either byte order) into events, through the same pipeline as
`weir run`. Time is the capture's: time-outs fall where they would have fallen, whatever the pace. The reader waits for
the pipeline, so nothing is lost for want of room; with --drop it does not wait, like a NIC. Several captures are merged
by time. A capture that is cut off is processed up to the cut. gzip and zstd are recognised by content; "-" is standard
input. --from and --to choose records by their stamps: from the first moment on, up to but not at the second; what lies
outside is no part of the account. With --loop each pass goes on after the one before, in time and in event numbers.

With --to device:... or --to udp:... nothing is made of the packets: they are sent, with the captures' timing unless
--pace says otherwise, and the summary tells how well that was kept to. A device gets whole frames, a socket the payloads
of whole UDP datagrams, which keep their destination port. --rewrite puts other addresses into frames. What is not sent is
counted by its reason. With --loop packets are repeated as they are, event numbers included.

Examples:
  weir replay run7.pcap --config det.toml --out run7 --report run7.json
  weir replay run7.pcap --config det.toml --pace recorded --drop
  weir replay run7.pcap.zst --config det.toml --from +1.5s --to +2s
  weir replay left.pcap right.pcap --port det0 --port det1 --config two-ports.toml --loop 100
  weir replay run7.pcap --to udp:10.1.0.2 --pace x0.5
  weir replay run7.pcap --to device:0000:3b:00.1 --rewrite dst-mac=02:00:00:00:00:02,dst-ip=10.1.0.2 --loop 10

)";

stages::Pace pace_of(const std::string& text) {
    if (text == "max") return {0};
    if (text == "recorded") return {1};
    if (text.size() > 1 && text.front() == 'x') {
        std::size_t used = 0;
        double speed = 0;
        try {
            speed = std::stod(text.substr(1), &used);
        } catch (const std::exception&) {
            used = 0;
        }
        if (used == text.size() - 1 && std::isfinite(speed) && speed > 0) return {speed};
    }
    throw core::UsageError("--pace: found '" + text + "'; accepted: max, recorded, or xN with N above 0, such as x0.5");
}

std::uint32_t loop_of(std::uint32_t loop, const std::vector<std::string>& files) {
    constexpr std::uint32_t loop_max = 1'000'000;
    if (loop == 0 || loop > loop_max)
        throw core::UsageError("--loop: found " + std::to_string(loop) + "; accepted: 1 to " +
                               std::to_string(loop_max));
    std::error_code error;
    for (const std::string& file : files)
        if (loop > 1 &&
            (file == "-" || (std::filesystem::exists(file, error) && !std::filesystem::is_regular_file(file, error))))
            throw core::UsageError("--loop: " + file + " is not a file, and can be read only once");
    return loop;
}

/// The values of --to: a moment, a destination, or one of each.
struct To {
    std::optional<std::string> moment;
    std::optional<std::string> destination;
};

To to_of(const po::variables_map& given) {
    To to;
    if (given.count("to") == 0) return to;
    for (const std::string& text : given["to"].as<std::vector<std::string>>()) {
        std::optional<std::string>& place = resend::is_destination(text) ? to.destination : to.moment;
        if (place)
            throw core::UsageError("--to: found '" + *place + "' and '" + text +
                                   "'; accepted: one moment at which records end (+2s), and one destination "
                                   "(device:..., udp:...)");
        place = text;
    }
    return to;
}

po::options_description replay_options() {
    po::options_description description = options_for_terminal("Options");
    add_common_options(description);
    // clang-format off
    description.add_options()
        ("pace", po::value<std::string>()->default_value("max")->value_name("max|recorded|xN"), "how fast; recorded is the default with a destination")
        ("loop", po::value<std::uint32_t>()->default_value(1)->value_name("N"), "read the captures N times, each pass after the one before in time and in event numbers")
        ("drop", "do not wait for the pipeline: lose what finds no room, and count it")
        ("answers", po::value<std::string>()->value_name("FILE"), "a new pcap file with what weir would have sent back: the acknowledgements of queue pairs with a `service`")
        ("from", po::value<std::string>()->value_name("T"), "skip records before: +1.5s after the first record, seconds since 1970, or 2026-11-21T13:05:00.25Z")
        ("to", po::value<std::vector<std::string>>()->value_name("T|DEST"), "skip records from that moment on; or, for device:VDEV[,ARGS], device:PCI, udp:HOST[:PORT], send the packets there and make no events. Can be given once for each")
        ("rewrite", po::value<std::vector<std::string>>()->value_name("KEY=VALUE,..."), "for a destination: dst-mac, src-mac, dst-ip, src-ip, and dst-port=PORT or FROM:TO (all that udp:... takes). Checksums and the iCRC of RoCE follow")
        ("mtu", po::value<std::uint32_t>()->value_name("N"), "for device:...: longer IP packets are not sent. Default: that of the kernel interface behind net_af_packet, else 9000")
        ("port", po::value<std::vector<std::string>>()->value_name("NAME"), "whose streams the captures are for, once for all or once for each in order; default: the first port (devices are not used)");
    // clang-format on
    return description;
}

int replay_command(const std::vector<std::string>& args) {
    const po::options_description description = replay_options();
    po::options_description hidden;
    hidden.add_options()("capture", po::value<std::vector<std::string>>());
    po::options_description all;
    all.add(description).add(hidden);
    const po::variables_map given = parse(args, all, "capture");
    if (given.count("help") > 0) {
        print_help(replay_usage, description);
        return 0;
    }
    if (given.count("capture") == 0) throw core::UsageError("weir replay needs a capture file (weir replay --help)");
    stages::CaptureFeeder::Config capture;
    capture.files = given["capture"].as<std::vector<std::string>>();
    capture.pace = pace_of(given["pace"].as<std::string>());
    capture.wait = given.count("drop") == 0;
    capture.loop = loop_of(given["loop"].as<std::uint32_t>(), capture.files);
    if (given.count("from") > 0) capture.from = stages::parse_time_bound("--from", given["from"].as<std::string>());
    const To to = to_of(given);
    if (to.moment) capture.to = stages::parse_time_bound("--to", *to.moment);
    if (std::ranges::count(capture.files, "-") > 1)
        throw core::UsageError("weir replay: found - twice; standard input can be read only once");
    if (to.destination) {
        if (given["pace"].defaulted()) capture.pace = {1};
        return replay_to_wire(given, *to.destination, capture);
    }
    for (const char* name : {"rewrite", "mtu"})
        if (given.count(name) > 0)
            throw core::UsageError(std::string("--") + name +
                                   " is for packets that are sent: give --to device:... or --to udp:...");
    run::RunOptions options = run_options(given, "replay");
    if (given.count("answers") > 0) options.answers = given["answers"].as<std::string>();
    if (given.count("port") > 0) options.ports = given["port"].as<std::vector<std::string>>();
    options.capture = std::move(capture);
    const serve::ShownRun shown(options);
    return run::execute_run(std::move(options));
}

}  // namespace

Command replay_entry() {
    return {"replay", "the same pipeline fed from pcap or pcapng files; or their packets onto a wire", replay_command};
}

}  // namespace weir::app

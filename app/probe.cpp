// `weir probe`: from a capture, or a port, to a configuration that runs.
#include "command.hpp"

#include <unistd.h>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "options_common.hpp"
#include "probe/find.hpp"
#include "probe/findings_text.hpp"
#include "probe/packet_view.hpp"
#include "probe_input.hpp"
#include "probe_replay.hpp"
#include "probe_trial.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

constexpr const char* probe_usage = R"(weir probe CAPTURE|PORT [options]

Looks at a capture (pcap or pcapng, gzip, zstd, "-" for standard input), or listens on a port for some seconds: which
transports, formats and sources are there, how they are set up, and what is missing already. Prints a configuration
with comments that runs as it is (standard output), and what it saw and why (standard error). What it proposes it has
tried on these packets, and says what came out. The first 200,000 packets or 2 GB are looked at. PORT is an interface
of the kernel (eth1), a PCI address, or a virtual device of DPDK.

Exit status: 0 a configuration was proposed, 1 there is none to propose, or it cannot be read.

Examples:
  weir probe run7.pcap > det.toml
  weir probe run7.pcap --replay --out run7
  weir probe run7.pcap --packet 17
  weir probe run7.pcap --formats formats/srs.toml
  weir probe eth1 --seconds 10 > det.toml

)";

struct Asked {
    std::string input;
    bool json = false;
    bool replay = false;
    std::string out;
    KeptFrame packet;
    ListenFor listen;
    bool listen_given = false;
    std::vector<wire::DeclaredSpec> formats;
};

Asked asked_for(const po::variables_map& given) {
    Asked out;
    const auto inputs = given["input"].as<std::vector<std::string>>();
    if (inputs.size() != 1)
        throw core::UsageError("weir probe: found " + std::to_string(inputs.size()) + " captures; accepted: one");
    out.input = inputs.front();
    out.json = given.count("json") > 0;
    out.replay = given.count("replay") > 0;
    if (given.count("out") > 0) out.out = given["out"].as<std::string>();
    if (!out.out.empty() && !out.replay) throw core::UsageError("--out goes with --replay: where its run is written");
    if (given.count("packet") > 0) {
        out.packet.number = given["packet"].as<std::uint64_t>();
        if (out.packet.number == 0)
            throw core::UsageError("--packet: found 0; accepted: 1 for the first packet, and on");
        if (out.replay) throw core::UsageError("--packet shows one packet, --replay all: give one of them");
    }
    if (given.count("seconds") > 0) {
        out.listen.seconds = given["seconds"].as<double>();
        constexpr double seconds_most = 86400;
        if (!std::isfinite(out.listen.seconds) || out.listen.seconds <= 0 || out.listen.seconds > seconds_most)
            throw core::UsageError("--seconds: accepted: more than 0, at most 86400");
        out.listen_given = true;
    }
    if (given.count("packets") > 0) {
        out.listen.packets = given["packets"].as<std::uint64_t>();
        if (out.listen.packets == 0) throw core::UsageError("--packets: found 0; accepted: 1 and more");
        out.listen_given = true;
    }
    if (given.count("formats") > 0)
        for (const std::string& file : given["formats"].as<std::vector<std::string>>())
            for (wire::DeclaredSpec& spec : config::load_formats(file)) out.formats.push_back(std::move(spec));
    return out;
}

/// A file, or standard input; a name that is both a file and an interface is the file.
bool is_capture(const std::string& input) {
    std::error_code error;
    return input == "-" || std::filesystem::exists(input, error);
}

void check_device(const Asked& asked, const std::string& device) {
    if (device.empty())
        throw core::RunError(asked.input +
                             ": there is no such capture, and no such interface; accepted: a file, \"-\", an "
                             "interface of the kernel, a PCI address, or a virtual device (net_...)");
    if (asked.replay) throw core::UsageError("--replay needs a capture: what came to a port is gone");
}

int show_packet(const Asked& asked, const probe::PacketSample& sample, const probe::Findings& findings) {
    if (!asked.packet.found)
        throw core::RunError(asked.input + ": there is no packet " + std::to_string(asked.packet.number) + "; it has " +
                             std::to_string(findings.packets));
    const probe::PacketView view = probe::view_packet(asked.packet.bytes, asked.packet.wire_bytes, sample, findings);
    if (asked.json)
        std::cout << probe::view_json(view).dump(2) << '\n';
    else
        std::cout << "packet " << asked.packet.number << ", " << asked.packet.wire_bytes << " bytes\n"
                  << "  offset, bytes, field, value\n"
                  << probe::view_text(view);
    return 0;
}

std::string run_path(const Asked& asked) {
    if (!asked.out.empty()) return asked.out;
    std::string stem = std::filesystem::path(asked.input).filename().string();
    return stem.substr(0, stem.find('.')) + "-run";
}

int probe_command(const std::vector<std::string>& args) {
    po::options_description description = options_for_terminal("Options");
    // clang-format off
    description.add_options()
        ("json", "print what was found as JSON, with the configuration in it, instead of the configuration")
        ("packet", po::value<std::uint64_t>()->value_name("N"), "show the N-th packet field by field, beside what its format expects, and what is wrong with it")
        ("replay", "go straight on: replay the capture with what was proposed, and draw the first complete image")
        ("out", po::value<std::string>()->value_name("PATH"), "with --replay: the run directory; the picture is PATH.png; default: the capture's name with -run")
        ("formats", po::value<std::vector<std::string>>()->value_name("FILE"), "also try the [[format]] tables of this file")
        ("seconds", po::value<double>()->value_name("S"), "with a port: listen for so long (5)")
        ("packets", po::value<std::uint64_t>()->value_name("N"), "with a port: listen for so many packets at most")
        ("help,h", "this text");
    po::options_description hidden;
    hidden.add_options()("input", po::value<std::vector<std::string>>());
    // clang-format on
    po::options_description all;
    all.add(description).add(hidden);
    const po::variables_map given = parse(args, all, "input");
    if (given.count("help") > 0) {
        print_help(probe_usage, description);
        return 0;
    }
    if (given.count("input") == 0) throw core::UsageError("weir probe needs a capture or a port (weir probe --help)");
    Asked asked = asked_for(given);
    const bool capture = is_capture(asked.input);
    const std::string device = capture ? "" : device_of(asked.input);
    if (!capture) check_device(asked, device);
    if (capture && asked.listen_given)
        throw core::UsageError("--seconds and --packets are for listening on a port; " + asked.input + " is a capture");
    if (capture && asked.replay && !std::filesystem::is_regular_file(asked.input))
        throw core::UsageError("--replay reads the capture a second time, and " + asked.input + " is not a file");

    probe::PacketSample sample;
    const ProbeInput input =
        capture ? read_capture(asked.input, sample, asked.packet) : listen(device, asked.listen, sample, asked.packet);
    probe::Findings findings = probe::find(sample, asked.formats);
    findings.input = asked.input == "-" ? "standard input" : asked.input;
    findings.sample_only = input.sample_only;
    findings.cut_off = input.cut_off;
    if (asked.packet.number != 0) return show_packet(asked, sample, findings);

    const std::string proposed = propose_tried(findings, sample, device);
    if (asked.json) {
        nlohmann::json json = probe::findings_json(findings);
        json["configuration"] = proposed.empty() ? nlohmann::json() : nlohmann::json(proposed);
        std::cout << json.dump(2) << '\n';
    } else {
        core::say_text(wrapped(probe::findings_text(findings), columns_of(STDERR_FILENO)));
        std::cout << proposed << std::flush;
    }
    if (!findings.recognised()) return 1;
    return asked.replay ? replay_proposal(asked.input, proposed, run_path(asked)) : 0;
}

}  // namespace

Command probe_entry() {
    return {"probe", "what is in a capture or on a port, as a configuration that runs", probe_command};
}

}  // namespace weir::app

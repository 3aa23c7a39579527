#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.hpp"
#include "config/run_config.hpp"
#include "core/error.hpp"
#include "core/nearest.hpp"
#include "doctor/examine.hpp"
#include "doctor/page.hpp"
#include "doctor_fix.hpp"
#include "doctor_text.hpp"
#include "options/text.hpp"
#include "options_common.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

constexpr const char* doctor_usage = R"(weir doctor [--config FILE] [--rate RATE] [options]

Looks for what makes packets drop: hugepages, drivers, PCIe, NUMA, isolation, interrupts, power management, flow rules, clocks, limits, disks. Each finding says what it costs, how sure that is, and the command that mends it. Devices are opened for a moment and a file without a name is written to each sink's disk (two seconds, 1 GiB at most), so let no run be under way; --passive only reads.

With --rate the host is judged for a detector that is not there yet; without --config for any.

Examples:
  weir doctor --config det.toml
  weir doctor --config det.toml --rate 100Gb/s
  weir doctor --config det.toml --fix                     mend what is safe, asking each time
  weir doctor --config det.toml --only disk_rate --json
  weir doctor --sizing                                    lcores, memory and disk by rate

Exit status: 0, and 1 when a run would surely lose data or not start.

)";

void describe_options(po::options_description& description) {
    // clang-format off
    description.add_options()
        ("config", po::value<std::string>()->value_name("FILE"), "the run that the host is for")
        ("rate", po::value<std::string>()->value_name("RATE"), "expected from the detector: 100Gb/s, 12.5GB/s")
        ("packet", po::value<std::string>()->value_name("SIZE"), "of a frame, instead of what the configuration says")
        ("event", po::value<std::string>()->value_name("SIZE"), "of an event, likewise; for example 8MiB")
        ("events-rate", po::value<double>()->value_name("N"), "events per second, instead of what rate and size make")
        ("only", po::value<std::vector<std::string>>()->value_name("CHECK"), "this check; several times for several")
        ("passive", "open no device, write nothing")
        ("watch", po::value<double>()->default_value(2)->value_name("S"), "wait so long for packets that flow rules are for")
        ("fix", "do what mends it and is safe; asks before each")
        ("yes", "do not ask")
        ("json", "findings as JSON")
        ("list", "all checks, and what each looks at")
        ("sizing", "a table: rate, packet and event size to lcores, memory and disk; with --rate of that alone")
        ("page", po::value<std::string>()->value_name("FILE"), "FILE with its tables as this program has them (docs/guides/DOCTOR.md, SIZING.md)")
        ("root", po::value<std::string>()->default_value("/")->value_name("DIR"), "of a recorded machine: its /sys and /proc are below")
        ("help,h", "this text");
    // clang-format on
}

std::uint64_t size_option(const po::variables_map& given, const char* name) {
    if (given.count(name) == 0) return 0;
    const auto& text = given[name].as<std::string>();
    const auto bytes = options::parse_size(text);
    constexpr std::uint64_t most = std::uint64_t{1} << 40U;
    if (!bytes || *bytes == 0 || *bytes > most)
        throw core::UsageError(fmt::format("--{}: found '{}'; accepted: a size, as 8240 or 8MiB", name, text));
    return *bytes;
}

doctor::Load load_of(const po::variables_map& given) {
    doctor::Load load;
    if (given.count("rate") > 0) load.bits_per_s = doctor::parse_bit_rate(given["rate"].as<std::string>(), "--rate");
    const std::uint64_t packet = size_option(given, "packet");
    constexpr std::uint64_t packet_min = 64;
    constexpr std::uint64_t packet_max = 65535;
    if (packet != 0 && (packet < packet_min || packet > packet_max))
        throw core::UsageError(
            fmt::format("--packet: found {}; accepted: {} to {} bytes", packet, packet_min, packet_max));
    load.packet_bytes = static_cast<std::uint32_t>(packet);
    load.event_bytes = size_option(given, "event");
    if (given.count("events-rate") > 0) {
        load.events_per_s = given["events-rate"].as<double>();
        if (!(load.events_per_s > 0) || load.events_per_s > 1e12)
            throw core::UsageError("--events-rate: accepted: a number above 0");
    }
    if (!load.known() && load.events_per_s > 0 && load.event_bytes > 0)
        load.bits_per_s = load.events_per_s * static_cast<double>(load.event_bytes) * 8;
    return load;
}

std::vector<std::string> chosen_checks(const po::variables_map& given) {
    if (given.count("only") == 0) return {};
    std::vector<std::string> names;
    for (const doctor::Check& check : doctor::checks()) names.emplace_back(check.name);
    auto only = given["only"].as<std::vector<std::string>>();
    for (const std::string& name : only) {
        if (std::ranges::find(names, name) != names.end()) continue;
        const std::vector<std::string> near = core::similar_names(name, names);
        throw core::UsageError(fmt::format("--only: there is no check '{}'{} (weir doctor --list)", name,
                                           near.empty() ? "" : "; did you mean " + near.front()));
    }
    return only;
}

doctor::ExamineOptions examine_options(const po::variables_map& given) {
    doctor::ExamineOptions options;
    options.root = std::filesystem::absolute(given["root"].as<std::string>()).lexically_normal();
    if (std::error_code error; !std::filesystem::is_directory(options.root, error))
        throw core::UsageError(
            fmt::format("--root: found '{}'; accepted: a folder with sys and proc in it", options.root.string()));
    options.load = load_of(given);
    options.passive = given.count("passive") > 0;
    options.watch_s = given["watch"].as<double>();
    constexpr double watch_max = 600;
    if (!(options.watch_s >= 0) || options.watch_s > watch_max)
        throw core::UsageError(fmt::format("--watch: found {}; accepted: 0 to {} seconds", options.watch_s, watch_max));
    options.only = chosen_checks(given);
    return options;
}

void print_checks() {
    std::string_view group;
    for (const doctor::Check& check : doctor::checks()) {
        if (check.group != group) std::cout << (group.empty() ? "" : "\n") << check.group << "\n";
        group = check.group;
        std::cout << wrapped(fmt::format("  {:<18}{}{}", check.name, check.looks_at,
                                         check.at_start ? "; a run that fails it does not start" : ""),
                             columns_of(STDOUT_FILENO), 18)
                  << "\n";
    }
}

void print_sizing(const po::variables_map& given) {
    doctor::Load load = load_of(given);
    if (!load.known()) {
        std::cout << doctor::sizing_markdown(std::nullopt) << "\n";
    } else {
        if (load.packet_bytes == 0) load.packet_bytes = 8240;
        if (load.event_bytes == 0) load.event_bytes = std::uint64_t{1} << 20U;
        std::cout << doctor::sizing_markdown(load) << "\n";
    }
    std::cout << wrapped(doctor::sizing_basis(), columns_of(STDOUT_FILENO), 0) << "\n";
}

void print_page(const std::string& file) {
    std::ifstream in(file);
    if (!in) throw core::UsageError(fmt::format("--page: {} cannot be read", file));
    std::cout << doctor::filled_page(std::string(std::istreambuf_iterator<char>(in), {}));
}

void print_findings(const std::vector<doctor::Finding>& findings, bool json) {
    if (json)
        std::cout << findings_json(findings).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    else
        std::cout << findings_text(findings, columns_of(STDOUT_FILENO)) << summary_text(findings);
    std::cout << std::flush;  // before devices are opened again, in another process
}

int examine_host(const po::variables_map& given) {
    const doctor::ExamineOptions options = examine_options(given);
    const bool json = given.count("json") > 0;
    const bool fix = given.count("fix") > 0;
    if (json && fix) throw core::UsageError("--json and --fix: give one of them; what is fixed is said in words");
    if (given.count("yes") > 0 && !fix) throw core::UsageError("--yes belongs to --fix");
    std::optional<config::RunConfig> config;
    if (given.count("config") > 0) config = config::load_config(given["config"].as<std::string>());
    doctor::Examination examination(config ? &*config : nullptr, options);
    std::vector<doctor::Finding> findings = examination.look();
    print_findings(findings, json);
    if (fix && fix_findings(findings, options.root, given.count("yes") == 0) > 0) {
        std::cout << "\nand once more:\n\n";
        findings = examination.look();
        print_findings(findings, false);
    }
    return any_error(findings) ? 1 : 0;
}

int doctor_command(const std::vector<std::string>& args) {
    po::options_description description = options_for_terminal("Options");
    describe_options(description);
    const po::variables_map given = parse(args, description, nullptr);
    if (given.count("help") > 0) {
        print_help(doctor_usage, description);
    } else if (given.count("list") > 0) {
        print_checks();
    } else if (given.count("sizing") > 0) {
        print_sizing(given);
    } else if (given.count("page") > 0) {
        print_page(given["page"].as<std::string>());
    } else {
        return examine_host(given);
    }
    return 0;
}

}  // namespace

Command doctor_entry() {
    return {"doctor", "what makes packets drop on this host, and how to mend it", doctor_command};
}

}  // namespace weir::app

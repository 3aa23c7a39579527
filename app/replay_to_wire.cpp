#include "replay_to_wire.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stop_token>
#include <thread>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "interrupt.hpp"
#include "resend/resender.hpp"
#include "wire_report.hpp"

namespace weir::app {

namespace po = boost::program_options;
using resend::Resender;

namespace {

constexpr std::uint32_t mtu_min = 68;     // RFC 791
constexpr std::uint32_t mtu_max = 16000;  // with headers less than a packet buffer

/// Options that mean something for events, of which there are none.
void refuse_options_of_the_pipeline(const po::variables_map& given, const std::string& destination) {
    for (const char* name : {"config", "out", "require-lossless", "expect-events", "sent", "allow-empty",
                             "print-config", "telemetry", "drop", "answers", "port"})
        if (given.count(name) > 0)
            throw core::UsageError(
                fmt::format("replay: --to {} sends packets out and makes no events of them: --{} means nothing there",
                            destination, name));
    if (!given["progress"].defaulted())
        if (const auto& mode = given["progress"].as<std::string>(); mode != "none" && mode != "line" && mode != "auto")
            throw core::UsageError(
                fmt::format("--progress: found '{}'; accepted with --to {}: auto, line, none", mode, destination));
}

bool shows_progress(const po::variables_map& given) {
    const auto& mode = given["progress"].as<std::string>();
    if (mode != "auto") return mode == "line";
    return given.count("quiet") == 0 && ::isatty(STDERR_FILENO) == 1;
}

Resender::Config resender_config(const po::variables_map& given, const std::string& text,
                                 const stages::CaptureFeeder::Config& captures) {
    Resender::Config config;
    config.source = {captures.files, captures.from, captures.to};
    config.loop = captures.loop;
    config.to = resend::parse_destination(text);
    config.speed = captures.pace.speed;
    if (given.count("rewrite") > 0)
        config.rewrite = resend::parse_rewrite(given["rewrite"].as<std::vector<std::string>>());
    if (given.count("mtu") > 0) {
        config.mtu = given["mtu"].as<std::uint32_t>();
        if (config.to.is_socket())
            throw core::UsageError("--mtu is for --to device:...; of a socket the way's own MTU holds");
        if (*config.mtu < mtu_min || *config.mtu > mtu_max)
            throw core::UsageError(fmt::format("--mtu: found {}; accepted: {} to {}", *config.mtu, mtu_min, mtu_max));
    }
    const wire::Rewrite& rewrite = config.rewrite;
    if (!config.to.is_socket()) return config;
    if (rewrite.dst_mac || rewrite.src_mac || rewrite.dst_ipv4 || rewrite.src_ipv4 || rewrite.dst_ipv6 ||
        rewrite.src_ipv6)
        throw core::UsageError(
            fmt::format("--rewrite: with --to {} the kernel writes the addresses; accepted there: dst-port", text));
    if (config.to.port != 0 && !rewrite.dst_ports.empty())
        throw core::UsageError(fmt::format("--rewrite dst-port and the port of --to {} contradict each other", text));
    return config;
}

/// About once a second, on a thread of its own, until it is told to stop.
std::jthread show_progress_of(const Resender& resender) {
    return std::jthread([&resender](const std::stop_token& stop) {
        std::uint64_t bytes_before = 0;
        bool shown = false;
        for (int tenths = 1; !stop.stop_requested(); ++tenths) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            if (tenths % 10 != 0) continue;
            const std::uint64_t bytes = resender.bytes_so_far();
            core::print_stderr("\r{:6} s  {} packets  {:.2f} Gb/s   ", tenths / 10, resender.packets_so_far(),
                               static_cast<double>(bytes - bytes_before) * 8e-9);
            bytes_before = bytes;
            shown = true;
        }
        if (shown) core::print_stderr("\n");
    });
}

void say_before(const Resender::Config& config) {
    if (config.to.is_socket())
        core::print_stderr(
            "weir: a socket keeps payload and destination port{}; source addresses and ports are this host's\n",
            config.to.port != 0 || !config.rewrite.dst_ports.empty() ? " as asked" : "");
    if (config.loop > 1)
        core::print_stderr(
            "weir: packets are repeated as they are: event numbers, sequence numbers and PSNs of each pass are those "
            "of the first, and a receiver may take them for duplicates or for a restart\n");
}

void write_wire_report(const std::string& path, const nlohmann::json& report) {
    std::ofstream file(path);
    file << report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    if (!file.flush()) throw core::RunError(fmt::format("replay: cannot write the report {}", path));
}

}  // namespace

int replay_to_wire(const po::variables_map& given, const std::string& destination,
                   const stages::CaptureFeeder::Config& captures) {
    refuse_options_of_the_pipeline(given, destination);
    const Resender::Config config = resender_config(given, destination, captures);
    const bool quiet = given.count("quiet") > 0;
    WireRequest request;
    request.to = destination;
    request.pace = given["pace"].defaulted() ? "recorded" : given["pace"].as<std::string>();
    if (given.count("rewrite") > 0) request.rewrite = given["rewrite"].as<std::vector<std::string>>();
    catch_interrupts();
    Resender resender(config, interrupted);
    if (!quiet) say_before(config);
    {
        std::jthread progress;
        if (shows_progress(given)) progress = show_progress_of(resender);
        resender.run();
    }
    const nlohmann::json report = wire_report(resender, config, request);
    for (const std::string& warning : resender.warnings()) core::print_stderr("weir: {}\n", warning);
    if (given.count("report") > 0) write_wire_report(given["report"].as<std::string>(), report);
    if (!quiet) print_wire_summary(report);
    if (!resender.timing().error.empty()) throw core::RunError(resender.timing().error);
    if (resender.account().sent == 0) {
        core::print_stderr("weir: no packet was sent{}\n",
                           resender.account().read == 0 && resender.account().skipped > 0
                               ? ": all records are outside of --from and --to"
                               : "");
        return 1;
    }
    return resender.network_errors().host > 0 ? 1 : 0;
}

}  // namespace weir::app

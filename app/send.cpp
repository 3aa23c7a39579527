// `weir send`: the loop from simulator to target, and the account at the end. The work is in lib/data/port.
#include "command.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <memory>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "interrupt.hpp"
#include "send_options.hpp"
#include "send_report.hpp"
#include "simulate/frame_target.hpp"
#include "simulate/neighbour.hpp"
#include "simulate/paced_sender.hpp"
#include "simulate/perftest_client.hpp"
#include "simulate/rc_sender.hpp"
#include "simulate/verbs_sender.hpp"

namespace weir::app {

namespace {

using core::UsageError;
using nlohmann::json;

std::unique_ptr<simulate::UdpTarget> open_udp(SendOptions& options) {
    const std::string address = options.to.substr(4);
    const std::size_t colon = address.rfind(':');
    const std::string host = address.substr(0, colon);
    std::uint16_t base = 0;
    if (colon != std::string::npos) {
        base = static_cast<std::uint16_t>(number_of("to", address.substr(colon + 1), 65535));
    }
    if (host.empty()) {
        throw UsageError(fmt::format("send: --to {}: udp:HOST or udp:HOST:PORT is accepted", options.to));
    }
    if (base != 0 && options.simulator.port != 0 && base != options.simulator.port) {
        throw UsageError(
            fmt::format("send: --to {} and --port {} contradict each other", options.to, options.simulator.port));
    }
    return std::make_unique<simulate::UdpTarget>(host, base, options.simulator, interrupted);
}

void show_progress(const simulate::Simulator& simulator, double seconds, std::uint64_t& last_bytes) {
    const simulate::SimulatorAccount::Source total = simulator.account().total();
    core::print_stderr("\r{:6.0f} s  {} events  {} packets  {:.2f} Gb/s   ", seconds, simulator.account().events,
                       total.emitted, static_cast<double>(total.frame_bytes - last_bytes) * 8e-9);
    last_bytes = total.frame_bytes;
}

/// Who answers for the destination address, unless the command says it.
port::MacAddress destination(const SendOptions& options, const simulate::Simulator& simulator,
                             simulate::FrameLink& link) {
    if (options.dst_mac_given) return options.simulator.dst_mac;
    constexpr double patience_s = 5;
    const auto found = simulate::resolve_neighbour(simulator.frame_spec(0), link, patience_s, interrupted);
    if (found) return *found;
    throw core::RunError(
        fmt::format("send: {}: nobody answered {} for the destination address within {:g} s; "
                    "does the receiver's port have it as its `address`? --dst-mac sets the way without asking",
                    options.to, simulator.config().ipv6 ? "a neighbour solicitation" : "ARP", patience_s));
}

constexpr double exchange_patience_s = 10;

/// Our side of each queue pair of a device, as the exchange tells it.
std::vector<roce::PerftestEnd> own_ends(const SendOptions& options) {
    const simulate::SimulatorConfig& simulator = options.simulator;
    std::vector<roce::PerftestEnd> ends(simulator.sources);
    for (std::uint32_t source = 0; source < simulator.sources; ++source) {
        ends[source].qp = (options.rc.local_qp != 0 ? options.rc.local_qp : simulator.queue_pair) + source;
        ends[source].psn = simulator.first_psn;
        ends[source].set_ipv4(simulator.src_ip + source);
    }
    return ends;
}

/// Takes what the other side says of its queue pairs over into the options.
void take_peers(SendOptions& options, std::vector<roce::PerftestEnd> peers) {
    for (const roce::PerftestEnd& peer : peers)
        if (!peer.ipv4() || *peer.ipv4() != *peers[0].ipv4())
            throw core::RunError(
                fmt::format("send: --connect {}: its queue pairs have no common IPv4 address", options.connect));
    options.simulator.dst_ip = *peers[0].ipv4();
    options.rc.peers = std::move(peers);
}

/// Greets the receiver before anything else is sized: it may want shorter packets.
std::unique_ptr<simulate::PerftestClient> greet(SendOptions& options) {
    if (options.connect.empty()) return nullptr;
    auto client = std::make_unique<simulate::PerftestClient>(options.connect, exchange_patience_s);
    constexpr std::uint32_t usual_mtu = 4096;
    options.simulator.mtu = client->greet(options.simulator.mtu != 0 ? options.simulator.mtu : usual_mtu);
    return client;
}

/// The account of messages that are acknowledged, and what it means for the exit status.
int account_for(const SendOptions& options, simulate::Simulator& simulator, const simulate::RcSender::Result& run,
                std::uint64_t lost) {
    const json report = rc_send_report(options, simulator, run, lost);
    if (!options.report.empty()) write_send_report(options.report, report);
    if (!options.quiet) print_send_summary(report);
    const simulate::RcSender::Source total = run.total();
    const bool all = run.events_acknowledged == run.events && total.acknowledged == total.account.posted;
    return all ? 0 : 1;
}

/// Reliable connections to a device: done when everything is acknowledged.
int send_acknowledged(SendOptions& options, bool progress) {
    const std::unique_ptr<simulate::PerftestClient> client = greet(options);
    const std::vector<roce::PerftestEnd> ends = own_ends(options);
    if (client) take_peers(options, client->exchange(ends));
    simulate::Simulator simulator(options.simulator);
    const std::unique_ptr<simulate::FrameLink> link =
        simulate::open_device_link(options.to.substr(7), simulator.frame_bytes_max());
    simulate::RcSender::Config config = options.rc;
    const simulate::RcSender* shown = nullptr;
    if (progress)
        config.on_progress = [&shown](double seconds) {
            const simulate::RcSender::Source total = shown->so_far().total();
            core::print_stderr("\r{:6.0f} s  {} events  {} messages acknowledged  {} packets   ", seconds,
                               shown->so_far().events, total.acknowledged, total.emitted);
        };
    simulate::RcSender sender(simulator, *link, config, destination(options, simulator, *link), interrupted);
    shown = &sender;
    if (client) client->meet(ends[0]);
    const simulate::RcSender::Result run = sender.send();
    if (client) client->done();
    if (progress && run.seconds > 1) core::print_stderr("\n");
    return account_for(options, simulator, run, link->lost());
}

/// The same through an RDMA adapter, which makes the packets.
int send_by_verbs(SendOptions& options) {
    simulate::check_verbs_device(options.to.substr(6));
    const std::unique_ptr<simulate::PerftestClient> client = greet(options);
    simulate::Simulator simulator(options.simulator);
    const std::unique_ptr<simulate::VerbsSender> sender =
        simulate::open_verbs_sender(options.to.substr(6), simulator, options.rc, interrupted);
    const std::vector<roce::PerftestEnd> ends = sender->ends();
    sender->connect(client->exchange(ends));
    client->meet(ends[0]);
    const simulate::RcSender::Result run = sender->send();
    client->done();
    return account_for(options, simulator, run, 0);
}

/// Everything else: nobody answers.
int send_frames(SendOptions& options, bool progress) {
    std::unique_ptr<simulate::UdpTarget> udp;
    if (options.to_udp()) udp = open_udp(options);
    simulate::Simulator simulator(options.simulator);
    std::unique_ptr<simulate::FrameTarget> target;
    if (udp) {
        udp->prepare(simulator);
        target = std::move(udp);
    } else if (options.to_device()) {
        target = simulate::open_device_target(options.to.substr(7), simulator, interrupted, options.queues);
    } else {
        target = simulate::open_capture_target(options.to, simulator.frame_bytes_max());
    }
    simulate::PacedSender::Config config{
        .pace = options.pace, .live = options.live(), .duration_s = options.duration_s, .on_progress = {}};
    std::uint64_t shown_bytes = 0;
    if (progress) config.on_progress = [&](double seconds) { show_progress(simulator, seconds, shown_bytes); };
    const simulate::PacedSender::Result run = simulate::PacedSender(simulator, *target, config, interrupted).send();
    if (shown_bytes != 0) core::print_stderr("\n");
    const json report = send_report(options, simulator, run, *target);
    if (!options.report.empty()) write_send_report(options.report, report);
    if (!options.quiet) print_send_summary(report);
    return target->network_errors().host > 0 ? 1 : 0;
}

int send_command(const std::vector<std::string>& args) {
    SendOptions options;
    if (!read_send_options(args, options)) return 0;
    catch_interrupts();
    const bool progress = !options.quiet && ::isatty(STDERR_FILENO) == 1;
    if (options.verbs) return send_by_verbs(options);
    return options.answered() ? send_acknowledged(options, progress) : send_frames(options, progress);
}

}  // namespace

Command send_entry() {
    return {"send", "a detector simulator: to a capture file, a UDP socket or a DPDK device", send_command};
}

}  // namespace weir::app

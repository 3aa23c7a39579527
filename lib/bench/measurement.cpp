#include "bench/measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/host_facts.hpp"
#include "bench/interface_counters.hpp"
#include "bench/receiving.hpp"
#include "bench/server.hpp"
#include "bench/transports.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "port/interface_drops.hpp"
#include "search/controller.hpp"

namespace weir::bench {
namespace {

using nlohmann::json;

constexpr double answer_s = 60;  // weir run may have to be started, or ended
constexpr std::uint32_t udp_headers = 28;
constexpr double ceiling_s = 0.3;
constexpr double warm_up_s = 0.2;
// With a schedule a sender reaches a little less than without one.
constexpr double below_ceiling = 0.95;
constexpr double smallest_part = 1e-3;

double seconds_since(core::TimeNs begin) {
    return static_cast<double>(core::monotonic_ns() - begin) * 1e-9;
}

/// CPU seconds for 10^9 bytes of payload, of the trials at a load.
void add_cost(Point& point, double gbps) {
    double sender_s = 0;
    double receiver_s = 0;
    double sent = 0;
    double received = 0;
    for (const TrialRecord& trial : point.trials) {
        if (!trial.valid || std::abs(trial.intended_gbps - gbps) > 1e-9 * gbps) continue;
        sender_s += trial.sender.cpu_s;
        receiver_s += trial.receiver.cpu_s;
        sent += static_cast<double>(trial.sender.handed_over) * point.bytes * 1e-9;
        received += static_cast<double>(trial.receiver.received) * point.bytes * 1e-9;
        if (trial.loss_ratio == 0 && trial.latency) point.latency = trial.latency;
    }
    if (sent > 0) point.sender_cpu_s_per_gb = sender_s / sent;
    if (received > 0) point.receiver_cpu_s_per_gb = receiver_s / received;
}

/// In several frames a packet would be counted several times, and lost as a whole with each.
std::string too_large(std::uint32_t bytes, std::uint32_t headers, const std::string& interface) {
    const std::optional<std::uint32_t> mtu = port::interface_mtu(interface);
    if (!mtu || bytes + headers <= *mtu) return {};
    return fmt::format("{} bytes do not go into one frame: {} has an MTU of {}", bytes, interface, *mtu);
}

/// What this host lacks is a result as well.
template <class Action>
std::string done_or_why(Action&& action) {
    try {
        action();
        return {};
    } catch (const core::RunError& error) {
        return error.what();
    }
}

}  // namespace

struct Client::Way {
    const Measurement& measurement;
    PacketPlan plan;
    std::unique_ptr<Sender> sender;
    std::string interface;
    const std::atomic<bool>& stop;
    std::optional<PipelineKind> pipeline;  // in place of a sender
    std::string remarks;                   // of the receiver, in the last trial
    Endpoint to;

    [[nodiscard]] std::string device() const {
        return measurement.device.empty() ? "net_af_packet0,iface=" + interface : measurement.device;
    }
    [[nodiscard]] SenderCounts send(const Load& load, const StopSigns& signs) const {
        return pipeline ? send_by_weir(*pipeline, plan, load, device(), to, signs)
                        : send_load(*sender, plan, load, interface, signs);
    }
    [[nodiscard]] double ceiling(const StopSigns& signs) const {
        return pipeline ? ceiling_of_weir(*pipeline, plan, 2 * ceiling_s, device(), to, signs)
                        : sender_ceiling(*sender, plan, ceiling_s, signs);
    }

    [[nodiscard]] double gbps(double packets_per_s) const { return packets_per_s * plan.bytes * 8e-9; }
    [[nodiscard]] double packets_per_s(double gbps) const { return gbps * 1e9 / 8 / plan.bytes; }
};

Client::Client(std::unique_ptr<ControlConnection> server, const std::string& token, const std::string& weir_version)
    : server_(std::move(server)) {
    server_->send({{"type", "hello"}, {"version", protocol_version}, {"token", token}, {"weir", weir_version}});
    const json welcome = server_->receive("welcome", answer_s);
    try {
        host_ = host_from_json(welcome.at("host"));
        own_ = host_facts("sender", interface_with(server_->own_address()), weir_version);
        same_clock_ = !boot_id().empty() && welcome.at("boot_id") == boot_id();
    } catch (const json::exception& error) {
        throw core::RunError(fmt::format("the server said something that cannot be read: {}", error.what()));
    }
}

Client::~Client() {
    try {
        server_->send({{"type", "bye"}});
    } catch (const core::RunError&) {  // it has left first
    }
}

Point Client::run(const Measurement& measurement, const std::function<void(const Progress&)>& progress,
                  const std::atomic<bool>& stop) {
    Way way{.measurement = measurement,
            .plan = {.trial = 0, .bytes = measurement.bytes, .packets = measurement.packets},
            .sender = nullptr,
            .interface = "",
            .stop = stop,
            .pipeline = {},
            .remarks = {},
            .to = {}};
    check(way.plan);
    const Depth depth = depth_named(measurement.depth);
    const Transport& transport = transport_named(measurement.transport);
    require_fit(transport, sender_named(measurement.sender));
    const SenderKind& sender = sender_for(transport, sender_named(measurement.sender));
    const bool by_weir = sender.open == nullptr;
    if (transport.by_pipeline(depth, by_weir)) way.pipeline = transport.pipeline;
    Point point;
    point.transport = measurement.transport;
    point.sender = way.pipeline ? "weir send" : sender.name;
    point.depth = measurement.depth;
    point.bytes = measurement.bytes;
    point.packets = measurement.packets;
    point.addresses = measurement.addresses;
    point.goal = measurement.at_gbps ? "at" : measurement.goal.name;

    if (by_weir && !way.pipeline) {
        point.not_available = fmt::format("weir run has no {} at depth {}", transport.name, measurement.depth);
        return point;
    }
    server_->send({{"type", "open"},
                   {"by_weir", by_weir},
                   {"transport", measurement.transport},
                   {"depth", measurement.depth},
                   {"address", measurement.address},
                   {"bytes", measurement.bytes},
                   {"addresses", measurement.addresses}});
    const json opened = server_->receive("opened", answer_s);
    try {
        point.not_available = opened.at("not_available");
        if (!point.not_available.empty()) return point;
        way.interface = interface_to(opened.at("address"));
        if (!transport.rdma)
            point.not_available = too_large(
                measurement.bytes, way.pipeline ? pipeline_headers(*way.pipeline) : udp_headers, way.interface);
        if (!point.not_available.empty()) return point;
        way.to = {opened.at("address"), opened.at("port")};
        if (!way.pipeline) point.not_available = done_or_why([&] { way.sender = sender.open(way.to); });
        if (point.not_available.empty()) point.not_available = connect(way, opened.value("offer", json()));
        if (!point.not_available.empty()) return point;
        host_.interface = opened.at("interface");
        point.remarks = opened.value("remarks", "");
        own_.interface = interface_text(way.interface);
    } catch (const json::exception& error) {
        throw core::RunError(fmt::format("the server said something that cannot be read: {}", error.what()));
    }
    try {
        if (measurement.at_gbps)
            at(way, point, progress);
        else
            search(way, point, progress);
    } catch (const RefusedError& error) {  // by the server, or by weir send: others may well go
        point.not_available = error.what();
    }
    if (!way.remarks.empty()) point.remarks += (point.remarks.empty() ? "" : "; ") + way.remarks;
    return point;
}

/// Both sides are told of each other what addresses do not say. Returns what one of them lacks for it.
std::string Client::connect(Way& way, const json& offer) {
    if (offer.is_null()) return {};
    json answer;
    if (std::string why = done_or_why([&] { answer = way.sender->accept(offer); }); !why.empty()) return why;
    server_->send({{"type", "connect"}, {"answer", answer}});
    return server_->receive("connected", answer_s).at("not_available");
}

void Client::begin(Way& way, std::uint64_t packets, double packets_per_s) {
    if (way.stop.load()) throw core::RunError("stopped");
    way.plan.trial = ++trials_;
    server_->send({{"type", "begin"},
                   {"trial", way.plan.trial},
                   {"bytes", way.plan.bytes},
                   {"packets_per_message", way.plan.packets},
                   {"packets", packets},
                   {"packets_per_s", packets_per_s},
                   {"depth", way.measurement.depth},
                   {"joined", way.sender != nullptr && way.sender->joins_packets()}});
    (void)server_->receive("begun", answer_s);
}

json Client::end(Way& way, std::uint64_t sent) {
    if (way.stop.load()) throw core::RunError("stopped");
    server_->send({{"type", "end"}, {"sent", sent}});
    return server_->receive("counts", answer_s);
}

TrialRecord Client::trial(Way& way, const Load& load) {
    const core::TimeNs start = core::monotonic_ns();
    TrialRecord record;
    record.intended_gbps = way.gbps(load.packets_per_s);
    begin(way, load.packets(way.plan), load.packets_per_s);
    record.sender = way.send(load, {way.stop, server_->gone()});
    const json counts = end(way, record.sender.handed_over);
    try {
        record.receiver = receiver_counts_from_json(counts.at("counts"));
        way.remarks = counts.at("remarks");
        const json& times = counts.at("latency_s");
        if (same_clock_ && !way.pipeline && record.receiver.received > 0)
            record.latency = Latency{times.at(0), times.at(1), times.at(2), times.at(3)};
    } catch (const json::exception& error) {
        throw core::RunError(fmt::format("the server said something that cannot be read: {}", error.what()));
    }
    const Judgement judgement = judge(record.sender, record.receiver, way.measurement.rules);
    record.valid = judgement.valid();
    record.why = judgement.why;
    record.loss_ratio = judgement.loss_ratio;
    record.lost = judgement.lost;
    record.seconds = seconds_since(start);
    return record;
}

/// The receiver is at work meanwhile, because on one machine it takes its part of it. What it loses is not the
/// question.
double Client::ceiling(Way& way) {
    begin(way, 0, 0);
    const double packets_per_s = way.ceiling({way.stop, server_->gone()});
    (void)end(way, 0);
    if (packets_per_s <= 0) throw core::RunError("not one packet could be sent");
    return packets_per_s;
}

void Client::search(Way& way, Point& point, const std::function<void(const Progress&)>& progress) {
    const Measurement& asked = way.measurement;
    double most = ceiling(way);
    point.ceiling_gbps = way.gbps(most);
    most *= below_ceiling;
    if (asked.most_gbps) most = std::min(most, way.packets_per_s(*asked.most_gbps));
    search::Controller controller({asked.goal},
                                  {.smallest = most * smallest_part, .largest = most, .search_s = asked.search_s});
    (void)trial(way, {.packets_per_s = most / 2, .seconds = warm_up_s, .burst = asked.burst});
    while (const auto ask = controller.next()) {
        progress({asked, controller.progress(), way.gbps(ask->load), nullptr});
        const Load load{.packets_per_s = ask->load, .seconds = ask->seconds, .burst = asked.burst};
        point.trials.push_back(trial(way, load));
        const TrialRecord& record = point.trials.back();
        if (record.valid)
            controller.add(record.loss_ratio, record.sender.planned_s);
        else
            controller.add_invalid(record.sender.planned_s);
        progress({asked, controller.progress(), record.intended_gbps, &record});
    }
    const search::Result result = controller.results().front();
    const auto gbps = [&way](const std::optional<double>& load) {
        return load ? std::optional(way.gbps(*load)) : std::nullopt;
    };
    point.lower_gbps = gbps(result.lower);
    point.upper_gbps = gbps(result.upper);
    point.conditional_gbps = gbps(result.conditional);
    point.irregular = result.why;
    if (const auto ceiling = controller.ceiling()) point.ceiling_gbps = way.gbps(*ceiling);
    if (point.lower_gbps) add_cost(point, *point.lower_gbps);
}

void Client::at(Way& way, Point& point, const std::function<void(const Progress&)>& progress) {
    const Measurement& asked = way.measurement;
    const Load load{.packets_per_s = way.packets_per_s(*asked.at_gbps), .seconds = asked.at_s, .burst = asked.burst};
    (void)trial(
        way, {.packets_per_s = load.packets_per_s, .seconds = std::min(asked.at_s, warm_up_s), .burst = asked.burst});
    progress({asked, 0, *asked.at_gbps, nullptr});
    point.trials.push_back(trial(way, load));
    progress({asked, 1, *asked.at_gbps, &point.trials.back()});
    add_cost(point, *asked.at_gbps);
    point.latency = point.trials.back().latency;
}

}  // namespace weir::bench

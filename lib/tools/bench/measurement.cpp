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
#include "config/device_facts.hpp"
#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "port/interface_drops.hpp"
#include "port/interface_link.hpp"
#include "search/back_to_back.hpp"
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
// Long enough for caches, clocks and queues to be as they are at the load, short beside a trial.
constexpr double ramp_s = 0.05;
constexpr double ramp_part = 0.2;
// RFC 2544, section 26.4: bursts of up to 2 s at least.
constexpr double burst_s = 2;
constexpr std::uint64_t burst_within = 16;  // packets
constexpr int burst_invalid_max = 3;
constexpr double burst_stretch_ratio = 0.25;  // the sender is not evenly fast

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

Point point_for(const Measurement& asked, std::string_view sender) {
    Point point;
    point.transport = asked.transport;
    point.sender = sender;
    point.depth = asked.depth;
    point.bytes = asked.bytes;
    point.packets = asked.packets;
    point.sources = asked.sources;
    point.addresses = asked.addresses;
    point.goal = asked.bursts > 0 ? "back-to-back" : asked.at_most ? "max" : asked.at_gbps ? "at" : asked.goal.name;
    return point;
}

/// That packets go out of; empty: a device goes past the kernel.
std::string interface_on_way(const SenderKind& kind, const std::string& device, const std::string& address) {
    if (!kind.on_device || device.empty()) return interface_to(address);
    return port::interface_of(config::driver_of(device), device);
}

}  // namespace

struct Client::Way {
    Way(const Measurement& asked, const std::atomic<bool>& stop_sign) : measurement(asked), stop(stop_sign) {
        plan.bytes = asked.bytes;
        plan.packets = asked.packets;
        plan.sources = asked.sources;
        plan.content = asked.content;
    }

    const Measurement& measurement;
    const std::atomic<bool>& stop;
    PacketPlan plan;
    std::unique_ptr<Sender> sender;
    std::string interface;
    std::optional<PipelineKind> pipeline;  // in place of a sender
    std::string remarks;                   // of the receiver, in the last trial
    Endpoint to;

    [[nodiscard]] std::string device() const {
        return measurement.device.empty() ? "net_af_packet0,iface=" + interface : measurement.device;
    }
    [[nodiscard]] SenderCounts send(const Load& load, const StopSigns& signs) const {
        return pipeline ? send_by_weir(*pipeline, plan, load, device(), to, measurement.faults, signs)
                        : send_load(*sender, plan, load, interface, signs);
    }
    [[nodiscard]] double ceiling(const StopSigns& signs) const {
        return pipeline ? ceiling_of_weir(*pipeline, plan, 2 * ceiling_s, device(), to, signs)
                        : sender_ceiling(*sender, plan, ceiling_s, signs);
    }

    [[nodiscard]] Load load(double packets_per_s, double seconds) const {
        return {.packets_per_s = packets_per_s,
                .seconds = seconds,
                .burst = measurement.burst,
                .ramp_s = std::min(ramp_s, ramp_part * seconds)};
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
    Way way(measurement, stop);
    check(way.plan);
    const Transport& transport = transport_named(measurement.transport);
    const SenderKind& sender = sender_named(measurement.sender);
    const Depth depth = depth_named(measurement.depth);
    require_fit(transport, sender, depth);
    if (transport.by_pipeline(depth, sender.open == nullptr)) way.pipeline = transport.pipeline;
    Point point = point_for(measurement, way.pipeline ? "weir send" : sender.name);
    point.not_available = open(way, transport, sender, point.remarks);
    if (!point.not_available.empty()) return point;
    try {
        if (measurement.bursts > 0)
            back_to_back(way, point, progress);
        else if (measurement.at_gbps || measurement.at_most)
            at(way, point, progress);
        else
            search(way, point, progress);
    } catch (const RefusedError& error) {  // by the server, or by weir send: others may well go
        point.not_available = error.what();
    }
    if (measurement.faults.any()) way.remarks += (way.remarks.empty() ? "" : "; ") + faults_text(measurement.faults);
    if (!way.remarks.empty()) point.remarks += (point.remarks.empty() ? "" : "; ") + way.remarks;
    return point;
}

/// The receiver's side and a sender for it. Returns what one of them lacks.
std::string Client::open(Way& way, const Transport& transport, const SenderKind& sender, std::string& remarks) {
    const Measurement& asked = way.measurement;
    const bool by_weir = sender.open == nullptr;
    if (by_weir && !way.pipeline) return fmt::format("weir run has no {} at depth {}", transport.name, asked.depth);
    if (way.pipeline && asked.content) return "weir send makes what its packets carry: no file";
    if (asked.content)
        for (const json& message : content_messages(asked.content)) server_->send(message);
    server_->send({{"type", "open"},
                   {"by_weir", by_weir},
                   {"transport", asked.transport},
                   {"depth", asked.depth},
                   {"address", asked.address},
                   {"bytes", asked.bytes},
                   {"addresses", asked.addresses}});
    const json opened = server_->receive("opened", answer_s);
    try {
        if (std::string why = opened.at("not_available"); !why.empty()) return why;
        way.to = {opened.at("address"), opened.at("port")};
        way.interface =
            interface_on_way(sender_named(way.pipeline ? "weir" : asked.sender), asked.device, way.to.address);
        const std::uint32_t headers = transport.pipeline ? pipeline_headers(*transport.pipeline) : udp_headers;
        if (!transport.rdma)
            if (std::string why = too_large(asked.bytes, headers, way.interface); !why.empty()) return why;
        const SenderSpec spec{
            .to = way.to, .device = asked.device, .own_address = server_->own_address(), .bytes = asked.bytes};
        std::string why;
        if (!way.pipeline) why = done_or_why([&] { way.sender = sender.open(spec); });
        if (why.empty()) why = connect(way, opened.value("offer", json()));
        if (!why.empty()) return why;
        if (way.sender != nullptr) way.sender = with_faults(std::move(way.sender), asked.faults);
        host_.interface = opened.at("interface");
        remarks = opened.value("remarks", "");
        own_.interface = way.interface.empty() ? config::driver_of(asked.device) : interface_text(way.interface);
    } catch (const json::exception& error) {
        throw core::RunError(fmt::format("the server said something that cannot be read: {}", error.what()));
    }
    return {};
}

/// Both sides are told of each other what addresses do not say. Returns what one of them lacks for it.
std::string Client::connect(Way& way, const json& offer) {
    if (offer.is_null()) return {};
    json answer;
    if (std::string why = done_or_why([&] { answer = way.sender->accept(offer); }); !why.empty()) return why;
    if (answer.is_null()) return {};
    server_->send({{"type", "connect"}, {"answer", answer}});
    return server_->receive("connected", answer_s).at("not_available");
}

void Client::begin(Way& way, const Load& load) {
    if (way.stop.load()) throw core::RunError("stopped");
    way.plan.trial = ++trials_;
    server_->send({{"type", "begin"},
                   {"trial", way.plan.trial},
                   {"bytes", way.plan.bytes},
                   {"packets_per_message", way.plan.packets},
                   {"sources", way.plan.sources},
                   {"content", way.plan.content != nullptr},
                   {"packets", load.ramp_packets(way.plan) + load.packets(way.plan)},
                   {"ramp", load.ramp_packets(way.plan)},
                   {"packets_per_s", load.packets_per_s},
                   {"depth", way.measurement.depth},
                   {"joined", way.sender != nullptr && way.sender->joins_packets()}});
    (void)server_->receive("begun", answer_s);
}

json Client::end(Way& way, std::uint64_t sent) {
    if (way.stop.load()) throw core::RunError("stopped");
    server_->send({{"type", "end"}, {"sent", sent}});
    return server_->receive("counts", answer_s);
}

TrialRecord Client::trial(Way& way, const Load& load, const Rules& rules) {
    const core::TimeNs start = core::monotonic_ns();
    TrialRecord record;
    record.intended_gbps = way.gbps(load.packets_per_s);
    begin(way, load);
    record.sender = way.send(load, {way.stop, server_->gone()});
    if (load.unpaced && record.sender.took_s > 0)
        record.intended_gbps = way.gbps(static_cast<double>(record.sender.handed_over) / record.sender.took_s);
    const json counts = end(way, record.sender.ramp + record.sender.handed_over);
    try {
        record.receiver = receiver_counts_from_json(counts.at("counts"));
        way.remarks = counts.at("remarks");
        const json& times = counts.at("latency_s");
        if (same_clock_ && !way.pipeline && record.receiver.received > 0)
            record.latency = Latency{times.at(0), times.at(1), times.at(2), times.at(3)};
    } catch (const json::exception& error) {
        throw core::RunError(fmt::format("the server said something that cannot be read: {}", error.what()));
    }
    const Judgement judgement = judge(record.sender, record.receiver, rules);
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
    begin(way, {});
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
    (void)trial(way, way.load(most / 2, warm_up_s), asked.rules);
    while (const auto ask = controller.next()) {
        progress({asked, controller.progress(), way.gbps(ask->load), nullptr});
        point.trials.push_back(trial(way, way.load(ask->load, ask->seconds), asked.rules));
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
    Load load = way.load(asked.at_most ? ceiling(way) : way.packets_per_s(*asked.at_gbps), asked.at_s);
    load.unpaced = asked.at_most;
    if (asked.at_most) point.ceiling_gbps = way.gbps(load.packets_per_s);
    Load warm_up = load;
    warm_up.seconds = std::min(asked.at_s, warm_up_s);
    (void)trial(way, warm_up, asked.rules);
    progress({asked, 0, way.gbps(load.packets_per_s), nullptr});
    point.trials.push_back(trial(way, load, asked.rules));
    const TrialRecord& record = point.trials.back();
    progress({asked, 1, record.intended_gbps, &record});
    add_cost(point, record.intended_gbps);
    point.latency = record.latency;
}

/// With the rate without loss, which tells how much of a burst was taken out while it came in (RFC 9004, 6.4).
void Client::back_to_back(Way& way, Point& point, const std::function<void(const Progress&)>& progress) {
    const Measurement& asked = way.measurement;
    search(way, point, progress);
    const double most = way.packets_per_s(point.ceiling_gbps.value_or(0));
    Rules rules = asked.rules;
    rules.lag_s = burst_s * 2;  // all are due at once
    rules.stretch_ratio = burst_stretch_ratio;
    search::BackToBack bursts(std::max<std::uint64_t>(burst_within, static_cast<std::uint64_t>(most * burst_s)),
                              burst_within, asked.bursts);
    int invalid = 0;
    while (const auto packets = bursts.next()) {
        const Load load{.packets_per_s = most,
                        .seconds = static_cast<double>(*packets) / most,
                        .burst = static_cast<std::uint32_t>(*packets)};
        point.bursts.trials.push_back(trial(way, load, rules));
        const TrialRecord& record = point.bursts.trials.back();
        const double done = static_cast<double>(bursts.bursts().size()) / asked.bursts;
        progress({asked, done, record.intended_gbps, &record});
        invalid = record.valid ? 0 : invalid + 1;
        if (!record.valid && invalid < burst_invalid_max) continue;
        // What cannot be sent at full speed is no burst: the search goes on below.
        if (!record.valid) way.remarks = fmt::format("bursts of {} packets could not be sent at full speed", *packets);
        bursts.add(record.valid && record.loss_ratio == 0);
        invalid = 0;
    }
    const search::BufferTime time =
        search::buffer_time(bursts.mean(), most, way.packets_per_s(point.lower_gbps.value_or(0)));
    point.bursts.packets = bursts.bursts();
    point.bursts.reached_most = bursts.reached_most();
    point.bursts.implied_s = time.implied_s;
    point.bursts.corrected_s = time.corrected_s;
}

}  // namespace weir::bench

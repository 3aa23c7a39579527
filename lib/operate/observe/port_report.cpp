#include "observe/port_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "pipeline/pipeline.hpp"
#include "port/interface_drops.hpp"

namespace weir::observe {

using nlohmann::json;
using port::LivePort;

namespace {

json offloads_json(const port::OffloadPlan& plan) {
    json without = json::array();
    for (const port::OffloadPlan::Without& part : plan.without)
        without.push_back({{"what", part.what}, {"why", part.why}});
    return {{"asked", plan.asked}, {"got", plan.got}, {"without", std::move(without)}};
}

json stamps_json(const LivePort& port) {
    if (port.clock() == nullptr) return {{"source", "software"}, {"clock", "the time of the poll"}};
    const core::DisciplinedClock::Accuracy& accuracy = port.clock()->accuracy();
    return {{"source", port.clock()->source()},    {"clock", port.clock()->name()}, {"error_ns", accuracy.error_ns},
            {"ticks_per_s", accuracy.ticks_per_s}, {"jumps", accuracy.jumps},       {"moved", port.stamps_moved()}};
}

double seconds_of(core::TimeNs ns) {
    return static_cast<double>(ns) * 1e-9;
}

}  // namespace

std::string ports_text(const pipeline::Pipeline& pipeline) {
    std::string text;
    for (std::size_t i = 0; i < pipeline.ports().size(); ++i) {
        const LivePort& port = *pipeline.ports()[i];
        const LivePort::Setup& setup = port.setup();
        const std::string queues =
            setup.ring.empty()
                ? fmt::format("{} and {} descriptors", setup.offloads.rx_descriptors, setup.offloads.tx_descriptors)
                : fmt::format("a ring of {}", setup.ring);
        text += fmt::format("port {} ({}): {}, offloads: {}\n", pipeline.options().config.ports[i].name, setup.driver,
                            queues, port::offloads_text(setup.offloads));
        if (port.clock() != nullptr) text += fmt::format("port: time stamps of {}\n", port.clock()->name());
        if (!port.remarks().empty()) text += fmt::format("port: {}\n", port.remarks());
    }
    return text;
}

json ports_json(const pipeline::Pipeline& pipeline) {
    json list = json::array();
    for (std::size_t i = 0; i < pipeline.ports().size(); ++i) {
        const LivePort& port = *pipeline.ports()[i];
        const LivePort::Setup& setup = port.setup();
        const config::PortConfig& config = pipeline.options().config.ports[i];
        const LivePort::Link link = port.link();
        const LivePort::Answers answers = port.answers();
        json one{{"port", config.name},
                 {"device", config.devargs()},
                 {"driver", setup.driver},
                 {"mac", setup.mac},
                 {"link", {{"up", link.up}}},
                 {"rx_descriptors", setup.offloads.rx_descriptors},
                 {"tx_descriptors", setup.offloads.tx_descriptors},
                 {"promiscuous", setup.promiscuous},
                 {"flow_control", setup.flow_control},
                 {"offloads", offloads_json(setup.offloads)},
                 {"timestamps", stamps_json(port)},
                 {"before_start", setup.thrown_away},
                 {"answers", {{"arp", answers.arp}, {"icmp", answers.icmp}, {"failed", answers.failed}}}};
        one["queues"] = json::array();
        for (std::uint16_t queue = 0; queue < port.queues(); ++queue)
            one["queues"].push_back({{"queue", queue}, {"packets", port.taken(queue)}});
        if (link.mbps > 0) one["link"]["mbps"] = link.mbps;
        if (setup.mtu > 0) one["mtu"] = setup.mtu;
        if (setup.interface_mtu.has_value())
            one["interface"] = {{"name", setup.interface},
                                {"mtu_at_start", *setup.interface_mtu},
                                {"mtu", port::interface_mtu(setup.interface).value_or(0)}};
        if (!port.remarks().empty()) one["remarks"] = port.remarks();
        list.push_back(std::move(one));
    }
    return list;
}

json clock_json(const pipeline::Pipeline& pipeline) {
    if (pipeline.clock() == nullptr) return nullptr;
    const port::LiveClock::Facts facts = pipeline.clock()->facts();
    json clock{{"source", facts.source}, {"reference", "CLOCK_REALTIME"}, {"error_ns", facts.error_ns}};
    if (facts.ticks_per_s > 0)
        clock.update({{"ticks_per_s", facts.ticks_per_s}, {"steps", facts.steps}, {"jumps", facts.jumps}});
    return clock;
}

std::vector<std::string> clock_warnings(const pipeline::Pipeline& pipeline) {
    std::vector<std::string> warnings;
    if (pipeline.clock() == nullptr) return warnings;
    const port::LiveClock::Facts facts = pipeline.clock()->facts();
    if (facts.steps > 0)
        warnings.push_back(
            fmt::format("the system's time was set during the run ({} times, by up to {:.6f} s): "
                        "times in the run go on evenly, and approach the new time by 0.5 ms per second",
                        facts.steps, seconds_of(facts.error_ns)));
    if (facts.jumps > 0)
        warnings.push_back(fmt::format(
            "the processor's time stamp counter jumped {} times: was this virtual machine moved?", facts.jumps));
    return warnings;
}

std::vector<std::string> interface_warnings(const pipeline::Pipeline& pipeline) {
    std::vector<std::string> warnings;
    for (std::size_t i = 0; i < pipeline.ports().size(); ++i) {
        const LivePort::Setup& setup = pipeline.ports()[i]->setup();
        const config::PortConfig& config = pipeline.options().config.ports[i];
        if (setup.too_early > 0)
            warnings.push_back(
                fmt::format("port {}: {} packets came before the run could take them, and are no part of it: "
                            "start the sender after the line `running`",
                            config.name, setup.too_early));
        if (!setup.interface_mtu.has_value()) continue;
        const std::optional<std::uint32_t> mtu = port::interface_mtu(setup.interface);
        if (!mtu.has_value())
            warnings.push_back(
                fmt::format("port {}: the interface {} has gone during the run, "
                            "and with it its counts of what it dropped",
                            config.name, setup.interface));
        else if (*mtu < config.mtu)
            warnings.push_back(
                fmt::format("port {}: the MTU of the interface {} was set from {} to {} during the run, "
                            "below the port's mtu of {}: from then on the kernel dropped longer frames",
                            config.name, setup.interface, *setup.interface_mtu, *mtu, config.mtu));
    }
    return warnings;
}

std::vector<std::string> wait_for_links(const pipeline::Pipeline& pipeline, const std::function<bool()>& stop,
                                        const std::function<void(const std::string&)>& say) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < pipeline.ports().size(); ++i) {
        const config::PortConfig& config = pipeline.options().config.ports[i];
        const auto until = start + std::chrono::seconds(config.options.link_wait_s);
        bool up = pipeline.ports()[i]->link().up;
        if (!up && config.options.link_wait_s > 0)
            say(fmt::format("port {}: waiting for its link, {} s at most", config.name, config.options.link_wait_s));
        while (!up && Clock::now() < until && !stop()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            up = pipeline.ports()[i]->link().up;
        }
        if (!up && config.options.link_wait_s > 0)
            missing.push_back(fmt::format("port {} has no link after {} s: is the cable in, and the other side on?",
                                          config.name, config.options.link_wait_s));
    }
    return missing;
}

}  // namespace weir::observe

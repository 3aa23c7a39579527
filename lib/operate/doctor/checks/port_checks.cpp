// What DPDK says of ports that were opened for a moment, and the receive rings of cards.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/check.hpp"

namespace weir::doctor {

namespace {

const config::PortConfig* named_port(const CheckInput& subject, const std::string& name) {
    if (subject.run == nullptr) return nullptr;
    const auto& ports = subject.run->config->ports;
    const auto found = std::ranges::find(ports, name, &config::PortConfig::name);
    return found != ports.end() ? &*found : nullptr;
}

/// One finding for each device that was opened; one that says why none was.
/// `say_why_not`: of those that were not opened, too; one check is enough.
template <class Judge>
std::vector<Finding> for_each_device(const CheckInput& subject, const std::string& wanted, bool say_why_not,
                                     const Judge& judge_device) {
    if (subject.run == nullptr) return {};
    const auto& devices = subject.host.devices;
    if (!devices) return {{.status = Status::unknown, .found = "not asked", .wanted = wanted, .why = devices.why}};
    std::vector<Finding> findings;
    for (const DeviceFacts& device : *devices) {
        const config::PortConfig* port = named_port(subject, device.port);
        if (port == nullptr) continue;
        if (device.not_opened.empty())
            judge_device(device, *port, findings);
        else if (say_why_not)
            findings.push_back({.status = Status::unknown,
                                .about = "port " + device.port,
                                .found = "not asked",
                                .wanted = wanted,
                                .why = device.not_opened});
    }
    return findings;
}

Finding link_of_port(const CheckInput& subject, const DeviceFacts& device, const config::PortConfig& port) {
    Finding finding{.about = "port " + device.port,
                    .wanted = fmt::format("a link, and an MTU of {}", port.mtu),
                    .why = "nothing comes without a link, and longer frames are dropped by the device"};
    const std::string speed = device.mbps > 0 ? fmt::format(", {:g} Gb/s", device.mbps / 1000.0) : "";
    finding.found = fmt::format("link {}{}, MTU {}, driver {}{}", device.link_up ? "up" : "down", speed, device.mtu,
                                device.driver, device.firmware.empty() ? "" : ", firmware " + device.firmware);
    // Virtual devices call 1500 what carries any length; DPDK refuses them a longer one.
    const bool means_it = config::is_pci_address(port.device);
    if (means_it && device.mtu > 0 && device.mtu < port.mtu) {
        finding.status = Status::error;
        finding.why = "the device takes no frames of that length, and drops them";
        finding.mend = fmt::format("mtu = {} in [[port]], if the detector's packets fit", device.mtu);
    } else if (!device.link_up) {
        finding.status = Status::warning;
        finding.why = "nothing can come while there is no link";
        finding.mend = "the cable, the transceiver, and the port of the switch at the other end";
    } else if (device.mbps > 0 && means_it && subject.load.bits_per_s > device.mbps * 1e6 &&
               subject.run->config->ports.size() == 1) {
        finding.status = Status::error;
        finding.wanted = fmt::format("a link of {}", bit_rate_text(subject.load.bits_per_s));
        finding.why = "more is to come than the link carries";
        finding.mend = "a faster link, or the streams on several ports";
    }
    return finding;
}

std::vector<Finding> check_link(const CheckInput& subject) {
    return for_each_device(subject, "a link, and the port's MTU", true,
                           [&](const DeviceFacts& device, const config::PortConfig& port, auto& findings) {
                               findings.push_back(link_of_port(subject, device, port));
                           });
}

constexpr double pause_us_wanted = 100;  // an lcore's longest turn, with room to spare

Finding ring_of_port(const CheckInput& subject, const DeviceFacts& device, const config::PortConfig& port) {
    const double packet = subject.load.packet_bytes > 0 ? subject.load.packet_bytes : port.mtu;
    const double rate = subject.load.known() ? subject.load.bits_per_s : device.mbps * 1e6;
    Finding finding{
        .about = "port " + device.port,
        .found = fmt::format("{} receive descriptors of {} at most, in each of {} queues", device.rx_descriptors,
                             device.rx_descriptors_max, port.queues),
        .wanted = fmt::format("enough for a pause of {:.0f} us", pause_us_wanted),
        .why = "while an lcore is kept from polling, packets wait there, and when it is full the card drops"};
    if (rate <= 0) {
        finding.wanted += " at the port's rate, which nobody says (--rate)";
        return finding;
    }
    const double holds_us = device.rx_descriptors * static_cast<double>(port.queues) * packet * 8 / rate * 1e6;
    finding.found += fmt::format(": {:.0f} us at {} of {:.0f} bytes", holds_us, bit_rate_text(rate), packet);
    if (holds_us >= pause_us_wanted) return finding;
    finding.status = Status::warning;
    finding.sure = Sure::likely;
    const double needed = device.rx_descriptors * pause_us_wanted / std::max(holds_us, 1e-3);
    std::uint32_t descriptors = device.rx_descriptors;
    while (descriptors < needed && descriptors * 2 <= device.rx_descriptors_max) descriptors *= 2;
    finding.mend = descriptors > device.rx_descriptors ? fmt::format("rx_descriptors = {} in [[port]]", descriptors)
                                                       : "more queues: `queues` in [[port]]";
    return finding;
}

/// The ring of a kernel interface, in front of af_packet and af_xdp.
void rings_of_interfaces(const CheckInput& subject, std::vector<Finding>& findings) {
    for (const InterfaceFacts& interface : subject.host.interfaces) {
        // Virtual interfaces have none.
        if (!interface.exists || !interface.ring || interface.ring->second == 0) continue;
        const auto [now, most] = *interface.ring;
        Finding finding{.about = interface.name,
                        .found = fmt::format("a receive ring of {}, of {} at most", now, most),
                        .wanted = fmt::format("{}", most),
                        .why = "packets wait there for the kernel, and when it is full the card drops"};
        if (now < most) {
            finding.status = Status::warning;
            finding.sure = Sure::likely;
            const std::vector<Step> steps{execute({"ethtool", "-G", interface.name, "rx", std::to_string(most)})};
            finding.mend = shell_text(steps);
            // The link goes down for a moment.
            if (!interface.default_route) finding = with_fix(std::move(finding), steps, "the next boot");
        }
        findings.push_back(std::move(finding));
    }
}

std::vector<Finding> check_ring(const CheckInput& subject) {
    std::vector<Finding> findings =
        for_each_device(subject, "a receive ring for a pause of 100 us", false,
                        [&](const DeviceFacts& device, const config::PortConfig& port, auto& all) {
                            // Only a card has descriptors that packets wait in.
                            if (config::is_pci_address(port.device)) all.push_back(ring_of_port(subject, device, port));
                        });
    rings_of_interfaces(subject, findings);
    return findings;
}

std::vector<Finding> check_pause(const CheckInput& subject) {
    return for_each_device(
        subject, "no pause frames", false, [](const DeviceFacts& device, const config::PortConfig&, auto& findings) {
            Finding finding{
                .about = "port " + device.port,
                .found = device.flow_control ? "flow control " + *device.flow_control : "flow control not known",
                .wanted = "no pause frames counted",
                .why = "a paused sender that cannot wait drops, where nobody here counts it"};
            if (!device.pause_counters.empty()) {
                finding.status = Status::warning;
                finding.sure = Sure::likely;
                for (const auto& [name, count] : device.pause_counters)
                    finding.found += fmt::format(", {} {}", name, count);
                finding.mend = "find who sends them: flow_control in [[port]], and the port of the switch";
            } else if (!device.flow_control) {
                finding.status = Status::unknown;
                finding.why = device.flow_control.why;
            }
            findings.push_back(std::move(finding));
        });
}

Finding rule_finding(const DeviceFacts& device, const RuleOutcome& rule) {
    using Effect = RuleOutcome::Effect;
    Finding finding{.about = "port " + device.port,
                    .wanted = "the device does the rule, and was seen to: " + rule.rule,
                    .why = "packets arrive on the lcore that assembles them"};
    switch (rule.effect) {
        case Effect::verified:
            finding.found = "done by the device, verified by effect";
            return finding;
        case Effect::none:
            finding.status = Status::warning;
            finding.found = "accepted by the device, and without effect: " + rule.remark;
            finding.why =
                "packets arrive on the wrong lcore and are passed on, which costs it; a drop does not relieve it";
            finding.mend =
                "steer = \"software\" in [[port]] (a run finds out by itself, and does the rule in software)";
            return finding;
        case Effect::software:
        case Effect::refused:
            finding.status = rule.effect == Effect::refused ? Status::error : Status::warning;
            finding.sure = rule.effect == Effect::refused ? Sure::certain : Sure::possible;
            finding.found = "the device does not take it: " + rule.remark;
            finding.why = rule.effect == Effect::refused
                              ? "on_refusal = \"fail\": the run does not start"
                              : "weir does it in software, which costs the lcore that the packet arrives on";
            finding.mend = "weir flows check tells what the rule means; docs/guides/FLOWS.md which rules drivers take";
            return finding;
        case Effect::not_seen:
            break;
    }
    finding.status = Status::unknown;
    finding.found = "accepted by the device";
    finding.why = rule.remark.empty() ? "no packet came that it is for" : rule.remark;
    finding.mend = "let the detector send, and look again: weir doctor --watch 5";
    return finding;
}

std::vector<Finding> check_flow_rules(const CheckInput& subject) {
    return for_each_device(subject, "rules that the device does", false,
                           [](const DeviceFacts& device, const config::PortConfig&, auto& findings) {
                               if (!device.rules) {
                                   findings.push_back({.status = Status::unknown,
                                                       .about = "port " + device.port,
                                                       .found = "not tried",
                                                       .wanted = "rules that the device does",
                                                       .why = device.rules.why});
                                   return;
                               }
                               for (const RuleOutcome& rule : *device.rules)
                                   findings.push_back(rule_finding(device, rule));
                           });
}

}  // namespace

std::vector<Check> port_checks() {
    return {
        {"link", "port", "link, speed, MTU and firmware, as DPDK has them", false, check_link, Needs::devices},
        {"ring", "port", "receive descriptors of cards and interfaces, against the rate and their limits", false,
         check_ring, Needs::devices},
        {"pause", "port", "flow control, and whether pause frames were counted (802.3x and PFC)", false, check_pause,
         Needs::devices},
        {"flow_rules", "port", "the run's flow rules, given to the device and verified by effect", false,
         check_flow_rules, Needs::devices},
    };
}

}  // namespace weir::doctor

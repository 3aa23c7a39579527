#include "port/flow_control.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

namespace weir::port {

namespace {

/// How long the other side is asked to pause, in units of 512 bit times; the largest, because a pause that is over too
/// early is repeated, and one that is too long is taken back.
constexpr std::uint16_t pause_time = 0xffff;

const char* name(config::FlowControl mode) {
    switch (mode) {
        case config::FlowControl::leave:
            return "left as the device has it";
        case config::FlowControl::off:
            return "off";
        case config::FlowControl::rx:
            return "rx";
        case config::FlowControl::tx:
            return "tx";
        case config::FlowControl::full:
            return "full";
    }
    return "?";
}

rte_eth_fc_mode mode_of(config::FlowControl mode) {
    switch (mode) {
        case config::FlowControl::rx:
            return RTE_ETH_FC_RX_PAUSE;
        case config::FlowControl::tx:
            return RTE_ETH_FC_TX_PAUSE;
        case config::FlowControl::full:
            return RTE_ETH_FC_FULL;
        case config::FlowControl::leave:
        case config::FlowControl::off:
            break;
    }
    return RTE_ETH_FC_NONE;
}

std::string reason(int code) {
    return code == -ENOTSUP ? "the driver has no such function" : rte_strerror(-code);
}

void add(std::string& text, const std::string& more) {
    text += (text.empty() ? "" : "; ") + more;
}

}  // namespace

FlowControlResult set_flow_control(std::uint16_t port_id, const config::PortOptions& options) {
    FlowControlResult result;
    if (options.flow_control == config::FlowControl::leave) {
        add(result.text, name(config::FlowControl::leave));
    } else {
        // What is not said here (thresholds, forwarding of control frames) stays as the driver has it.
        rte_eth_fc_conf conf{};
        int rc = ::rte_eth_dev_flow_ctrl_get(port_id, &conf);
        if (rc == 0) {
            conf.mode = mode_of(options.flow_control);
            if (conf.pause_time == 0) conf.pause_time = pause_time;
            rc = ::rte_eth_dev_flow_ctrl_set(port_id, &conf);
        }
        if (rc == 0)
            add(result.text, fmt::format("pause frames: {}", name(options.flow_control)));
        else
            add(result.refused, fmt::format("flow_control = \"{}\": {}", name(options.flow_control), reason(rc)));
    }
    for (const std::uint32_t priority : options.pfc) {
        rte_eth_pfc_conf conf{};
        conf.fc.mode = RTE_ETH_FC_FULL;
        conf.fc.pause_time = pause_time;
        conf.priority = static_cast<std::uint8_t>(priority);
        if (const int rc = ::rte_eth_dev_priority_flow_ctrl_set(port_id, &conf); rc == 0)
            add(result.text, fmt::format("PFC on priority {}", priority));
        else
            add(result.refused, fmt::format("pfc, priority {}: {}", priority, reason(rc)));
    }
    if (result.text.empty()) result.text = name(config::FlowControl::leave);
    return result;
}

}  // namespace weir::port

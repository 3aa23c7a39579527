#include "simulate/sender_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "config/device_facts.hpp"
#include "core/error.hpp"
#include "port/interface_drops.hpp"
#include "simulate/reading_peer.hpp"

namespace weir::simulate {

namespace {

constexpr std::uint32_t ethernet_bytes = 14;

// The kernel drops what is longer than the interface's MTU, and the driver counts it as sent.
void check_interface(const std::string& device, std::uint32_t frame_bytes_max) {
    const std::size_t at = device.find("iface=");
    if (!device.starts_with("net_af_packet") || at == std::string::npos) {
        return;
    }
    const std::string interface = device.substr(at + 6, device.find(',', at) - at - 6);
    const std::optional<std::uint32_t> mtu = port::interface_mtu(interface);
    if (mtu.has_value() && frame_bytes_max > *mtu + ethernet_bytes) {
        throw core::RunError(
            fmt::format("device:{}: {} has an MTU of {}, and would lose frames of {} bytes; ip link set {} mtu 9000",
                        device, interface, *mtu, frame_bytes_max, interface));
    }
}

std::string complete_arguments(const std::string& device, std::uint32_t frame_bytes_max) {
    if (frame_bytes_max > SenderPort::room_bytes) {
        throw core::UsageError(fmt::format("--mtu: frames of {} bytes are too long for a device; up to {} are sent",
                                           frame_bytes_max, SenderPort::room_bytes));
    }
    check_interface(device, frame_bytes_max);
    const std::uint32_t mtu = frame_bytes_max - ethernet_bytes;
    std::string complete = config::with_frame_room(device, mtu);
    if (const std::string problem = config::frame_room_problem(complete, mtu); !problem.empty())
        throw core::UsageError(fmt::format("device:{}: {}", device, problem));
    return complete;
}

port::LivePortConfig port_config(const std::string& device, std::uint32_t frame_bytes_max, std::uint16_t queues) {
    port::LivePortConfig config;
    config.send_queues = queues;
    config.receives = false;
    config.name = "send";
    const std::size_t comma = device.find(',');
    config.device = device.substr(0, comma);
    if (!config::is_pci_address(device)) config.args = comma == std::string::npos ? "" : device.substr(comma + 1);
    config.options.timestamps = config::Timestamps::software;  // it only sends
    config.mtu = static_cast<std::uint16_t>(std::clamp(frame_bytes_max - ethernet_bytes, 1500U, 9600U));
    return config;
}

}  // namespace

SenderPort::Eal::Eal(const std::string& device, std::uint16_t queues) {
    port::EalConfig config;
    config.memory_bytes = port::BufferPool::memory_bytes({buffers(queues), room_bytes}) + (64U << 20);
    if (config::is_pci_address(device)) config.pci.push_back(device);
    config.drivers = port::drivers_of({device});
    config.pin = false;
    start_eal(config);
}

SenderPort::SenderPort(const std::string& device, std::uint32_t frame_bytes_max, std::uint16_t queues)
    : complete_(complete_arguments(device, frame_bytes_max)),
      eal_(complete_, queues),
      pool_("send", {buffers(queues), room_bytes}),
      port_(port_config(complete_, frame_bytes_max, queues), {&pool_}) {}

SenderPort::~SenderPort() {
    take_leave_of(complete_);
}

}  // namespace weir::simulate

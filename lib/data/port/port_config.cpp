#include "port/port_config.hpp"

#include "config/device_facts.hpp"

namespace weir::port {

LivePortConfig live_port_config(const config::PortConfig& config, std::uint8_t index) {
    LivePortConfig live;
    live.name = config.name;
    live.index = index;
    const std::string device =
        config::with_queues(config::with_frame_room(config.devargs(), config.mtu), config.queues);
    const std::size_t comma = device.find(',');
    live.device = device.substr(0, comma);
    if (!config::is_pci_address(device)) live.args = comma == std::string::npos ? "" : device.substr(comma + 1);
    live.queues = config.queues;
    live.mtu = config.mtu;
    live.rx_descriptors = config.rx_descriptors;
    live.options = config.options;
    if (config.address.empty()) return live;
    if (const auto address = config::parse_ip_address(config.address.substr(0, config.address.find('/')))) {
        if (address->v6)
            live.ipv6_address = address->bytes;
        else
            live.address = address->v4();
    }
    return live;
}

}  // namespace weir::port

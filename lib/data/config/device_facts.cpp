#include "config/device_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <optional>

namespace weir::config {

namespace {

constexpr std::uint32_t ethernet_bytes = 14 + 2 * 4 + 4;  // header, two VLAN tags, FCS
// net_af_packet: what the kernel puts in front of a frame in the ring (TPACKET_V2 header, alignment, room for a VLAN
// tag).
constexpr std::uint32_t ring_header_bytes = 128;
// net_af_xdp: a frame and its mbuf lie in one page, less what the kernel and DPDK need of it. Measured on veth: 3.3 KB.
constexpr std::uint32_t xdp_mtu_max = 3200;

constexpr DeviceFacts facts[] = {
    {"pci", LossTold::counted},
    {"sim", LossTold::counted},
    {"kernel", LossTold::counted, true, 0, true},
    {"net_af_packet", LossTold::counted, false, 0, true, false, "qpairs"},
    {"net_af_xdp", LossTold::counted, false, xdp_mtu_max, false, false, "queue_count"},
    {"net_tap", LossTold::counted, false, 0, false, true},
    {"net_pcap", LossTold::counted},
    {"net_null", LossTold::lossless},
    {"net_ring", LossTold::lossless},
    {"net_vhost", LossTold::lossless, false, 0, false, false, "queues"},
    {"net_memif", LossTold::lossless, true},
    {"net_virtio_user", LossTold::lossless, false, 0, false, false, "queues"},
};
constexpr DeviceFacts nothing_known{};

/// The number after "key=", or nothing.
std::optional<std::uint32_t> number_of(std::string_view device, std::string_view key) {
    std::size_t at = 0;
    while ((at = device.find(key, at)) != std::string_view::npos) {
        const std::size_t value = at + key.size();
        if (at > 0 && device[at - 1] == ',' && value < device.size() && device[value] == '=') {
            std::uint32_t number = 0;
            std::from_chars(device.data() + value + 1, device.data() + device.size(), number);
            return number;
        }
        at = value;
    }
    return std::nullopt;
}

std::uint32_t rounded(std::uint32_t bytes, std::uint32_t to) {
    return (bytes + to - 1) / to * to;
}

}  // namespace

bool is_pci_address(const std::string& device) noexcept {
    const std::string name = device.substr(0, device.find(','));
    return name.find(':') != std::string::npos && name.find('.') != std::string::npos &&
           std::isxdigit(static_cast<unsigned char>(name.front())) != 0;
}

bool is_simulator(std::string_view device) noexcept {
    return device == "sim" || device.starts_with("sim,");
}

std::string driver_of(std::string_view device) {
    if (is_pci_address(std::string(device))) return "pci";
    std::string_view name = device.substr(0, device.find(','));
    while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
    return std::string(name);
}

const DeviceFacts& device_facts(std::string_view device) {
    const std::string driver = driver_of(device);
    const auto* const found = std::ranges::find(facts, driver, &DeviceFacts::driver);
    return found != std::end(facts) ? *found : nothing_known;
}

std::string with_frame_room(const std::string& device, std::uint32_t mtu) {
    const std::string driver = driver_of(device);
    const std::uint32_t frame = mtu + ethernet_bytes;
    if (driver == "net_memif" && !number_of(device, "bsize"))
        return fmt::format("{},bsize={}", device, std::max(2048U, rounded(frame, 1024)));
    if (driver == "net_af_packet" && !number_of(device, "framesz") && !number_of(device, "blocksz"))
        return fmt::format("{},framesz=16384,blocksz=65536", device);
    return device;
}

std::uint32_t buffer_room_bytes(const std::string& device, std::uint32_t mtu) {
    if (driver_of(device) != "net_af_packet") return 0;
    return static_cast<std::uint32_t>(number_of(with_frame_room(device, mtu), "framesz").value_or(0));
}

std::string with_queues(const std::string& device, std::uint16_t queues) {
    const std::string_view key = device_facts(device).queues_key;
    if (queues == 1 || key.empty() || number_of(device, key)) return device;
    return fmt::format("{},{}={}", device, key, queues);
}

std::uint32_t kernel_ring_mib(std::string_view device) {
    if (driver_of(device) != "kernel") return 0;
    constexpr std::uint32_t enough = 64;
    return number_of(device, "ring").value_or(enough);
}

std::string argument_problem(const std::string& device) {
    if (driver_of(device) != "kernel") return {};
    constexpr std::uint32_t most = 4096;
    std::size_t at = device.find(',');
    while (at != std::string::npos) {
        const std::size_t begin = at + 1;
        at = device.find(',', begin);
        const std::string one = device.substr(begin, at == std::string::npos ? at : at - begin);
        const bool named = one.starts_with("iface=") && one.size() > 6;
        const auto mib = one.starts_with("ring=") ? kernel_ring_mib(device) : 0;
        if (named || (mib >= 1 && mib <= most && one == fmt::format("ring={}", mib))) continue;
        return fmt::format("kernel takes iface=NAME and ring=MIB (1 to {}), not '{}'", most, one);
    }
    return {};
}

std::string frame_room_problem(const std::string& device, std::uint32_t mtu) {
    const std::string driver = driver_of(device);
    const std::uint32_t frame = mtu + ethernet_bytes;
    if (const auto bytes = number_of(device, "bsize"); driver == "net_memif" && bytes && *bytes < frame)
        return fmt::format(
            "bsize={} is smaller than a frame ({} bytes at mtu {}), and net_memif corrupts such frames without a word",
            *bytes, frame, mtu);
    if (const auto bytes = number_of(device, "framesz");
        driver == "net_af_packet" && bytes && *bytes < frame + ring_header_bytes)
        return fmt::format(
            "framesz={} has no room for a frame ({} bytes at mtu {}, and {} of the ring), "
            "and net_af_packet cuts such frames without a word",
            *bytes, frame, mtu, ring_header_bytes);
    if (const std::uint32_t most = device_facts(device).mtu_max; most > 0 && mtu > most)
        return fmt::format("{} carries no frames that long: a frame has to fit into a page, which allows an MTU of {}",
                           driver, most);
    return {};
}

}  // namespace weir::config

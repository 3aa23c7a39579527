// Whole frames through a DPDK device.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "config/device_facts.hpp"
#include "port/interface_drops.hpp"
#include "resend/wire_target.hpp"
#include "simulate/frame_link.hpp"
#include "simulate/reading_peer.hpp"
#include "wire/network.hpp"

namespace weir::resend {

namespace {

constexpr std::uint32_t mtu_default = 9000;
constexpr std::uint32_t mtu_most = 9600;  // what is asked of a device; the loopback interface has more

class DeviceTarget : public WireTarget {
public:
    DeviceTarget(const std::string& device, std::uint32_t mtu)
        : device_(device), link_(simulate::open_device_link(device, mtu + wire::ethernet_header_bytes)) {
        static_assert(slots <= simulate::FrameLink::slots);
    }

    void load(std::uint32_t slot, std::span<const std::byte> packet, std::uint16_t /*port*/) noexcept override {
        std::memcpy(link_->slot(slot).data(), packet.data(), packet.size());
        bytes_[slot] = static_cast<std::uint32_t>(packet.size());
    }
    Taken send(std::uint32_t first, std::uint32_t count) noexcept override {
        return {link_->send(first, std::span(bytes_).subspan(first, count)), false, false};
    }
    bool is_ready() noexcept override { return link_->is_up(); }
    bool may_take_more(std::chrono::nanoseconds stalled) noexcept override {
        return simulate::may_take_more(device_, stalled, [this] { return link_->is_up(); });
    }
    std::uint64_t lost() noexcept override { return link_->lost(); }
    std::string failure() const override { return "device:" + device_ + ": takes no frame"; }

private:
    std::string device_;
    std::unique_ptr<simulate::FrameLink> link_;
    std::array<std::uint32_t, slots> bytes_{};
};

}  // namespace

std::uint32_t usual_mtu(const std::string& device) {
    const std::size_t comma = device.find(',');
    const std::string interface = port::argument(comma == std::string::npos ? "" : device.substr(comma + 1), "iface");
    if (config::driver_of(device) == "net_af_packet" && !interface.empty())
        return std::min(port::interface_mtu(interface).value_or(mtu_default), mtu_most);
    return mtu_default;
}

std::unique_ptr<WireTarget> open_device_target(const std::string& device, std::uint32_t mtu) {
    return std::make_unique<DeviceTarget>(device, mtu);
}

}  // namespace weir::resend

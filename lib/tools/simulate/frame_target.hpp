// Where simulated frames go: a capture file, a kernel UDP socket, a DPDK device. One virtual call per batch of frames.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/units.hpp"
#include "simulate/simulator.hpp"

namespace weir::simulate {

/// A frame in a slot of the target, ready to go.
struct OutgoingFrame {
    Simulator::Frame frame;
    core::TimeNs time_ns = 0;  ///< when it was due; only a capture file keeps it
};

/// What the network said of frames that nobody acknowledges: errors that came back, at least so many.
struct NetworkErrors {
    std::uint64_t host = 0;  ///< no way there, or nobody answered ARP for the address: they did not arrive
    std::uint64_t port = 0;  ///< a kernel there has no socket at the port; weir takes packets before that is asked
    std::string by;          ///< who said so first
};

class FrameTarget {
public:
    /// Frames that a target holds at once.
    static constexpr std::uint32_t slots = 64;

    virtual ~FrameTarget() = default;
    /// Memory for the frame of a slot: at least Simulator::frame_bytes_max(). Valid until that slot is sent.
    [[nodiscard]] virtual std::span<std::byte> slot(std::uint32_t index) noexcept = 0;
    /// Sends the frames in the slots from `first` on, and returns how many the target took before it was told to stop.
    /// Waits while the target has no room. Throws core::RunError when it cannot send at all.
    virtual std::uint32_t send(std::uint32_t first, std::span<const OutgoingFrame> frames) = 0;
    /// After the last frame: flushes. Throws core::RunError when that fails.
    virtual void finish() {}
    /// Frames that the target took and then lost, as far as it knows.
    [[nodiscard]] virtual std::uint64_t lost() const noexcept { return 0; }
    [[nodiscard]] virtual NetworkErrors network_errors() const { return {}; }
};

/// Writes a new capture file; refuses an existing one.
std::unique_ptr<FrameTarget> open_capture_target(const std::string& path, std::uint32_t frame_bytes_max);

/// A kernel socket at `host` (IPv4 address or name). The kernel writes the Ethernet, IP and UDP headers; only what is
/// after them is taken from the simulator's frames, and a truncated frame is a shorter datagram.
class UdpTarget : public FrameTarget {
public:
    /// Resolves the host and binds to the address of the interface that leads there; `port` is where sources begin, 0
    /// for the format's own. Fills in what the kernel decides: both IP addresses and the source port. RoCE needs them
    /// for its iCRC.
    UdpTarget(const std::string& host, std::uint16_t port, SimulatorConfig& config, const std::atomic<bool>& stop);
    ~UdpTarget() override;
    /// To be called once, before the first slot.
    void prepare(const Simulator& simulator);

    std::span<std::byte> slot(std::uint32_t index) noexcept override;
    std::uint32_t send(std::uint32_t first, std::span<const OutgoingFrame> frames) override;
    /// Waits a moment for errors that are on their way back.
    void finish() override;
    [[nodiscard]] std::uint64_t lost() const noexcept override { return errors_.host; }
    [[nodiscard]] NetworkErrors network_errors() const override { return errors_; }

private:
    struct Batch;
    [[noreturn]] void fail(const Simulator::Frame& frame, int reason) const;
    void take_errors();
    void wait_for_neighbour();
    [[nodiscard]] std::uint32_t send_batch(std::span<const OutgoingFrame> frames, std::uint32_t sent);
    std::string host_;
    const std::atomic<bool>& stop_;
    int socket_ = -1;
    std::uint32_t dst_ip_ = 0;
    std::uint32_t header_bytes_ = 0;
    std::uint32_t frame_bytes_max_ = 0;
    std::unique_ptr<Batch> batch_;
    NetworkErrors errors_;
    bool neighbour_known_ = false;  ///< or asked for in vain
};

/// A DPDK device: a vdev with its arguments ("net_af_packet0,iface=det0") or a PCI address. Starts EAL in this process,
/// which can happen only once. net_af_packet gets frames of 16 KiB unless the arguments say otherwise, because its
/// default cuts jumbo frames without a word. Batches of frames take turns through `queues` transmit queues.
std::unique_ptr<FrameTarget> open_device_target(const std::string& device, const Simulator& simulator,
                                                const std::atomic<bool>& stop, std::uint16_t queues = 1);

}  // namespace weir::simulate

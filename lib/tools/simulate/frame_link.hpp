// One end of a link for a sender that hears answers: frames go out and come in, in bursts, and nothing waits. One
// virtual call per burst; tests put a link without a device in its place.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace weir::simulate {

class FrameLink {
public:
    /// Frames of a burst.
    static constexpr std::uint32_t slots = 32;

    virtual ~FrameLink() = default;
    /// Memory for the frame of a slot. Valid until the slot is sent.
    [[nodiscard]] virtual std::span<std::byte> slot(std::uint32_t index) noexcept = 0;
    /// Sends the frames in the slots from `first` on, each so many bytes long. Returns how many of them went; the
    /// others stay in their slots.
    virtual std::uint32_t send(std::uint32_t first, std::span<const std::uint32_t> bytes) noexcept = 0;
    /// What has come in, at most `frames.size()`. Valid until the next call.
    virtual std::uint32_t receive(std::span<std::span<const std::byte>> frames) noexcept = 0;
    /// The link is up, or nobody can say: before that nothing goes out.
    [[nodiscard]] virtual bool is_up() noexcept { return true; }
    /// Frames that went and were then lost by the device, as far as it says.
    [[nodiscard]] virtual std::uint64_t lost() noexcept { return 0; }
};

/// A DPDK device: a vdev with its arguments, or a PCI address. Starts EAL in this process, which can happen only once.
/// Throws core::UsageError when frames of this length do not go through it, core::RunError when it does not start.
std::unique_ptr<FrameLink> open_device_link(const std::string& device, std::uint32_t frame_bytes_max);

}  // namespace weir::simulate

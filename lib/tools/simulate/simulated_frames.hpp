// The bytes of the simulator: a planned packet becomes a frame, with the header of its format and the content of its
// message. Not here: which packets there are, and what the simulated network does to them.
#pragma once

#include <optional>

#include "simulate/frame_writes.hpp"
#include "simulate/simulated_format.hpp"

namespace weir::simulate {

/// Offsets of the seed, so that one decision says nothing about another.
enum SimulatorSalt : std::uint64_t {
    drop_salt = 1000,
    duplicate_salt,
    truncate_salt,
    cut_salt,
    place_salt,
    size_salt,
    corrupt_salt,
    bit_salt
};

class SimulatedFrames {
public:
    /// `config` is complete and checked; `context` is what the format's entry says of it.
    SimulatedFrames(const SimulatorConfig& config, const wire::FormatContext& context, const SimulationEntry& entry);

    // The format's frames refer to what is in here.
    SimulatedFrames(const SimulatedFrames&) = delete;
    SimulatedFrames& operator=(const SimulatedFrames&) = delete;

    [[nodiscard]] const SimulatorConfig& config() const noexcept { return config_; }
    [[nodiscard]] std::uint32_t frame_bytes_max() const noexcept { return frame_bytes_max_; }
    /// Bytes in front of the UDP payload in every frame.
    [[nodiscard]] std::uint32_t header_bytes() const noexcept { return header_bytes_; }
    [[nodiscard]] std::uint32_t endpoint(std::uint32_t source) const noexcept;
    [[nodiscard]] wire::FrameSpec frame_spec(std::uint32_t source) const noexcept;
    [[nodiscard]] std::uint32_t message_bytes(std::uint64_t event, std::uint32_t source) const noexcept;
    void message_content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                         std::span<std::byte> out) noexcept {
        format_->content(event, source, offset, out);
    }
    [[nodiscard]] std::uint32_t rdma_bytes(std::uint64_t event, std::uint32_t source) const noexcept;
    void rdma_content(std::uint64_t event, std::uint32_t source, std::uint32_t offset,
                      std::span<std::byte> out) noexcept;
    static constexpr std::uint64_t va_step = 0x10000000;
    static constexpr std::uint64_t region_stride_max = std::uint64_t{1} << 32U;
    static constexpr std::uint32_t qkey = 0x11111111;
    /// Messages that a frame is made of, in their order; empty: it is one, of rdma_bytes().
    [[nodiscard]] std::span<const FrameWrites::Write> writes() const noexcept {
        return writes_ ? writes_->writes() : std::span<const FrameWrites::Write>();
    }
    /// Where a WRITE of this event goes, from the address of the source's first buffer on.
    [[nodiscard]] std::uint64_t rdma_offset(std::uint64_t event) const noexcept {
        return (event - config_.first_event) % config_.regions * config_.region_stride;
    }
    /// The source's first buffer.
    [[nodiscard]] std::uint64_t rdma_va(std::uint32_t source) const noexcept { return config_.va + va_step * source; }

    /// Packets of a message.
    [[nodiscard]] std::uint32_t packet_count(std::uint32_t message_bytes) const noexcept;
    /// Whether a packet of this message has anything after the UDP header.
    [[nodiscard]] bool has_payload(std::uint64_t event, std::uint32_t source) const noexcept;
    /// Writes the frame; of `packet`, event, source, index and counter count. Returns its bytes.
    std::size_t write(SimulatedPacket packet, std::span<std::byte> out) noexcept;

private:
    /// What one packet of an RDMA message carries.
    struct Part {
        FrameWrites::Write write;  ///< or SEND
        FrameWrites::Packet packet;
    };
    [[nodiscard]] Part part_of(const SimulatedPacket& packet) const noexcept;
    std::size_t write_roce(const SimulatedPacket& packet, std::span<std::byte> out) noexcept;

    SimulatorConfig config_;
    wire::FormatContext context_;
    const SimulationEntry& entry_;
    std::unique_ptr<SimulatedFormat> format_;
    std::optional<FrameWrites> writes_;  ///< roce_write, formats of frames
    std::vector<std::byte> scratch_;     ///< payload of one RoCE packet
    std::uint32_t packet_bytes_ = 0;     ///< message bytes in a full packet
    std::uint32_t header_bytes_ = 0;
    std::uint32_t frame_bytes_max_ = 0;
};

/// Flips one bit of a RoCE frame among those that its iCRC covers; `draw` says which. `header_bytes`: up to the BTH.
void flip_bit(std::span<std::byte> frame, std::uint32_t header_bytes, std::uint64_t draw) noexcept;

}  // namespace weir::simulate

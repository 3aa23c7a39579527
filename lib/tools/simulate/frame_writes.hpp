// How the frames of a detector go into the receiver's memory by WRITEs: what each WRITE carries, in which order they
// are sent, and in which packets. The memory holds the detector's header and, after it, the frame, row by row
// (docs/reference/formats/rdma_frames.md).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::simulate {

class FrameWrites {
public:
    struct Config {
        std::uint32_t header_bytes = 0;
        std::uint32_t frame_bytes = 0;
        std::uint32_t write_bytes = 0;    ///< of a WRITE of pixels; the last one of a part may be shorter
        std::uint32_t readout_chips = 1;  ///< parts of the frame that take turns, WRITE by WRITE
        std::uint32_t path_mtu = 4096;
    };
    /// One WRITE. The last one of a frame is the header, and carries the immediate.
    struct Write {
        std::uint32_t offset = 0;  ///< in the memory, in bytes
        std::uint32_t bytes = 0;
        bool last = false;
    };
    /// One packet of a frame.
    struct Packet {
        std::uint32_t write = 0;
        std::uint32_t index = 0;  ///< in its WRITE, …
        std::uint32_t count = 0;  ///< … which has so many
    };

    explicit FrameWrites(const Config& config);

    [[nodiscard]] std::span<const Write> writes() const noexcept { return writes_; }
    /// In the order in which they are sent.
    [[nodiscard]] std::span<const Packet> packets() const noexcept { return packets_; }

private:
    void add(const Write& write, std::uint32_t path_mtu);

    std::vector<Write> writes_;
    std::vector<Packet> packets_;
};

}  // namespace weir::simulate

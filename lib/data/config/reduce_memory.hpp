// Memory that the reducers of a run hold all the time: of the ordinary heap, so it is no part of what EAL takes, but it
// has to be there.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::config {

struct ReduceMemory {
    std::uint64_t calibration_bytes = 0;  ///< pedestals and gains of `jungfrau`
    std::uint64_t noise_bytes = 0;        ///< thresholds of `sparse`, from a file
    std::uint64_t pedestal_bytes = 0;     ///< live ones
    std::uint64_t dark_frame_bytes = 0;   ///< copies on their way to them, of all workers

    [[nodiscard]] std::uint64_t sum() const noexcept {
        return calibration_bytes + noise_bytes + pedestal_bytes + dark_frame_bytes;
    }
};

/// Copies of dark frames that a worker has, of the `queue` for all: one to fill while another is on its way.
[[nodiscard]] constexpr std::uint32_t dark_frames_of_worker(std::uint32_t queue, std::uint32_t workers) noexcept {
    return std::max(2U, (queue + workers - 1) / workers);
}

}  // namespace weir::config

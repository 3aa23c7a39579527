// What a simulated detector sends, frame by frame.
#pragma once

#include <cstddef>
#include <vector>

#include "simulate/simulator.hpp"

namespace weir::simulate {

inline std::vector<std::vector<std::byte>> frames_of(const SimulatorConfig& config) {
    Simulator simulator(config);
    std::vector<std::vector<std::byte>> frames;
    std::vector<std::byte> buffer(simulator.frame_bytes_max());
    std::uint32_t bytes = 0;
    while (simulator.next(buffer, bytes)) frames.emplace_back(buffer.begin(), buffer.begin() + bytes);
    return frames;
}

}  // namespace weir::simulate

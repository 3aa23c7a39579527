// Detector frames that WRITEs scatter over the receiver's memory (docs/reference/formats/rdma_frames.md): which
// detector, and where its buffers lie.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probe/queue_pair_log.hpp"
#include "roce/queue_pair.hpp"

namespace weir::probe {

struct ScatteredFrames {
    std::string format{};
    wire::FormatOptions options{};
    roce::Region region{};
    double confidence = 0;
    std::vector<std::string> evidence{};
    std::vector<std::string> doubts{};
};

/// Nothing if the messages are no such frames.
[[nodiscard]] std::optional<ScatteredFrames> scattered_frames(const QueuePairLog& log, const PacketSample& sample);

}  // namespace weir::probe

// The longest burst at full speed that is received whole: RFC 2544, section 26.4, with the corrections of RFC 9004.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::search {

/// Asks for bursts, and is told whether all of a burst arrived. Each repeat searches by halving between 0 and `most`
/// frames, to `within` frames.
class BackToBack {
public:
    /// Throws core::UsageError unless 0 < within <= most and there is at least one repeat.
    BackToBack(std::uint64_t most, std::uint64_t within, int repeats);

    /// Frames of the next burst; none when all repeats are done.
    [[nodiscard]] std::optional<std::uint64_t> next() const noexcept;
    void add(bool whole);

    /// The longest whole burst of each repeat that is done.
    [[nodiscard]] const std::vector<std::uint64_t>& bursts() const noexcept { return bursts_; }
    [[nodiscard]] double mean() const noexcept;  ///< 0 before the first
    /// A repeat found no loss at `most` frames: its burst is a lower limit only.
    [[nodiscard]] bool reached_most() const noexcept { return reached_most_; }

private:
    void begin() noexcept;

    std::uint64_t most_;
    std::uint64_t within_;
    int repeats_;
    std::uint64_t whole_ = 0;  // of this repeat: the longest that arrived whole
    std::uint64_t cut_ = 0;    // and the shortest that did not, or most + 1
    bool tried_most_ = false;
    bool reached_most_ = false;
    std::vector<std::uint64_t> bursts_;
};

/// Seconds that the receiver's buffers hold at the highest frame rate of the link.
struct BufferTime {
    double implied_s = 0;    ///< mean burst over the highest frame rate
    double corrected_s = 0;  ///< less what was taken out while the burst came in
};

/// RFC 9004, section 6.4. Rates in frames/s; `throughput` is the rate without loss. Zero without a highest rate.
[[nodiscard]] BufferTime buffer_time(double mean_burst, double highest_rate, double throughput) noexcept;

}  // namespace weir::search

// What a run shows only while it goes on, and the observations that the summary is made of. Control thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "observe/diagnosis.hpp"
#include "observe/ledger.hpp"
#include "pipeline/bottleneck.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

/// Follows a run for what only shows while it goes on: sources that fall silent, buffers that fill up.
class Watch {
public:
    /// Of a source: its packets, and when it was seen last.
    struct Activity {
        std::uint64_t packets = 0;
        double last_s = 0;
    };
    /// On the control thread, several times a second.
    void look(const pipeline::Pipeline& pipeline, double seconds);
    /// From the first packet for a stream to the last, to a few milliseconds; 0: none came, or all at once.
    [[nodiscard]] double active_seconds() const { return last_packet_s_ - first_packet_s_; }
    /// What everybody did while something was refused or evicted; or in the whole run, if nothing was.
    [[nodiscard]] pipeline::Usage decisive(const pipeline::Usage& whole) const;
    [[nodiscard]] Observations observations(const pipeline::Pipeline& pipeline, const Ledger& ledger,
                                            double seconds) const;

    /// By source, as of the last look; empty before the first. To a tenth of a second.
    [[nodiscard]] std::span<const Activity> sources() const noexcept { return sources_; }

private:
    void look_for_packets(const pipeline::Pipeline& pipeline, double seconds);

    std::uint64_t stream_packets_ = 0;
    double packets_looked_s_ = 0;
    double first_packet_s_ = 0;
    double last_packet_s_ = 0;
    double looked_s_ = 0;
    double queued_max_ = 0;
    double writer_max_ = 0;
    std::vector<Activity> sources_;
    pipeline::Usage looked_;      ///< at the last look
    pipeline::Usage overloaded_;  ///< between looks in which something was refused
};

}  // namespace weir::observe

// A run at one moment, and how fast it has been since the moment before: what the progress line, its JSON and the page
// are made of. On the control thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "observe/ledger.hpp"
#include "pipeline/bottleneck.hpp"
#include "pipeline/levels.hpp"
#include "record/recorder.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::observe {

struct RunMoment;

/// A run at one moment, and what moved since the moment before.
struct RunSample {
    double seconds = 0;  ///< since the start
    Ledger ledger;
    pipeline::Levels levels;
    pipeline::Usage usage;  ///< since the sample before
    double packets_per_s = 0;
    double gbps = 0;
    double events_per_s = 0;
    double sink_bytes_per_s = 0;
    std::optional<record::Recorder::Status> recorder;  ///< nothing: the run has none
    std::string nothing;  ///< nothing has come for any stream: what has come instead, in few words; otherwise empty
};

/// How the recorder of a run stands; nothing: it has none.
[[nodiscard]] std::optional<record::Recorder::Status> recorder_of(const pipeline::Pipeline& pipeline);

/// Each listener has its own: rates are since its last sample.
class RunSampler {
public:
    [[nodiscard]] RunSample take(const RunMoment& moment, Ledger ledger);
    /// Of the last sample; 0 before the first.
    [[nodiscard]] double last_s() const noexcept { return last_s_; }

private:
    double last_s_ = 0;
    std::uint64_t last_packets_ = 0;
    std::uint64_t last_bytes_ = 0;
    std::uint64_t last_events_ = 0;
    std::uint64_t last_stored_ = 0;
    pipeline::Usage last_usage_;
};

}  // namespace weir::observe

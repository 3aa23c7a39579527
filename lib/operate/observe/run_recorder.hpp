// The pcapng sink of a run: opened from the configuration, watched by the control thread, told of at the end
// (docs/guides/RECORDER.md).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "observe/run_observer.hpp"
#include "record/recorder.hpp"
#include "store/disk_watch.hpp"

namespace weir::plan {
struct Plan;
}  // namespace weir::plan

namespace weir::observe {

/// What the report, telemetry and progress say of a recorder.
[[nodiscard]] nlohmann::json recorder_json(const record::Recorder::Status& status);

class RunRecorder final : public RunObserver {
public:
    using Say = std::function<void(const std::string&)>;
    struct Options {
        bool replay = false;
        std::filesystem::path path;  ///< of the first file
        std::string version;         ///< of the program
        Say say;                     ///< gets what the operator should know: a warning, on the control thread
    };

    /// Null: the run has no sink of kind "pcapng". Nothing is created yet. Throws core::UsageError and core::RunError.
    static std::unique_ptr<RunRecorder> open(const config::RunConfig& config, const plan::Plan& plan,
                                             const Options& options);

    RunRecorder(record::Recorder::Config config, const config::SinkConfig& sink, Say say);
    [[nodiscard]] record::Recorder& recorder() noexcept { return recorder_; }

    /// Recording begins, with what is known of the interfaces now.
    void starting(const RunMoment& moment) override;
    void check(const RunMoment& moment) override;
    /// The last packets are written, and the file is closed.
    void ended(const RunMoment& moment) override;
    /// Somebody asks for what is in memory. Returns what will be done, for people.
    [[nodiscard]] std::string request();

    /// Empty, or why nothing can be written any more although it should: an error, not a limit.
    [[nodiscard]] std::string failure() const;
    /// `on_error` of the sink.
    [[nodiscard]] config::SinkError on_error() const noexcept { return on_error_; }
    /// What has become of it, a line for the summary.
    [[nodiscard]] std::string text() const;
    [[nodiscard]] nlohmann::json json() const;

private:
    void warn(const record::Recorder::Status& status);

    record::Recorder recorder_;
    stages::DropBurst drops_;
    config::SinkError on_error_;
    Say say_;
    store::DiskAlarm alarm_;
    store::DiskWatch disk_;
    double disk_looked_s_ = -1;
    double looked_s_ = -1;
    std::uint64_t copied_bytes_ = 0;  ///< and the newest time, when the rate was looked at
    core::TimeNs copied_ns_ = 0;
    bool said_stopped_ = false;
    bool said_short_ = false;
    bool said_left_out_ = false;
};

}  // namespace weir::observe

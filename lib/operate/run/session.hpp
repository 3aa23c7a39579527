// One run: from open sinks to its report. On the control thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/progress.hpp"
#include "observe/run_observers.hpp"
#include "observe/run_recorder.hpp"
#include "observe/run_report.hpp"
#include "observe/watch.hpp"
#include "pipeline/pipeline.hpp"
#include "run/controlled_run.hpp"
#include "run/exchanges.hpp"
#include "run/preparation.hpp"
#include "run/run_sinks.hpp"
#include "run/stop_condition.hpp"

namespace weir::run {

class Session final : public ControlledRun {
public:
    /// `prepared` outlives the run. Opens the report's file: throws core::RunError.
    explicit Session(const Preparation& prepared);
    /// A run that could not start leaves nothing that would stand in the way of the next try.
    ~Session() override;

    /// Captures and sinks.
    void open(const std::function<bool()>& is_given_up) override;
    /// Makes the pipeline; EAL runs.
    void make(pipeline::RunPorts* ports, const std::vector<observe::RunObserver*>& observers) override;
    void start() override;
    /// Devices whose links are not up are waited for; the time of the run begins when the wait is over.
    void wait_for_links();
    [[nodiscard]] bool turn() override;
    void stop(const std::string& reason) override;
    void abort() override;
    /// Draws up the account and closes the sinks.
    [[nodiscard]] Result finish() override;

    [[nodiscard]] pipeline::Pipeline& pipeline() noexcept { return *pipeline_; }
    [[nodiscard]] const RunSinks& sinks() const noexcept { return sinks_; }
    [[nodiscard]] double seconds() const noexcept { return seconds_; }
    [[nodiscard]] bool is_stopping() const noexcept override { return stopping_; }
    [[nodiscard]] const std::string& stop_reason() const noexcept override { return stop_reason_; }
    [[nodiscard]] std::optional<std::uint32_t> number() const noexcept override { return sinks_.run_number(); }
    [[nodiscard]] std::vector<std::filesystem::path> paths() const override { return sinks_.paths(); }
    [[nodiscard]] std::vector<std::filesystem::path> final_paths() const override { return sinks_.final_paths(); }
    /// Where snapshots of pedestals go; empty where there is no place for them.
    [[nodiscard]] std::filesystem::path snapshot_folder() const;
    [[nodiscard]] std::string save_recording() override;
    [[nodiscard]] nlohmann::json account() override;
    /// A sentence for people, without damaging the progress line.
    void say(std::string_view text) { progress_.say(text); }
    void warn(const std::string& text) override;
    /// Only in the report.
    void remember(const std::string& warning) { warnings_.push_back(warning); }
    [[nodiscard]] std::string line() override;
    [[nodiscard]] std::vector<pipeline::Usage::Lcore> lcores() override { return pipeline_->usage(seconds_).lcores; }

private:
    [[nodiscard]] const RunOptions& options() const noexcept { return prepared_.options(); }
    [[nodiscard]] observe::RunFacts facts() const;
    [[nodiscard]] observe::RunMoment moment() const { return {*pipeline_, watch_, seconds_}; }
    [[nodiscard]] pipeline::Pipeline::Options pipeline_options(pipeline::RunPorts* ports);
    void say_start() const;
    void watch_cluster();
    void leave_cluster();
    void watch_sinks();
    void serve_record_requests();
    [[nodiscard]] bool recorder_must_stop() const;
    void watch_flows();
    void say_nothing_came();
    [[nodiscard]] nlohmann::json report_json(const observe::Ledger& ledger) const;
    void add_warnings();
    [[nodiscard]] std::string close_sinks(const observe::Ledger& ledger, const observe::Verdict& verdict);
    [[nodiscard]] std::string close_everything(const observe::Ledger& ledger, const observe::Verdict& verdict);
    void print_summary(const observe::Ledger& ledger, const observe::Verdict& verdict,
                       const std::vector<pipeline::Finding>& findings, const pipeline::Usage& decisive) const;
    [[nodiscard]] int judge_status(const observe::Ledger& ledger, const observe::Verdict& verdict,
                                   const std::string& failure) const;

    const Preparation& prepared_;
    observe::ReportFile report_;
    observe::Progress progress_;
    observe::Progress line_progress_{{observe::ProgressMode::none, ""}, true};  ///< its rates have their own intervals
    observe::Watch watch_;
    std::unique_ptr<fabric::ClusterThread> cluster_thread_;  ///< of a cluster; null: the run is of none
    RunSinks sinks_;
    nlohmann::json kept_start_;          ///< what the sinks were opened with
    std::vector<std::string> warnings_;  ///< for the report
    std::unique_ptr<stages::AnswerLog> answers_;
    std::unique_ptr<observe::RunRecorder> recorder_;
    observe::RunObservers observers_;  ///< all who watch the run: the progress, those of make(), the recorder
    std::unique_ptr<pipeline::Pipeline> pipeline_;
    std::unique_ptr<Exchanges> exchanges_;
    std::chrono::steady_clock::time_point start_;
    bool started_ = false;
    bool stopping_ = false;
    bool said_nothing_ = false;
    static constexpr double patience_s = 5;  ///< until a run says by itself that nothing comes
    double seconds_ = 0;
    StopCondition stop_condition_;
    double flows_looked_s_ = 0;
    std::string stop_reason_ = "end of input";
    std::string left_alone_;  ///< empty, or why it stopped: nobody was there to work with
};

}  // namespace weir::run

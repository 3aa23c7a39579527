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
#include "observe/run_recorder.hpp"
#include "observe/run_report.hpp"
#include "observe/telemetry.hpp"
#include "observe/watch.hpp"
#include "pipeline/pipeline.hpp"
#include "run/exchanges.hpp"
#include "run/onlooker.hpp"
#include "run/preparation.hpp"
#include "run/run_sinks.hpp"
#include "run/stop_condition.hpp"

namespace weir::run {

class Session {
public:
    /// What looks on from outside, and outlives the run; each may be null.
    struct Company {
        pipeline::RunPorts* ports = nullptr;      ///< devices that are up already; null: the run starts its own
        observe::Telemetry* telemetry = nullptr;  ///< DPDK's telemetry
        Onlooker* onlooker = nullptr;
    };
    struct Result {
        int status = 0;       ///< as that of the program: 0, 1 or 3
        std::string failure;  ///< why the run failed; empty if it did not
        nlohmann::json report;
        std::uint64_t lost_packets = 0;     ///< that weir had and that are in no event
        std::uint64_t missing_packets = 0;  ///< that events miss; what came too late is in both
    };

    /// `prepared` outlives the run. Opens the report's file: throws core::RunError.
    explicit Session(const Preparation& prepared);
    /// A run that could not start leaves nothing that would stand in the way of the next try.
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // In this order:

    /// Captures and sinks: where users err most, so before anything takes time. Throws core::UsageError or
    /// core::RunError. Waits for those whom sinks send events to, as long as the configuration says and
    /// `is_given_up` does not.
    void open(const std::function<bool()>& is_given_up);
    /// Makes the pipeline; EAL runs. Throws core::UsageError or core::RunError.
    void make(Company company);
    /// Packets count from here on. Throws core::RunError.
    void start();
    /// Devices whose links are not up are waited for; the time of the run begins when the wait is over.
    void wait_for_links();
    /// One turn, every few milliseconds; false: everything has ended.
    [[nodiscard]] bool turn();
    /// Takes no more input; what is under way is finished, in further turns. The first reason counts.
    void stop(const std::string& reason);
    /// The same without waiting for anybody.
    void abort();
    /// Draws up the account and closes the sinks.
    [[nodiscard]] Result finish();

    [[nodiscard]] pipeline::Pipeline& pipeline() noexcept { return *pipeline_; }
    [[nodiscard]] const RunSinks& sinks() const noexcept { return sinks_; }
    [[nodiscard]] double seconds() const noexcept { return seconds_; }
    [[nodiscard]] bool is_stopping() const noexcept { return stopping_; }
    [[nodiscard]] const std::string& stop_reason() const noexcept { return stop_reason_; }
    /// Where snapshots of pedestals go; empty where there is no place for them.
    [[nodiscard]] std::filesystem::path snapshot_folder() const;
    /// What the flight recorder has is saved: what will be done, or why nothing.
    [[nodiscard]] std::string save_recording();
    /// The account so far, as `--progress json` has it.
    [[nodiscard]] nlohmann::json account();
    /// A sentence for people, without damaging the progress line.
    void say(std::string_view text) { progress_.say(text); }
    /// The same, and it is in the report.
    void warn(const std::string& text);
    /// Only in the report.
    void remember(const std::string& warning) { warnings_.push_back(warning); }
    /// How it goes, on one line; rates are since the last call.
    [[nodiscard]] std::string line();

private:
    [[nodiscard]] const RunOptions& options() const noexcept { return prepared_.options(); }
    [[nodiscard]] Onlooker::RunFacts facts() const;
    [[nodiscard]] pipeline::Pipeline::Options pipeline_options() const;
    void say_start() const;
    void watch_cluster();
    void leave_cluster();
    void watch_sinks();
    void watch_recorder();
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
    Company company_;
    observe::ReportFile report_;
    observe::Progress progress_;
    observe::Progress line_progress_{{observe::ProgressMode::none, ""}, true};  ///< its rates have their own intervals
    observe::Watch watch_;
    std::unique_ptr<fabric::Member> member_;  ///< of a cluster; null: the run is of none
    RunSinks sinks_;
    nlohmann::json kept_start_;          ///< what the sinks were opened with
    std::vector<std::string> warnings_;  ///< for the report
    std::unique_ptr<stages::AnswerLog> answers_;
    std::unique_ptr<observe::RunRecorder> recorder_;
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

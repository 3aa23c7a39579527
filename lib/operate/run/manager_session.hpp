// The run of a node of a cluster that does nothing but manage: it has no pipeline.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fabric/cluster_thread.hpp"
#include "observe/run_observers.hpp"
#include "run/controlled_run.hpp"
#include "run/run.hpp"

namespace weir::run {

class ManagerSession final : public ControlledRun {
public:
    /// Wants `options.cluster`; `options` outlive it.
    explicit ManagerSession(const RunOptions& options) : options_(options) {}
    ~ManagerSession() override;

    /// Listens. Throws core::RunError.
    void open(const std::function<bool()>& is_given_up) override;
    void make(pipeline::RunPorts* ports, const std::vector<observe::RunObserver*>& observers) override;
    void start() override;
    [[nodiscard]] bool turn() override;
    void stop(const std::string& reason) override;
    void abort() override;
    /// The report has "cluster", and of "packets" and "events" that there were none.
    [[nodiscard]] Result finish() override;

    [[nodiscard]] bool is_stopping() const noexcept override { return stopping_; }
    [[nodiscard]] const std::string& stop_reason() const noexcept override { return stop_reason_; }
    [[nodiscard]] std::optional<std::uint32_t> number() const noexcept override { return options_.run_number; }
    [[nodiscard]] std::vector<std::filesystem::path> paths() const override { return {}; }
    [[nodiscard]] std::vector<std::filesystem::path> final_paths() const override { return {}; }
    [[nodiscard]] std::string save_recording() override;
    [[nodiscard]] nlohmann::json account() override;
    void warn(const std::string& text) override;
    [[nodiscard]] std::string line() override;
    [[nodiscard]] std::vector<pipeline::Usage::Lcore> lcores() override { return {}; }

private:
    [[nodiscard]] double seconds() const;

    const RunOptions& options_;
    observe::RunObservers observers_;
    std::unique_ptr<fabric::ClusterThread> cluster_thread_;
    std::chrono::steady_clock::time_point start_;
    bool stopping_ = false;
    bool was_alone_ = false;
    std::string stop_reason_ = "end of input";
    std::vector<std::string> warnings_;
};

/// Until all readout nodes have ended, or a signal. Returns the exit status. Wants `options.cluster`. Throws
/// core::UsageError and core::RunError.
int execute_manager(const RunOptions& options);

}  // namespace weir::run

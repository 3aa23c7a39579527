// `weir serve`: devices stay up, and runs come and go as others ask for them.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "observe/telemetry.hpp"
#include "pipeline/run_ports.hpp"
#include "run/controlled_run.hpp"
#include "run/leftover_runs.hpp"
#include "run/preparation.hpp"
#include "run/service_manager.hpp"
#include "serve/command_queue.hpp"
#include "serve/run_list.hpp"
#include "serve/run_log.hpp"
#include "serve/web_frontend.hpp"

namespace weir::serve {

/// One per process. All on the control thread.
class Service {
public:
    /// `start_at_once`: the first run begins as soon as devices are up. Makes the plan and opens the run log: throws
    /// core::UsageError and core::RunError.
    Service(run::RunOptions options, bool start_at_once);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    /// Until a signal ends it. Returns the exit status. Throws core::UsageError and core::RunError if it cannot start.
    int run();

private:
    [[nodiscard]] double seconds() const;
    void open_devices();
    void drop_privileges();
    void idle_turn();
    void one_run(Command by);
    [[nodiscard]] bool only_manages() const;
    [[nodiscard]] std::unique_ptr<run::ControlledRun> new_run();
    [[nodiscard]] std::unique_ptr<run::ControlledRun> arm(RunList::Run& run);
    void give_up_start_if_asked() const;
    void control(run::ControlledRun& session);
    void obey(run::ControlledRun& session, Command command);
    [[nodiscard]] std::string save_snapshot(run::ControlledRun& session);
    void end_run(run::ControlledRun& session, RunList::Run& run);
    std::string save_report(const nlohmann::json& report, const std::string& what);
    void move_to(State state, nlohmann::json more);
    void note(RunEvent what, nlohmann::json more);
    void refuse(Command command);
    void finish_commands(const std::string& message, const std::string& error);
    void say_leftovers();
    void note_coming_number();

    run::Preparation prepared_;
    config::ServeConfig config_;
    bool start_next_;
    RunLog log_;
    CommandQueue commands_;
    RunList history_;
    WebFrontend frontend_;
    std::unique_ptr<pipeline::RunPorts> ports_;
    std::unique_ptr<observe::Telemetry> telemetry_;
    std::unique_ptr<run::LeftoverRuns> leftovers_;
    run::ServiceManager service_manager_;
    std::optional<Command> under_way_;
    bool aborting_ = false;
    std::uint64_t runs_ = 0;
    std::uint64_t number_ = 0;  ///< of the run
    std::uint32_t snapshots_ = 0;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace weir::serve

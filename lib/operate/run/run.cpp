#include "run/run.hpp"

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "core/print_stderr.hpp"
#include "observe/telemetry.hpp"
#include "port/eal.hpp"
#include "port/stale_hugepages.hpp"
#include "run/leftover_runs.hpp"
#include "run/manager_session.hpp"
#include "run/preparation.hpp"
#include "run/privileges.hpp"
#include "run/run_signals.hpp"
#include "run/service_manager.hpp"
#include "run/session.hpp"

namespace weir::run {

namespace {

/// Devices are started and files are open: what is needed from here on is little.
void drop_privileges(const Preparation& prepared, Session& session) {
    const RunOptions& options = prepared.options();
    if (options.keep_privileges) return;
    std::vector<std::filesystem::path> folders;
    if (const std::filesystem::path snapshots = session.snapshot_folder(); !snapshots.empty())
        folders.push_back(snapshots);
    for (const std::filesystem::path& path : session.sinks().paths())
        if (!path.empty()) folders.insert(folders.end(), {path, path.parent_path()});
    if (session.sinks().recorder_path()) folders.push_back(session.sinks().recorder_path()->parent_path());
    const PrivilegesLeft left = give_up_privileges(prepared.kept_privileges(folders));
    if (!options.quiet) core::say_text(left.text());
    for (const std::string& failure : left.failures) session.remember(failure);
}

/// What earlier runs left, as it is dealt with.
void say_recovered(LeftoverRuns& leftovers, Session& session) {
    for (const LeftoverRuns::Line& line : leftovers.take_lines())
        line.problem ? session.warn(line.text) : session.say(line.text);
}

void control(Session& session, ServiceManager& service_manager, LeftoverRuns& leftovers, bool is_replay) {
    bool told_stopping = false;
    while (session.turn()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        const std::string said = service_manager.look(
            session.seconds(), [&] { return session.pipeline().usage(session.seconds()).lcores; },
            [&] { return session.line(); });
        if (!said.empty()) session.warn(said);
        say_recovered(leftovers, session);
        if (session.is_stopping() && !std::exchange(told_stopping, true))
            service_manager.stopping(session.stop_reason());
    }
    // A replay may be over before anything has been closed, and whoever only replays has no later start that could.
    is_replay ? leftovers.finish([] { return stop_signal() != 0; }) : leftovers.stop();
    say_recovered(leftovers, session);
}

}  // namespace

int execute_run(RunOptions options) {
    if (options.print_config) {
        Preparation(std::move(options)).print();
        return 0;
    }
    if (options.cluster && options.cluster->self().role == config::NodeRole::manager) return execute_manager(options);
    port::remove_stale_hugepages();
    Preparation prepared(std::move(options));
    Session session(prepared);
    prepared.check_machine();
    catch_signals();
    prepared.load();
    session.open([] { return stop_signal() != 0; });
    prepared.check_devices();
    port::start_eal(prepared.eal());
    std::unique_ptr<observe::Telemetry> telemetry;
    if (!prepared.options().telemetry.empty()) telemetry = std::make_unique<observe::Telemetry>();
    session.make(nullptr, {telemetry.get(), prepared.options().observer});
    session.start();
    ServiceManager service_manager;
    if (!prepared.is_replay()) {
        session.wait_for_links();
        drop_privileges(prepared, session);
        if (!prepared.options().quiet) core::print_stderr("running: SIGINT (Ctrl-C) or SIGTERM ends the run\n");
        service_manager.ready(0);
    }
    LeftoverRuns leftovers(prepared.options().config, prepared.options().out);
    control(session, service_manager, leftovers, prepared.is_replay());
    const int status = session.finish().status;
    port::end_with_process();
    return status;
}

}  // namespace weir::run

#include "serve/service.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "config/reducers/pedestal.hpp"
#include "config/sinks/pcapng.hpp"
#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "observe/run_report.hpp"
#include "pipeline/wall_clock.hpp"
#include "port/eal.hpp"
#include "port/stale_hugepages.hpp"
#include "run/manager_session.hpp"
#include "run/run_signals.hpp"
#include "run/session.hpp"
#include "store/run_path.hpp"

namespace weir::serve {

namespace {

constexpr auto turn_pause = std::chrono::milliseconds(2);

bool has_recorder(const config::RunConfig& config) {
    return std::ranges::any_of(
        config.sinks, [](const config::SinkConfig& sink) { return sink.as<config::RecorderConfig>() != nullptr; });
}

config::ServeConfig serve_config(const config::RunConfig& config) {
    return config.serve.value_or(config::ServeConfig{});
}

/// Of a folder that may have placeholders.
std::filesystem::path fixed_part(std::filesystem::path folder) {
    while (folder.string().find('{') != std::string::npos) folder = folder.parent_path();
    return folder.empty() ? "." : folder;
}

/// Where sinks write, as far as their paths are the same for all runs.
std::set<std::filesystem::path> fixed_folders(const config::RunConfig& config) {
    std::set<std::filesystem::path> folders;
    for (const config::SinkConfig& sink : config.sinks) {
        if (!sink.has_path()) continue;
        folders.insert(fixed_part(std::filesystem::path(sink.path).parent_path()));
    }
    if (const auto* pedestal = find_reducer<config::PedestalOptions>(config.reduce);
        pedestal != nullptr && !pedestal->snapshots.empty())
        folders.insert(pedestal->snapshots);
    return folders;
}

/// What would go wrong at the second start only, or when the first run ends. Makes the folder for reports. Throws
/// core::UsageError and core::RunError.
void check_paths(const config::RunConfig& config, const config::ServeConfig& serve) {
    for (std::size_t i = 0; i < config.sinks.size(); ++i) {
        const std::string& path = config.sinks[i].path;
        if (!config.sinks[i].has_path() || path.find("{run") != std::string::npos ||
            path.find("{date}") != std::string::npos)
            continue;
        throw core::UsageError(fmt::format(
            "sink {}: path = \"{}\" is the same for all runs, and no run overwrites another one; accepted by "
            "weir serve: a path with {{run}} in it, as \"runs/{{name}}-{{run:06}}\"",
            i, path));
    }
    if (serve.reports.empty()) return;
    store::expand_path_template(serve.reports, {config.name, 0, "", config.node});
    const std::filesystem::path folder = fixed_part(serve.reports);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (!error && !std::filesystem::is_directory(folder)) error = std::make_error_code(std::errc::not_a_directory);
    if (!error && ::access(folder.c_str(), W_OK) != 0) error = {errno, std::generic_category()};
    if (error) throw core::RunError(fmt::format("serve.reports: {}: {}", folder.string(), error.message()));
}

}  // namespace

Service::Service(run::RunOptions options, bool start_at_once)
    : prepared_(std::move(options)),
      config_(serve_config(prepared_.options().config)),
      start_next_(start_at_once),
      log_(config_.run_log),
      commands_(has_recorder(prepared_.options().config), [this] { frontend_.amend(); }),
      frontend_(
          prepared_.options(), config_, [this](nlohmann::json& document) { commands_.describe(document); },
          &commands_) {}

Service::~Service() = default;

double Service::seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Service::open_devices() {
    run::catch_signals();
    if (only_manages()) return;
    port::remove_stale_hugepages();
    prepared_.check_machine();
    prepared_.load();  // what is wrong with the reducers' files is said now, not at the first run
    prepared_.check_devices();
    port::start_eal(prepared_.eal());
    if (prepared_.is_live()) {  // a builder of a cluster has no devices
        ports_ = std::make_unique<pipeline::RunPorts>(prepared_.options().config, prepared_.plan(),
                                                      prepared_.options().make_built_in);
        ports_->open();
        ports_->begin();
    }
    if (!prepared_.options().telemetry.empty()) telemetry_ = std::make_unique<observe::Telemetry>();
}

void Service::drop_privileges() {
    if (prepared_.options().keep_privileges) return;
    std::vector<std::filesystem::path> folders;
    for (const std::filesystem::path& folder : fixed_folders(prepared_.options().config)) folders.push_back(folder);
    if (!config_.reports.empty()) folders.push_back(fixed_part(config_.reports));
    std::vector<run::KeptPrivilege> kept;
    if (!only_manages()) {
        kept = prepared_.kept_privileges(folders);
        kept.push_back({CAP_IPC_LOCK, "the memory of each run is locked"});
    }
    const run::PrivilegesLeft left = run::give_up_privileges(kept);
    if (!prepared_.options().quiet) core::say_text(left.text());
    for (const std::string& failure : left.failures) core::print_stderr("warning: {}\n", failure);
}

int Service::run() {
    check_paths(prepared_.options().config, config_);
    open_devices();
    frontend_.listen();
    drop_privileges();
    leftovers_ = std::make_unique<run::LeftoverRuns>(prepared_.options().config, "");
    core::print_stderr("serving: SIGINT (Ctrl-C) or SIGTERM ends it\n");
    service_manager_.ready(seconds());
    move_to(State::idle, {{"event", "service"}, {"version", prepared_.options().version}});
    while (run::stop_signal() == 0) {
        idle_turn();
        if (std::exchange(start_next_, false)) one_run(under_way_.value_or(Command::start));
        const std::optional<Command> command = commands_.take();
        if (command == Command::start)
            one_run(*command);
        else if (command)
            refuse(*command);
        std::this_thread::sleep_for(turn_pause);
    }
    const std::string reason = fmt::format("SIG{}", ::sigabbrev_np(run::stop_signal()));
    service_manager_.stopping(reason);
    leftovers_->stop();
    say_leftovers();
    const std::string trouble = log_.add({{"event", "service"}, {"to", "ended"}, {"reason", reason}});
    if (!trouble.empty()) core::print_stderr("warning: {}\n", trouble);
    port::end_with_process();
    return 0;
}

void Service::idle_turn() {
    if (ports_ != nullptr) ports_->idle();
    frontend_.idle();
    say_leftovers();
    static_cast<void>(service_manager_.look(
        seconds(), [] { return std::vector<pipeline::Usage::Lcore>(); }, [] { return std::string("idle"); }));
    if (run::asked_for_progress()) core::print_stderr("idle, {} runs so far\n", runs_);
    if (run::asked_to_record()) core::print_stderr("SIGUSR2: there is no run\n");
}

/// It was taken while there was a run, which has ended by itself since.
void Service::refuse(Command command) {
    const bool is_as_wanted = command == Command::stop || command == Command::abort;
    const std::string why = "there is no run";
    commands_.done(command, is_as_wanted ? why : "", is_as_wanted ? "" : why);
    frontend_.refresh();
}

void Service::say_leftovers() {
    for (const run::LeftoverRuns::Line& line : leftovers_->take_lines())
        core::print_stderr("{}{}\n", line.problem ? "warning: " : "", line.text);
}

/// What runs are called that the next one of this service, or of its cluster, must not be.
void Service::note_coming_number() {
    const config::RunConfig& config = prepared_.options().config;
    std::uint64_t number = frontend_.run_number() + 1;
    for (const config::SinkConfig& sink : config.sinks) try {
            if (!sink.has_path()) continue;
            const auto next = store::coming_run_number(sink.path, config.name, pipeline::wall_ns(), config.node);
            if (next) number = std::max<std::uint64_t>(number, *next);
        } catch (const std::exception&) {
            // Whoever starts the run is told.
        }
    commands_.set_coming_number(static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX - 2)));
}

void Service::move_to(State state, nlohmann::json more) {
    if (state == State::idle) note_coming_number();
    more["from"] = name_of(commands_.state());
    more["to"] = name_of(state);
    if (!more.contains("event")) more["event"] = "state";
    commands_.move_to(state);
    const std::string trouble = log_.add(std::move(more));
    if (!trouble.empty()) core::print_stderr("warning: {}\n", trouble);
    frontend_.refresh();
}

void Service::note(RunEvent what, nlohmann::json more) {
    const std::optional<State> state = after(commands_.state(), what);
    if (!state)
        throw std::logic_error("internal error: this cannot happen while " + std::string(name_of(commands_.state())));
    move_to(*state, std::move(more));
}

void Service::finish_commands(const std::string& message, const std::string& error) {
    if (under_way_) commands_.done(*std::exchange(under_way_, std::nullopt), message, error);
    if (std::exchange(aborting_, false)) commands_.done(Command::abort, message);
    frontend_.refresh();
}

void Service::give_up_start_if_asked() const {
    if (commands_.wants_abort()) throw core::RunError("given up, because somebody asked for that");
    if (run::stop_signal() != 0) throw core::RunError("given up, because weir is told to end");
}

bool Service::only_manages() const {
    const auto& cluster = prepared_.options().cluster;
    return cluster && cluster->self().role == config::NodeRole::manager;
}

std::unique_ptr<run::ControlledRun> Service::new_run() {
    if (only_manages()) return std::make_unique<run::ManagerSession>(prepared_.options());
    prepared_.load();
    return std::make_unique<run::Session>(prepared_);
}

/// Everything up to the first packet. Throws core::UsageError or core::RunError; nothing stays then.
std::unique_ptr<run::ControlledRun> Service::arm(RunList::Run& run) {
    const CommandQueue::NextRun next = commands_.take_next_run();
    prepared_.options().run_number = next.run_number;
    prepared_.options().duration_s = next.duration_s;
    prepared_.options().events = next.events;
    prepared_.options().duration_name = "config/duration_s";
    prepared_.options().events_name = "config/events";
    prepared_.options().comment = next.comment;
    if (auto& cluster = prepared_.options().cluster)
        cluster->left_out = run::nodes_named(cluster->whole, next.without);
    else if (!next.without.empty())
        throw core::RunError("config/without: this is no node of a cluster");
    give_up_start_if_asked();
    std::unique_ptr<run::ControlledRun> session = new_run();
    session->open([this] { return commands_.wants_abort() || run::stop_signal() != 0; });
    give_up_start_if_asked();
    session->make(ports_.get(), {telemetry_.get(), &frontend_});
    give_up_start_if_asked();
    run.paths = session->final_paths();
    run.comment = next.comment;
    run.started_ns = pipeline::wall_ns();
    session->start();
    run.number = frontend_.run_number();
    return session;
}

/// From arming to idle; whatever goes wrong ends there, too.
void Service::one_run(Command by) {
    under_way_ = by;
    commands_.set_error({});
    move_to(after(commands_.state(), Command::start), {});
    RunList::Run run;
    std::unique_ptr<run::ControlledRun> session;
    const auto begin = std::chrono::steady_clock::now();
    service_manager_.be_patient(true);
    try {
        session = arm(run);
    } catch (const std::exception& error) {
        service_manager_.be_patient(false);
        core::print_stderr("the run could not be started: {}\n", error.what());
        if (frontend_.has_run()) frontend_.set_run_ended("it could not be started");
        commands_.set_error(error.what());
        aborting_ = commands_.wants_abort();
        note(RunEvent::failed, {{"error", error.what()}});
        finish_commands({}, error.what());
        return;
    }
    service_manager_.be_patient(false);
    const double arm_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    ++runs_;
    number_ = run.number;
    nlohmann::json paths = nlohmann::json::array();
    for (const std::filesystem::path& path : run.paths) paths.push_back(path.string());
    note(RunEvent::armed,
         {{"run", run.number}, {"paths", std::move(paths)}, {"arm_s", arm_s}, {"comment", run.comment}});
    finish_commands(fmt::format("run {}, started in {:.0f} ms", run.number, arm_s * 1e3), {});
    core::print_stderr("running: run {}, started in {:.0f} ms\n", run.number, arm_s * 1e3);
    try {
        control(*session);
        service_manager_.be_patient(true);
        end_run(*session, run);
        service_manager_.be_patient(false);
    } catch (const std::exception& error) {  // the run is lost, not the service
        core::print_stderr("run {} failed: {}\n", run.number, error.what());
        session->abort();
        session.reset();
        service_manager_.be_patient(false);
        start_next_ = false;
        frontend_.set_run_ended("it failed");
        commands_.set_error(error.what());
        if (commands_.state() == State::running) note(RunEvent::ending, {{"run", run.number}, {"reason", "it failed"}});
        if (commands_.state() == State::stopping)
            note(RunEvent::closed, {{"run", run.number}, {"error", error.what()}});
        finish_commands({}, error.what());
    }
}

void Service::control(run::ControlledRun& session) {
    while (session.turn()) {
        if (const auto command = commands_.take()) obey(session, *command);
        // It may have gone past a command that was taken just now.
        if (!aborting_ && commands_.wants_abort()) obey(session, Command::abort);
        if (run::stop_signal() != 0) service_manager_.stopping(session.stop_reason());
        if (session.is_stopping() && commands_.state() == State::running)
            note(RunEvent::ending, {{"run", number_}, {"reason", session.stop_reason()}});
        const std::string said = service_manager_.look(
            seconds(), [&] { return session.lcores(); },
            [&] { return fmt::format("run {}: {}", number_, session.line()); });
        if (!said.empty()) session.warn(said);
        say_leftovers();
        std::this_thread::sleep_for(turn_pause);
    }
    if (commands_.state() == State::running)
        note(RunEvent::ending, {{"run", number_}, {"reason", session.stop_reason()}});
}

void Service::obey(run::ControlledRun& session, Command command) {
    switch (command) {
        case Command::start:  // the commands takes none while there is a run
            commands_.done(command, {}, "there is a run");
            break;
        case Command::new_run:
            start_next_ = true;
            [[fallthrough]];
        case Command::stop:
            under_way_ = command;
            session.stop(command == Command::stop ? "stopped by command" : "the next run begins");
            return;
        case Command::abort:
            aborting_ = true;
            start_next_ = false;
            session.abort();
            return;
        case Command::snapshot:
            try {
                commands_.done(command, save_snapshot(session));
            } catch (const std::exception& error) {
                commands_.done(command, {}, error.what());
            }
            break;
        case Command::flight_record:
            commands_.done(command, session.save_recording());
            break;
    }
    frontend_.refresh();
}

std::string Service::save_snapshot(run::ControlledRun& session) {
    if (config_.reports.empty()) throw core::RunError("no folder for reports is configured ([serve] reports)");
    const std::string what = fmt::format("{}-snapshot{}", number_, ++snapshots_);
    nlohmann::json account = session.account();
    account.erase("balanced");  // what is on its way between two lcores is not counted yet
    return save_report(account, what);
}

/// Never over another one: without {run} in a path runs are counted from 1 by each process.
std::string Service::save_report(const nlohmann::json& report, const std::string& what) {
    const config::RunConfig& config = prepared_.options().config;
    const std::filesystem::path folder = store::expand_path_template(
        config_.reports, {config.name, static_cast<std::uint32_t>(number_), "", config.node});
    std::error_code error;  // what is wrong with the folder is said of the file
    std::filesystem::create_directories(folder, error);
    const std::string base =
        fmt::format("{}/{}{}{}-{}", folder.string(), config.name, config.node.empty() ? "" : "-", config.node, what);
    std::string path = base + ".json";
    for (int i = 2; std::filesystem::exists(path); ++i) path = fmt::format("{}.{}.json", base, i);
    observe::ReportFile(path).write(report);
    return path;
}

namespace {

/// "lossless no: 3 packets never came; 2 events are incomplete", from the report of a run.
std::string answer_text(const nlohmann::json& report) {
    std::string text = fmt::format("lossless {}", report.value("lossless", "unknown"));
    std::string_view between = ": ";
    for (const nlohmann::json& line : report.value("evidence", nlohmann::json::array())) {
        text += fmt::format("{}{}", between, line.get<std::string>());
        between = "; ";
    }
    return text;
}

}  // namespace

void Service::end_run(run::ControlledRun& session, RunList::Run& run) {
    run::ControlledRun::Result result = session.finish();
    run.ended_ns = pipeline::wall_ns();
    run.paths = session.paths();
    std::erase(run.paths, std::filesystem::path());  // of sinks that write no files
    history_.add(run, result);
    frontend_.set_runs(history_.json());
    std::string trouble = result.failure;
    if (!config_.reports.empty()) try {
            static_cast<void>(save_report(result.report, fmt::format("{}", run.number)));
        } catch (const std::exception& error) {
            core::print_stderr("warning: {}\n", error.what());
            if (trouble.empty()) trouble = error.what();
        }
    commands_.set_error(trouble);
    frontend_.set_run_ended(session.stop_reason());
    note(RunEvent::closed, history_.log_line(trouble));
    // Of new_run only half is done.
    if (!start_next_)
        finish_commands(fmt::format("run {} ended: {}", run.number, answer_text(result.report)), result.failure);
}

}  // namespace weir::serve

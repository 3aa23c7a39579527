#include "run/manager_session.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/print_stderr.hpp"
#include "observe/run_report.hpp"
#include "pipeline/wall_clock.hpp"
#include "run/run_signals.hpp"
#include "run/service_manager.hpp"

namespace weir::run {

ManagerSession::~ManagerSession() {
    if (cluster_thread_ == nullptr) return;
    cluster_thread_->stopping(true);
    cluster_thread_->join();
}

void ManagerSession::open(const std::function<bool()>& /*is_given_up*/) {
    cluster_thread_ = make_cluster_thread(*options_.cluster, options_.run_number);
}

void ManagerSession::make(pipeline::RunPorts* /*ports*/, const std::vector<observe::RunObserver*>& observers) {
    for (observe::RunObserver* observer : observers) observers_.add(observer);
    if (!options_.quiet) core::say_text(cluster_start_text(*options_.cluster, *cluster_thread_));
}

void ManagerSession::start() {
    start_ = std::chrono::steady_clock::now();
    cluster_thread_->start();
    observe::RunFacts facts{options_.run_number, {}, pipeline::wall_ns()};
    facts.cluster = [this] { return shown_cluster_json(*options_.cluster, cluster_thread_->account()); };
    observers_.begin_managing(facts);
}

double ManagerSession::seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool ManagerSession::turn() {
    if (cluster_thread_->is_done()) return false;
    if (!stopping_ && stop_signal() != 0) stop(fmt::format("signal {}", stop_signal()));
    if (cluster_thread_->is_alone() && !std::exchange(was_alone_, true)) {
        core::print_stderr("weir: {}\n", alone_text(*options_.cluster));
        stop(alone_text(*options_.cluster));
    }
    for (const std::string& text : cluster_thread_->take_said()) warn("cluster: " + text);
    observers_.look_at_cluster(seconds());
    return true;
}

void ManagerSession::stop(const std::string& reason) {
    if (std::exchange(stopping_, true)) return;
    stop_reason_ = reason;
    cluster_thread_->stopping(false);
}

void ManagerSession::abort() {
    stop("aborted");
    cluster_thread_->stopping(true);
}

ControlledRun::Result ManagerSession::finish() {
    cluster_thread_->join();
    for (const std::string& text : cluster_thread_->take_said()) warn("cluster: " + text);
    if (!options_.quiet) core::say_text(cluster_text(*options_.cluster, cluster_thread_->account()));
    observers_.finish_managing(seconds());
    Result result;
    result.report = account();
    result.report["stopped_by"] = stop_reason_;
    if (!options_.comment.empty()) result.report["comment"] = options_.comment;
    if (!warnings_.empty()) result.report["warnings"] = warnings_;
    if (!was_alone_) return result;
    result.status = 1;
    result.failure = alone_text(*options_.cluster);
    result.report["error"] = result.failure;
    return result;
}

std::string ManagerSession::save_recording() {
    return "a node that only manages gets no packets, so nothing is saved";
}

nlohmann::json ManagerSession::account() {
    return {{"seconds", seconds()}, {"cluster", cluster_json(*options_.cluster, cluster_thread_->account())}};
}

void ManagerSession::warn(const std::string& text) {
    core::print_stderr("{}\n", text);
    warnings_.push_back(text);
}

std::string ManagerSession::line() {
    const fabric::Account account = cluster_thread_->account();
    return account.manages ? fmt::format("{} blocks given out", account.manager.assigned) : "another node manages";
}

int execute_manager(const RunOptions& options) {
    observe::ReportFile file(options.report);
    catch_signals();
    ManagerSession session(options);
    session.open([] { return false; });
    session.make(nullptr, {options.observer});
    session.start();
    ServiceManager service_manager;
    service_manager.ready(0);
    while (session.turn()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const ControlledRun::Result result = session.finish();
    file.write(result.report);
    return result.status;
}

}  // namespace weir::run

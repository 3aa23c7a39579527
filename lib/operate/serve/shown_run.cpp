#include "serve/shown_run.hpp"

#include "serve/life.hpp"

namespace weir::serve {

ShownRun::ShownRun(run::RunOptions& options) : mode_(options.capture.has_value() ? "replay" : "run") {
    if (!options.config.serve || options.print_config) return;
    frontend_.emplace(
        options, *options.config.serve, [this](nlohmann::json& document) { describe(document); }, nullptr);
    options.observer = &*frontend_;
}

void ShownRun::describe(nlohmann::json& document) const {
    const bool running = frontend_.has_value() && frontend_->has_run();
    const bool ended = frontend_.has_value() && !running && frontend_->run_number() > 0;
    const State state = running ? State::running : ended ? State::stopping : State::arming;
    document["status"] = {{"state", name_of(state)}, {"mode", mode_}, {"since_s", nullptr}, {"error", ""}};
    document["command"] = {{"allowed", nlohmann::json::array()}};
    document["config"] = nlohmann::json::object();
}

}  // namespace weir::serve

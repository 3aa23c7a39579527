#include "serve/run_history.hpp"

#include "serve/time_text.hpp"

namespace weir::serve {

void RunHistory::add(const Run& run, const run::Session::Result& result) {
    const nlohmann::json& report = result.report;
    nlohmann::json paths = nlohmann::json::array();
    for (const std::filesystem::path& path : run.paths) paths.push_back(path.string());
    std::uint64_t incomplete = 0;
    for (const auto& [cause, events] : report["events"]["incomplete"].items())
        incomplete += events.get<std::uint64_t>();
    const auto complete = report["events"]["complete"].get<std::uint64_t>();
    runs_.push_front({{"number", run.number},
                      {"paths", std::move(paths)},
                      {"started", time_text(run.started_ns)},
                      {"ended", time_text(run.ended_ns)},
                      {"seconds", report["seconds"]},
                      {"stop_reason", report["stopped_by"]},
                      {"comment", run.comment},
                      {"events", complete + incomplete},
                      {"complete", complete},
                      {"incomplete", incomplete},
                      {"written", report["events"]["written"]},
                      {"packets", report["packets"]["received"]},
                      {"lost_packets", result.lost_packets},
                      {"missing_packets", result.missing_packets},
                      {"lossless", report["lossless"]},
                      {"balanced", report["balanced"]},
                      {"error", result.failure}});
    if (runs_.size() > runs_max) runs_.pop_back();
}

nlohmann::json RunHistory::log_line(const std::string& trouble) const {
    nlohmann::json line = latest();
    line["run"] = line["number"];
    line.erase("number");
    if (!trouble.empty()) line["error"] = trouble;
    return line;
}

nlohmann::json RunHistory::json() const {
    return nlohmann::json(runs_);
}

}  // namespace weir::serve

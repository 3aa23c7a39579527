#include "serve/run_list.hpp"

#include "serve/time_text.hpp"

namespace weir::serve {

namespace {

void add_account(nlohmann::json& line, const run::ControlledRun::Result& result) {
    const nlohmann::json& report = result.report;
    const nlohmann::json& events = report["events"];
    std::uint64_t incomplete = 0;
    for (const auto& [cause, count] : events["incomplete"].items()) incomplete += count.get<std::uint64_t>();
    const auto complete = events["complete"].get<std::uint64_t>();
    line.update({{"events", complete + incomplete},
                 {"complete", complete},
                 {"incomplete", incomplete},
                 {"written", events["written"]},
                 {"packets", report["packets"]["received"]},
                 {"lost_packets", result.lost_packets},
                 {"missing_packets", result.missing_packets},
                 {"lossless", report["lossless"]},
                 {"balanced", report["balanced"]}});
}

}  // namespace

void RunList::add(const Run& run, const run::ControlledRun::Result& result) {
    const nlohmann::json& report = result.report;
    nlohmann::json paths = nlohmann::json::array();
    for (const std::filesystem::path& path : run.paths) paths.push_back(path.string());
    runs_.push_front({{"number", run.number},
                      {"paths", std::move(paths)},
                      {"started", time_text(run.started_ns)},
                      {"ended", time_text(run.ended_ns)},
                      {"seconds", report["seconds"]},
                      {"stop_reason", report["stopped_by"]},
                      {"comment", run.comment},
                      {"error", result.failure}});
    if (report.contains("events")) add_account(runs_.front(), result);  // a node that only manages has none
    if (runs_.size() > runs_max) runs_.pop_back();
}

nlohmann::json RunList::log_line(const std::string& trouble) const {
    nlohmann::json line = latest();
    line["run"] = line["number"];
    line.erase("number");
    if (!trouble.empty()) line["error"] = trouble;
    return line;
}

nlohmann::json RunList::json() const {
    return nlohmann::json(runs_);
}

}  // namespace weir::serve

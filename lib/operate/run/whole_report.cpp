#include "run/whole_report.hpp"

#include <nlohmann/json.hpp>

#include "observe/ledger_json.hpp"
#include "observe/port_report.hpp"
#include "observe/run_report.hpp"

namespace weir::run {

nlohmann::json whole_report(const RunParts& run, const observe::Ledger& ledger, double seconds,
                            const std::string& stopped_by) {
    nlohmann::json report = ledger_json(ledger);
    report["seconds"] = seconds;
    report["machine"] = observe::machine_json(run.options.version, run.plan);
    if (run.pipeline.clock() != nullptr) {
        report["machine"]["clock"] = observe::clock_json(run.pipeline);
        report["ports"] = observe::ports_json(run.pipeline);
        report["latency_ns"] = {{"events", ledger.latency.count()},
                                {"p50", ledger.latency.quantile_ns(0.5)},
                                {"p99", ledger.latency.quantile_ns(0.99)},
                                {"p99.9", ledger.latency.quantile_ns(0.999)},
                                {"longest", ledger.latency.longest_ns()}};
    }
    report["config"] = config_json(run.options.config);
    report["plan"] = observe::plan_json(run.plan);
    if (run.pipeline.pedestals() != nullptr) report["pedestal"] = run.pipeline.pedestals()->json();
    if (run.reduce.needs_version_2()) report["payload"] = run.reduce.payload_json();
    report["stopped_by"] = stopped_by;
    report["flows"] = run.pipeline.flows().json();
    if (run.exchanges != nullptr)
        if (nlohmann::json exchanges = run.exchanges->report(); !exchanges.empty())
            report["exchanges"] = std::move(exchanges);
    if (const stages::CaptureFeeder* capture = run.pipeline.capture(); capture != nullptr)
        report["capture"].update({{"files", run.options.capture->files},
                                  {"records", ledger.received + ledger.capture->skipped + ledger.capture->other_link},
                                  {"bytes", ledger.received_bytes},
                                  {"passes", capture->passes()},
                                  {"numbers_per_pass", run.pipeline.numbers_per_pass()}});
    if (run.recorder != nullptr) report["recorder"] = run.recorder->json();
    const std::vector<std::filesystem::path> paths = run.sinks.paths();
    for (const std::filesystem::path& path : paths)
        if (!path.empty() && !report.contains("path")) report["path"] = path.string();
    const std::vector<nlohmann::json> how = run.sinks.how();
    for (std::size_t i = 0; i < paths.size(); ++i) {
        if (!paths[i].empty()) report["sinks"][i]["path"] = paths[i].string();
        report["sinks"][i].update(how[i]);
    }
    if (ledger.disk.free_bytes) {
        report["disk"] = {{"free_bytes", *ledger.disk.free_bytes}};
        if (ledger.disk.bytes_per_second) report["disk"]["bytes_per_second"] = *ledger.disk.bytes_per_second;
    }
    return report;
}

}  // namespace weir::run

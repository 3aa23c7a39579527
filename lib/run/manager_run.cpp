#include "run/manager_run.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "core/say.hpp"
#include "observe/run_report.hpp"
#include "run/onlooker.hpp"
#include "run/run_signals.hpp"
#include "run/service_manager.hpp"

namespace weir::run {

int execute_manager(const RunOptions& options) {
    const ClusterPart& part = *options.cluster;
    observe::ReportFile file(options.report);
    catch_signals();
    const std::unique_ptr<fabric::Member> member = make_member(part);
    const auto show = [&] {
        if (options.onlooker == nullptr) return;
        options.onlooker->look_at_cluster([&] { return shown_cluster_json(part, member->account()); });
    };
    show();
    if (!options.quiet) core::say_text(cluster_start_text(part, *member));
    member->start();
    ServiceManager service_manager;
    service_manager.ready(0);
    bool was_alone = false;
    while (!member->is_done()) {
        if (stop_signal() != 0) member->stopping(false);
        if (member->is_alone() && !std::exchange(was_alone, true)) {
            core::say("weir: {}\n", alone_text(part));
            member->stopping(false);
        }
        for (const std::string& text : member->take_said()) core::say("cluster: {}\n", text);
        show();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    member->join();
    if (!options.quiet) core::say_text(cluster_text(part, member->account()));
    file.write({{"cluster", cluster_json(part, member->account())}});
    return was_alone ? 1 : 0;
}

}  // namespace weir::run

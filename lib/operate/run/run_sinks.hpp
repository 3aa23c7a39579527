// The sinks of a run: opened before anything runs, watched while it goes on, closed at its end. Control thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "store/disk_watch.hpp"
#include "store/event_sink.hpp"

namespace weir::observe {
struct Ledger;
struct Verdict;
}  // namespace weir::observe

namespace weir::stages {
class SinkThread;
}  // namespace weir::stages

namespace weir::run {

class RunSinks {
public:
    using Threads = std::vector<std::unique_ptr<stages::SinkThread>>;

    /// Before open(): the run has this number already, and its paths get it. Nothing: they take one.
    void set_run_number(std::optional<std::uint32_t> number) noexcept { run_number_ = number; }
    /// Opens all sinks of the configuration. `out`: --out, the path of the first that has one; empty: as configured.
    /// `start`: "config", "machine", and "payload" where reducers make something else of it. Throws core::RunError or
    /// core::UsageError; then nothing stays behind. `cluster`: config::SinkContext::cluster_sink.
    void open(const config::RunConfig& config, const std::string& out, const nlohmann::json& start, bool reduced,
              const std::function<std::unique_ptr<store::EventSink>()>* cluster);
    /// None waits for somebody before the run may begin.
    [[nodiscard]] bool are_ready() const;
    /// The run did not start: takes everything away again that would stand in the way of the next try.
    void discard() noexcept;

    /// The sinks that store events, in the order of the configuration.
    [[nodiscard]] std::vector<store::EventSink*> events() const;
    /// Where each of these is now; empty for one that writes no files.
    [[nodiscard]] std::vector<std::filesystem::path> paths() const;
    /// What each that writes is called once the run is over.
    [[nodiscard]] const std::vector<std::filesystem::path>& final_paths() const noexcept { return final_paths_; }
    /// Nothing: it was given none, and no path has {run}.
    [[nodiscard]] std::optional<std::uint32_t> run_number() const noexcept { return run_number_; }
    /// How each of these writes: "direct", "uring", "note" and so on, as it has it.
    [[nodiscard]] std::vector<nlohmann::json> how() const;
    /// Of the sink of kind "pcapng"; nothing if there is none.
    [[nodiscard]] const std::optional<std::filesystem::path>& recorder_path() const noexcept { return recorder_path_; }
    /// One line for each sink, at the start.
    [[nodiscard]] std::string start_text() const;
    /// "written to PATH", or to whom it was sent and how much of it, a line for each.
    [[nodiscard]] std::string end_text() const;

    /// What there is to warn of since the last call: disks that will be full, sinks that failed and are done without.
    [[nodiscard]] std::vector<std::string> watch(const Threads& threads);
    /// The run is being stopped: sinks that wait for others must not do so for ever, or, `at_once`, not at all.
    void stopping(bool at_once) noexcept;
    /// A sink failed that the run cannot do without.
    [[nodiscard]] bool must_stop(const Threads& threads) const;

    /// Ends them; `manifest` and the account as each of them has it go with what it stored. Empty, or why the run
    /// failed and what is left of it; `warnings` get what failed and was done without.
    [[nodiscard]] std::string close(const Threads& threads, const observe::Ledger& ledger,
                                    const observe::Verdict& verdict, const nlohmann::json& manifest,
                                    std::vector<std::string>& warnings);

private:
    struct Open {
        config::SinkConfig config;
        std::unique_ptr<store::EventSink> sink;
        store::DiskAlarm alarm{0};
        bool said_failed = false;
    };
    std::vector<Open> sinks_;
    std::vector<std::filesystem::path> final_paths_;
    std::optional<std::uint32_t> run_number_;
    std::optional<std::filesystem::path> recorder_path_;
};

}  // namespace weir::run

#include "run/run_sinks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "config/sinks/entry.hpp"
#include "config/sinks/pcapng.hpp"
#include "core/error.hpp"
#include "observe/counted.hpp"
#include "observe/ledger.hpp"
#include "observe/ledger_json.hpp"
#include "observe/sink_account.hpp"
#include "observe/verdict.hpp"
#include "pipeline/pipeline.hpp"
#include "pipeline/wall_clock.hpp"
#include "stages/sink_thread.hpp"

namespace weir::run {

namespace {

/// All in the same place at different times: the name of the hidden directory of one may be the other's.
void refuse_collision(const config::SinkConfig& sink, const std::filesystem::path& path,
                      const std::vector<std::filesystem::path>& taken) {
    for (const std::filesystem::path& other : taken)
        if (path.lexically_normal() == other.lexically_normal())
            throw core::UsageError(
                fmt::format("{}:{}: sink.path: found {}, which another sink of this run writes to; accepted: "
                            "a path of its own for each sink",
                            sink.place.file, sink.place.line, path.string()));
}

/// The account with what became of events in this sink: what is written in it has to agree with what is there.
observe::Ledger as_seen_by(const observe::Ledger& ledger, std::size_t sink) {
    observe::Ledger own = ledger;
    own.events[static_cast<std::size_t>(assemble::EventCounter::written)] = ledger.sinks[sink].written;
    own.events[static_cast<std::size_t>(assemble::EventCounter::dropped_write_error)] = ledger.sinks[sink].lost;
    std::uint64_t dropped = 0;
    for (const auto& [cause, events] : ledger.sinks[sink].dropped) dropped += events;
    own.events[static_cast<std::size_t>(assemble::EventCounter::dropped_not_taken)] = dropped;
    return own;
}

}  // namespace

void RunSinks::open(const config::RunConfig& config, const std::string& out, const nlohmann::json& start, bool reduced,
                    const std::function<std::unique_ptr<store::EventSink>()>* cluster) {
    const std::string start_json = start.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::vector<std::filesystem::path>& taken = final_paths_;
    std::optional<std::uint32_t>& run = run_number_;
    const bool is_given =
        run.has_value();  // a node that comes back into its cluster's run writes beside its first part
    std::vector<store::RunPath> paths(config.sinks.size());
    try {
        // All paths first: the number of the run is in one of them, and sinks without a path want it too.
        for (std::size_t i = 0; i < config.sinks.size(); ++i) {
            const config::SinkConfig& sink = config.sinks[i];
            if (!sink.has_path()) continue;
            if (!sink.require_mount.empty()) store::require_mount_point(sink.require_mount);
            paths[i] = out.empty() || !taken.empty()
                           ? store::make_run_path(sink.path, config.name, pipeline::wall_ns(), run, config.node)
                           : store::RunPath{out, {}};
            if (!run) run = paths[i].run;
            if (is_given && !config.node.empty()) paths[i].path = store::free_path(paths[i].path);
            refuse_collision(sink, paths[i].path, taken);
            taken.push_back(paths[i].path);
            if (sink.as<config::RecorderConfig>() != nullptr) recorder_path_ = paths[i].path;
        }
        for (std::size_t i = 0; i < config.sinks.size(); ++i) {
            const config::SinkConfig& sink = config.sinks[i];
            const auto opens = entry_of(sink).open;
            if (opens == nullptr) continue;
            if (!sink.has_path()) paths[i].run = run;
            sinks_.push_back({sink, opens({config, sink, paths[i], start_json, reduced, cluster}),
                              store::DiskAlarm(sink.full_warning_seconds)});
        }
    } catch (const std::exception&) {
        discard();
        throw;
    }
}

bool RunSinks::are_ready() const {
    return std::ranges::all_of(sinks_, [](const Open& open) { return open.sink->is_ready(); });
}

void RunSinks::discard() noexcept {
    for (Open& open : sinks_) {
        const std::filesystem::path hidden = open.sink->path();
        open.sink.reset();
        std::error_code error;
        if (!hidden.empty()) std::filesystem::remove_all(hidden, error);
    }
    sinks_.clear();
}

std::vector<store::EventSink*> RunSinks::events() const {
    std::vector<store::EventSink*> found;
    for (const Open& open : sinks_) found.push_back(open.sink.get());
    return found;
}

std::vector<std::filesystem::path> RunSinks::paths() const {
    std::vector<std::filesystem::path> found;
    for (const Open& open : sinks_) found.push_back(open.sink->path());
    return found;
}

std::vector<nlohmann::json> RunSinks::how() const {
    std::vector<nlohmann::json> found;
    for (const Open& open : sinks_) found.push_back(open.sink->how());
    return found;
}

std::string RunSinks::start_text() const {
    std::string text;
    for (const Open& open : sinks_) {
        const std::string disk = store::disk_text({open.sink->free_bytes(), {}, {}});
        const std::string how = open.sink->how_text();
        text += fmt::format("sink: {}{}{}{}{}\n", open.sink->place(), disk.empty() ? "" : ", ", disk,
                            how.empty() ? "" : "; ", how);
        if (const auto note = entry_of(open.config).start_note) text += note(open.config, *open.sink);
    }
    return text;
}

std::string RunSinks::end_text() const {
    std::string text;
    for (const Open& open : sinks_) {
        const store::EventSink& sink = *open.sink;
        if (!sink.path().empty()) {
            text += fmt::format("written to {}\n", sink.path().string());
            continue;
        }
        text += fmt::format("sent to {}: {}", sink.place(), observe::counted(sink.stats().events, "event"));
        const auto causes = sink.causes_of_drops();
        for (std::size_t i = 0; i < causes.size(); ++i)
            if (sink.stats().dropped[i] > 0)
                text += fmt::format(", {} dropped ({})", sink.stats().dropped[i], causes[i]);
        text += '\n';
    }
    return text;
}

void RunSinks::stopping(bool at_once) noexcept {
    for (Open& open : sinks_) open.sink->stopping(at_once);
}

std::vector<std::string> RunSinks::watch(const Threads& threads) {
    std::vector<std::string> warnings;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        Open& open = sinks_[i];
        const std::string whose = sinks_.size() > 1 ? fmt::format(" of sink {}", open.sink->place()) : "";
        const store::DiskOutlook outlook = threads[i]->disk();
        if (!threads[i]->failed() && open.alarm.update(outlook))
            warnings.push_back(fmt::format(
                "the disk{} will be full soon ({} at {:.1f} MB/s): make room, or end the run", whose,
                store::disk_text(outlook), static_cast<double>(outlook.bytes_per_second.value_or(0)) * 1e-6));
        if (!threads[i]->failed() || open.said_failed || must_stop(threads)) continue;
        open.said_failed = true;
        warnings.push_back(fmt::format("the sink {} failed, and the run goes on without it: {}", open.sink->place(),
                                       threads[i]->error()));
    }
    return warnings;
}

bool RunSinks::must_stop(const Threads& threads) const {
    bool any_works = threads.empty();
    for (std::size_t i = 0; i < threads.size(); ++i) {
        if (!threads[i]->failed())
            any_works = true;
        else if (sinks_[i].config.on_error == config::SinkError::stop)
            return true;
    }
    return !any_works;
}

std::string RunSinks::close(const Threads& threads, const observe::Ledger& ledger, const observe::Verdict& verdict,
                            const nlohmann::json& manifest, std::vector<std::string>& warnings) {
    std::string failures;
    const bool stopped = must_stop(threads);
    for (std::size_t i = 0; i < sinks_.size(); ++i) {
        store::EventSink& sink = *sinks_[i].sink;
        std::string failure;
        if (threads[i]->failed()) failure = threads[i]->error();
        const std::filesystem::path hidden = sink.path();
        try {
            nlohmann::json own = manifest;
            own["ledger"] = ledger_json(as_seen_by(ledger, i));
            put_verdict(own["ledger"], verdict);
            sink.close(own);
        } catch (const core::RunError& error) {
            if (failure.empty()) failure = error.what();
        }
        if (failure.empty()) continue;
        const observe::Ledger::Sink& account = ledger.sinks[i];
        failure += fmt::format(". {} {}, {} lost", observe::counted(account.written, "event"),
                               hidden.empty() ? "sent" : "on the disk", account.lost);
        const auto leftover = entry_of(sinks_[i].config).leftover;
        std::error_code error;
        if (sink.path() == hidden && std::filesystem::exists(hidden, error))
            failure += fmt::format("; the run could not be closed: {}",
                                   leftover != nullptr ? leftover(hidden) : hidden.string() + " is what is there");
        if (stopped || sinks_[i].config.on_error == config::SinkError::stop)
            failures += (failures.empty() ? "" : "; and ") + failure;
        else
            warnings.push_back(fmt::format("the run was done without the sink {}: {}",
                                           hidden.empty() ? sink.place() : hidden.string(), failure));
    }
    return failures;
}

}  // namespace weir::run

#include "run/run_sinks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "observe/ledger.hpp"
#include "observe/sink_account.hpp"
#include "observe/verdict.hpp"
#include "pipeline/pipeline.hpp"
#include "stages/sink_thread.hpp"
#include "store/hdf5/writer.hpp"
#include "store/run_writer.hpp"

namespace weir::pipeline {

namespace {

std::unique_ptr<store::EventSink> open_events(const SinkContext& context) {
    const EventsSinkConfig& events = context.sink.events();
    store::RunWriter::Config config;
    config.path = context.path.path;
    config.run = context.path.run;
    config.name = context.config.name;
    config.segment_bytes = events.segment_bytes;
    config.segment_interval_ns = events.segment_seconds * core::ns_per_s;
    config.sync_bytes = events.sync_bytes;
    config.sync_interval_ns = events.sync_ms * core::ns_per_ms;
    config.start_json = context.start_json;
    if (context.reduced) config.version = store::format_version_reduced;
    config.sync = events.sync;
    config.direct = events.direct;
    config.uring = events.uring;
    config.queue_depth = events.queue_depth;
    config.files = events.files;
    config.preallocate_bytes = events.preallocate;
    // The padding of one sink's buffers is in what the others get. (One alone finds out itself whether it has any.)
    if (event_sinks(context.config).size() > 1 && std::ranges::any_of(context.config.sinks, [](const SinkConfig& sink) {
            return sink.kind == SinkKind::events && sink.events().direct != Toggle::off;
        }))
        config.version = store::format_version_reduced;
    return std::make_unique<store::RunWriter>(config);
}

std::unique_ptr<store::EventSink> open_hdf5(const SinkContext& context) {
    const Hdf5SinkConfig& hdf5 = context.sink.hdf5();
    store::hdf5::Writer::Config config;
    config.path = context.path.path;
    config.name = context.config.name;
    config.start_json = context.start_json;
    config.segment_bytes = hdf5.segment_bytes;
    config.events_per_file = hdf5.events_per_file;
    config.sync_bytes = hdf5.sync_bytes;
    config.sync_interval_ns = hdf5.sync_ms * core::ns_per_ms;
    config.codec = hdf5.codec;
    config.nexus = hdf5.nexus;
    return std::make_unique<store::hdf5::Writer>(config);
}

/// Keys that would make the files an NXmx; nothing if that is not what somebody has begun to write down.
std::string nxmx_text(const SinkConfig& sink, const store::EventSink& open) {
    const auto* writer = dynamic_cast<const store::hdf5::Writer*>(&open);
    if (writer == nullptr || sink.hdf5().nexus == store::hdf5::Nexus{}) return {};
    const std::vector<std::string> missing = writer->missing_for_nxmx();
    if (missing.empty()) return {};
    return fmt::format("sink: {}: no NXmx without {} in nexus\n", open.path().string(), fmt::join(missing, ", "));
}

/// Who makes the sinks that store events.
struct Opener {
    SinkKind kind;
    std::unique_ptr<store::EventSink> (*open)(const SinkContext& context);
};
constexpr auto openers = std::to_array<Opener>({{SinkKind::events, open_events}, {SinkKind::hdf5, open_hdf5}});

/// All in the same place at different times: the name of the hidden directory of one may be the other's.
void refuse_collision(const SinkConfig& sink, const std::filesystem::path& path,
                      const std::vector<std::filesystem::path>& taken) {
    for (const std::filesystem::path& other : taken)
        if (path.lexically_normal() == other.lexically_normal())
            throw core::UsageError(fmt::format(
                "{}:{}: sink.path: found {}, which another sink of this run writes to; accepted: a path of its own "
                "for each sink",
                sink.place.file, sink.place.line, path.string()));
}

/// The account with what became of events in this sink: what is written in it has to agree with what is there.
Ledger as_seen_by(const Ledger& ledger, std::size_t sink) {
    Ledger own = ledger;
    own.events[static_cast<std::size_t>(core::EventCounter::written)] = ledger.sinks[sink].written;
    own.events[static_cast<std::size_t>(core::EventCounter::dropped_write_error)] = ledger.sinks[sink].lost;
    return own;
}

}  // namespace

void RunSinks::open(const RunConfig& config, const std::string& out, const nlohmann::json& start, bool reduced) {
    const std::string start_json = start.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    std::vector<std::filesystem::path> taken;
    std::optional<std::uint32_t> run;
    try {
        for (const SinkConfig& sink : config.sinks) {
            if (!sink.writes()) continue;
            if (!sink.require_mount.empty()) store::require_mount_point(sink.require_mount);
            SinkContext context{config, sink, {out, {}}, start_json, reduced};
            if (out.empty() || !taken.empty())
                context.path = store::make_run_path(sink.path, config.name, wall_ns(), run);
            if (!run) run = context.path.run;
            refuse_collision(sink, context.path.path, taken);
            taken.push_back(context.path.path);
            if (sink.kind == SinkKind::pcapng) recorder_path_ = context.path.path;
            const auto opener = std::ranges::find(openers, sink.kind, &Opener::kind);
            if (opener == openers.end()) continue;
            sinks_.push_back({sink, opener->open(context), store::DiskAlarm(sink.full_warning_seconds)});
        }
    } catch (const std::exception&) {
        discard();
        throw;
    }
}

void RunSinks::discard() noexcept {
    for (Open& open : sinks_) {
        const std::filesystem::path hidden = open.sink->path();
        open.sink.reset();
        std::error_code error;
        std::filesystem::remove_all(hidden, error);
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
    for (const Open& open : sinks_)
        text += fmt::format("sink: {}, {}{}{}\n", open.sink->path().string(),
                            store::disk_text({open.sink->free_bytes(), {}, {}}),
                            open.sink->how_text().empty() ? "" : "; ", open.sink->how_text()) +
                nxmx_text(open.config, *open.sink);
    return text;
}

std::string RunSinks::end_text() const {
    std::string text;
    for (const Open& open : sinks_) text += fmt::format("written to {}\n", open.sink->path().string());
    return text;
}

std::vector<std::string> RunSinks::watch(const Threads& threads) {
    std::vector<std::string> warnings;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        Open& open = sinks_[i];
        const std::string whose = sinks_.size() > 1 ? fmt::format(" of sink {}", open.sink->path().string()) : "";
        const store::DiskOutlook outlook = threads[i]->disk();
        if (!threads[i]->failed() && open.alarm.update(outlook))
            warnings.push_back(fmt::format(
                "the disk{} will be full soon ({} at {:.1f} MB/s): make room, or end the run", whose,
                store::disk_text(outlook), static_cast<double>(outlook.bytes_per_second.value_or(0)) * 1e-6));
        if (!threads[i]->failed() || open.said_failed || must_stop(threads)) continue;
        open.said_failed = true;
        warnings.push_back(fmt::format("the sink {} failed, and the run goes on without it: {}",
                                       open.sink->path().string(), threads[i]->error()));
    }
    return warnings;
}

bool RunSinks::must_stop(const Threads& threads) const {
    bool any_works = threads.empty();
    for (std::size_t i = 0; i < threads.size(); ++i) {
        if (!threads[i]->failed())
            any_works = true;
        else if (sinks_[i].config.on_error == SinkError::stop)
            return true;
    }
    return !any_works;
}

std::string RunSinks::close(const Threads& threads, const Ledger& ledger, const Verdict& verdict,
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
        const Ledger::Sink& account = ledger.sinks[i];
        failure += fmt::format(". {} events are on the disk, {} are lost", account.written, account.lost);
        std::error_code error;
        if (sink.path() == hidden && std::filesystem::exists(hidden, error))
            failure += fmt::format("; the run could not be closed: {}",
                                   sinks_[i].config.kind == SinkKind::hdf5
                                       ? fmt::format("{} shows what is there", (hidden / "master.h5").string())
                                       : fmt::format("`weir inspect {}` reads what is there", hidden.string()));
        if (stopped || sinks_[i].config.on_error == SinkError::stop)
            failures += (failures.empty() ? "" : "; and ") + failure;
        else
            warnings.push_back(fmt::format("the run was done without the sink {}: {}", hidden.string(), failure));
    }
    return failures;
}

}  // namespace weir::pipeline

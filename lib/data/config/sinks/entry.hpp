// What is known of a kind of sink. Each kind makes its entry in a file of its own beside this.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "config/parts.hpp"
#include "options/kind.hpp"
#include "store/event_sink.hpp"
#include "store/run_path.hpp"
#include "store/run_recovery.hpp"

namespace weir::config {

/// What a sink is opened with.
struct SinkContext {
    const RunConfig& config;
    const SinkConfig& sink;
    store::RunPath path;     ///< placeholders replaced, or --out
    std::string start_json;  ///< "config", "machine", "payload": what is known at the start
    bool reduced = false;    ///< the event file has to be version 2, because reducers need it
    /// Makes what takes the parts of a readout node; null: this run is of no cluster.
    const std::function<std::unique_ptr<store::EventSink>()>* cluster_sink = nullptr;
};

/// What is null does not apply to the kind.
struct SinkEntry {
    options::Kind kind;
    std::string_view meaning;  ///< what a run is written to, for the reference
    bool writes = true;        ///< if not, it has not even the keys that the others share
    bool has_path = true;      ///< if not, nor those that are about files
    /// Why nobody writes it: the run has it by itself. Empty: it is one of those that may be written.
    std::string_view by_itself = {};
    /// For a kind that stores events: makes what does. Throws core::RunError or core::UsageError.
    std::unique_ptr<store::EventSink> (*open)(const SinkContext& context) = nullptr;
    /// What there is to say of it at the start, lines or nothing.
    std::string (*start_note)(const SinkConfig& sink, const store::EventSink& open) = nullptr;
    /// Who shows what is in a run that could not be closed, in words.
    std::string (*leftover)(const std::filesystem::path& hidden) = nullptr;
    /// Closes what a run to this path that was killed has left, and gives it its name. Nothing: somebody writes to it,
    /// or the pace has stopped it. Throws core::RunError if it cannot be closed.
    std::optional<store::Recovered> (*recover)(const std::filesystem::path& path,
                                               const store::ReadPace& pace) = nullptr;
    /// What `on_error` is if nobody says.
    SinkError (*usually)(const options::Held& options) = nullptr;
    /// Looks at the run as a whole, as soon as all sinks and [events] are known. Throws core::UsageError.
    void (*check)(const RunConfig& run) = nullptr;
    /// The same when everything is known, to warn.
    void (*warn)(RunConfig& run) = nullptr;
};

/// The kinds, in the order of messages.
[[nodiscard]] std::span<const SinkEntry> sink_entries();
[[nodiscard]] const SinkEntry& entry_of(const SinkConfig& sink);

}  // namespace weir::config

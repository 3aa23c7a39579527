// What `weir inspect` and `weir export` say in common: numbers and times for people, events for programs, and events as
// they are named on the command line.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/run_reader.hpp"

namespace weir::app {

/// "12.5 MiB"
std::string bytes_text(std::uint64_t bytes);
/// "1 event", "2 events"
std::string count_text(std::uint64_t count, std::string_view thing);
/// UTC, "2026-11-21 13:28:51.330031"
std::string time_text(std::int64_t ns);
/// "timeout", …; "none" for a complete event
std::string cause_text(const store::EventInfo& event);

/// The source's missing ranges: [[offset, bytes], …], "all" or "unknown".
nlohmann::json missing_json(const store::SourceInfo& source);
/// The event as `weir inspect --json` has it, without its digest.
nlohmann::json event_json(const store::EventInfo& event);
/// On one line.
std::string dump(const nlohmann::json& object);

/// What the run says about losses.
struct LossVerdict {
    std::string lossless;               ///< "yes", "no" or "unknown"
    std::vector<std::string> evidence;  ///< what that rests on
};
/// The exit status: 0, or 3 after a word about why not, if that is not what --require-lossless asks for (`required`: as
/// required_lossless() gives it).
int lossless_status(const LossVerdict& verdict, std::string_view required, std::string_view command);
/// From the manifest. Unknown where there is none, or an older one that does not say.
LossVerdict loss_verdict(const store::RunReader& run);

/// The run's configuration, from its manifest or else from its start; null if neither has it.
nlohmann::json config_of(const store::RunReader& run);

/// That so many events were left out, because several builders have them.
std::string copies_text(std::uint64_t copies);

/// "7", "0x7" or "1:7" on the command line.
struct EventName {
    std::optional<std::uint32_t> epoch;
    std::uint64_t id = 0;
    bool operator==(const EventName&) const = default;
};
/// Throws core::UsageError. `command` is put in front of the message.
EventName parse_event_name(const std::string& text, std::string_view command);
/// Throws core::RunError if the run has no such event.
store::EventInfo find_event(const store::RunReader& run, const EventName& name);

/// One line on standard error that says how far something is; only on a terminal, and only if it takes a while.
class Progress {
public:
    /// `what` is counted up to `total`.
    Progress(std::string what, std::uint64_t total, bool quiet);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void at(std::uint64_t done);
    /// Takes the line away, so that something else can be said.
    void clear();

private:
    std::string what_;
    std::uint64_t total_;
    bool on_;
    bool shown_ = false;
    std::int64_t next_ns_;
};

}  // namespace weir::app

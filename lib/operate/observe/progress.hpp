// What a run says while it goes on: a line that is rewritten on a terminal, or an object of JSON per second for
// programs. On the control thread; reads counters that the lcores publish, and disturbs nobody.
#pragma once

#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "observe/ledger.hpp"
#include "observe/run_observer.hpp"
#include "observe/run_sampler.hpp"

namespace weir::observe {

enum class ProgressMode : std::uint8_t {
    automatic,  ///< a line on a terminal, nothing elsewhere
    line,
    json,
    none,
};

/// What `--progress` says: "auto", "line", "none", "json" (to stderr) or "json:FILE".
struct ProgressOption {
    ProgressMode mode = ProgressMode::automatic;
    std::string file;
};
/// Throws core::UsageError.
[[nodiscard]] ProgressOption parse_progress(const std::string& text);

/// One line of at most `width` characters: what does not fit is left out, the least important first.
[[nodiscard]] std::string progress_line(const RunSample& sample, std::size_t width);

/// The ledger as in the run report, with "time_s", "final", "rates", "levels", "stages", "bottleneck", "losses",
/// "disk" and, if there is one, "recorder".
/// docs/reference/PROGRESS.md lists the keys.
[[nodiscard]] nlohmann::json progress_json(const RunSample& sample, bool final);

class Progress final : public RunObserver {
public:
    /// `quiet` silences say() and what is automatic. Throws core::RunError if the option's file cannot be opened.
    Progress(const ProgressOption& option, bool quiet);
    ~Progress() override;

    /// A sentence on stderr, without damaging the line.
    void say(std::string_view text);
    /// Takes and shows a sample when a second has passed since the last one.
    void look(const RunMoment& moment) override;
    /// The last sample: it agrees with the report.
    void counted(const RunMoment& moment, const Ledger& ledger, const Verdict& verdict) override;
    /// Somebody asks (SIGUSR1): the line in full, and what has been seen if nothing of what is waited for has come.
    /// Said whatever was asked for at the start.
    void answer(const RunMoment& moment);
    /// The line in full, for another listener, whose own Progress this is: rates are since the last call.
    [[nodiscard]] std::string line(const RunMoment& moment);

private:
    void show(const RunSample& sample, bool final);
    void end_line();

    ProgressMode mode_;
    bool quiet_;
    bool terminal_;
    bool line_open_ = false;
    std::FILE* out_ = stderr;
    RunSampler sampler_;
};

}  // namespace weir::observe

// `weir inspect` for people. See inspect_text.hpp.
#include "inspect_text.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>

#include "assemble/event_cause.hpp"
#include "event_table.hpp"
#include "reduction_text.hpp"
#include "run_text.hpp"
#include "store/json_members.hpp"
#include "store/run_recovery.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace {

using nlohmann::json;
using store::EventInfo;
using store::RunReader;
using store::SourceInfo;
using store::SourceState;

constexpr std::uint64_t sources_max = 20;

/// To standard output, in lines that fit the terminal.
void put(const std::string& text, std::size_t hang = 2) {
    std::cout << wrapped(text, columns_of(STDOUT_FILENO), hang);
}

/// Its writer did not close it.
bool is_interrupted(const RunReader& run) {
    return run.manifest().contains(store::interrupted_key);
}

void print_heading(const RunReader& run) {
    const std::string name = store::text_at(run.start(), "name");
    std::string text = fmt::format("run {}", run.path().string());
    if (!name.empty()) text += fmt::format(" ({})", name);
    if (run.run()) text += fmt::format(", number {}", *run.run());
    const char* state = run.being_written() ? ", still being written" : ", not closed";
    if (run.closed()) state = is_interrupted(run) ? ", interrupted" : "";
    put(fmt::format("{}, begun {} UTC{}\n\n", text, time_text(run.created_ns()), state));
}

/// What incomplete events lack, added up.
class Losses {
public:
    void take(const EventInfo& event) {
        if (event.complete) return;
        ++causes_[static_cast<std::size_t>(event.cause)];
        for (const SourceInfo& source : event.sources) {
            if (source.state == SourceState::complete) continue;
            Source& sum = sources_[source.id];
            sum.partial += source.state == SourceState::partial ? 1 : 0;
            sum.unknown += source.state == SourceState::size_unknown ? 1 : 0;
            sum.absent += source.state == SourceState::absent || source.state == SourceState::absent_unknown ? 1 : 0;
            if (source.state != SourceState::partial) continue;
            sum.gaps += source.missing.size();
            for (const store::MissingRange& range : source.missing) sum.bytes += range.bytes;
        }
    }

    void print(const RunReader& run) const {
        if (sources_.empty()) return;
        put("\nwhy events are incomplete\n");
        for (std::size_t cause = 1; cause < causes_.size(); ++cause) {
            if (causes_[cause] == 0) continue;
            const auto counter = assemble::counter_of(static_cast<assemble::EventCause>(cause));
            put(fmt::format("  {:<12} {:>10}  {}\n", store::cause_names[cause], count_text(causes_[cause], "event"),
                            assemble::event_counters[static_cast<std::size_t>(counter)].help));
        }
        put("\nwhat they lack\n");
        const json labels = store::at_or_null(config_of(run), "sources");
        std::uint64_t listed = 0;
        for (const auto& [id, sum] : sources_) {
            if (++listed > sources_max) {
                put(fmt::format("  … and {}\n", count_text(sources_.size() - sources_max, "more source")));
                break;
            }
            std::string label;
            if (labels.is_array() && id < labels.size() && labels[id].is_string())
                label = fmt::format(" ({})", labels[id].get<std::string>());
            put(fmt::format("  source {}{}: {}\n", id, label, text_of(sum)));
        }
    }

private:
    struct Source {
        std::uint64_t partial = 0;  ///< events
        std::uint64_t gaps = 0;
        std::uint64_t bytes = 0;
        std::uint64_t absent = 0;   ///< events
        std::uint64_t unknown = 0;  ///< events
    };

    static std::string text_of(const Source& sum) {
        std::string text;
        const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
        if (sum.partial > 0)
            add(fmt::format("{} in {} of {}", bytes_text(sum.bytes), count_text(sum.gaps, "gap"),
                            count_text(sum.partial, "event")));
        if (sum.absent > 0) add(fmt::format("nothing came for {}", count_text(sum.absent, "event")));
        if (sum.unknown > 0) add(fmt::format("the end, and so the size, of {}", count_text(sum.unknown, "event")));
        return text;
    }

    std::array<std::uint64_t, store::cause_names.size()> causes_{};
    std::map<std::uint32_t, Source> sources_;
};

/// Every number in `object` that is not zero, with the path to it.
void nonzero(const json& object, const std::string& path, std::vector<std::pair<std::string, std::uint64_t>>& out) {
    if (object.is_number_unsigned() && object.get<std::uint64_t>() > 0)
        out.emplace_back(path, object.get<std::uint64_t>());
    if (!object.is_object()) return;
    for (const auto& [key, value] : object.items()) nonzero(value, path.empty() ? key : path + "." + key, out);
}

/// What the run's ledger says of packets and events that did not get into the file.
void print_ledger(const RunReader& run) {
    const json& ledger = store::at_or_null(run.manifest(), "ledger");
    const json& packets = store::at_or_null(ledger, "packets");
    const json& events = store::at_or_null(ledger, "events");
    const std::optional<std::uint64_t> received = store::number_at(packets, "received");
    if (!received) return;
    std::vector<std::pair<std::string, std::uint64_t>> lost;
    nonzero(store::at_or_null(packets, "dropped"), "dropped", lost);
    std::uint64_t dropped = 0;
    for (const auto& entry : lost) dropped += entry.second;
    const json& wire_loss = store::at_or_null(ledger, "wire_loss");
    const std::string before = wire_loss.is_number_unsigned()
                                   ? fmt::format("{} lost before weir saw them", wire_loss.get<std::uint64_t>())
                                   : "unknown how many were lost before weir saw them";
    put(fmt::format("\nthe ledger of the run: {} received, {} of them in events, {} dropped; {}\n",
                    count_text(*received, "packet"), store::number_at(packets, "placed").value_or(0), dropped, before));
    for (const char* section : {"vetoed", "dropped"})
        nonzero(store::at_or_null(events, section), fmt::format("events.{}", section), lost);
    if (const auto unsteered = store::number_at(packets, "unsteered").value_or(0); unsteered > 0)
        lost.emplace_back("unsteered", unsteered);
    for (const auto& [name, count] : lost) put(fmt::format("  {:<28} {:>10}   (weir explain {})\n", name, count, name));
    if (store::at_or_null(ledger, "balanced") == false)
        put("  it does NOT balance: some packets are not accounted for\n");
}

void print_losses(const RunReader& run) {
    const LossVerdict verdict = loss_verdict(run);
    put(fmt::format("\nlossless: {}\n", verdict.lossless));
    for (const std::string& line : verdict.evidence) put(fmt::format("  {}\n", line));
}

void print_totals(const store::Verification& result) {
    std::string text = fmt::format("\n{}, ", count_text(result.events, "event"));
    if (result.heads == result.events)
        text += fmt::format("{} complete, {} incomplete; ", result.complete, result.events - result.complete);
    put(text + fmt::format("{} of payload in {} on disk, {}\n", bytes_text(result.payload_bytes),
                           bytes_text(result.stored_bytes), count_text(result.segments, "segment")));
}

void print_verdict(const RunReader& run, const store::Verification& result) {
    if (is_interrupted(run))
        put("\nThe program that took this run, or its machine, ended before the run was closed; the next start closed it. "
            "It has no ledger, and nobody can say what would have come.\n",
            0);
    if (result.verified) {
        put(result.payload_read
                ? fmt::format("\nverified: every block, the index{} are whole and agree\n",
                              is_interrupted(run) ? " and the manifest" : ", the manifest and the ledger")
                : fmt::format("\nnot verified: the payload was not read (without --quick it is). "
                              "All else that was read is whole and agrees: the manifest, the index of all events, "
                              "and the heads of {}\n",
                              count_text(result.heads, "event")),
            0);
        return;
    }
    constexpr std::size_t shown_max = 20;
    put(fmt::format("\nNOT verified, {}:\n", count_text(result.problem_count, "problem")));
    for (std::size_t i = 0; i < std::min(shown_max, result.problems.size()); ++i) put("  " + result.problems[i] + "\n");
    if (result.problem_count > shown_max) put(fmt::format("  and {} more\n", result.problem_count - shown_max));
    const std::uint64_t promised = store::number_at(run.manifest(), "events").value_or(result.events);
    if (promised > result.events)
        put(fmt::format("{} of {} lost\n", promised - result.events, count_text(promised, "event")));
    if (run.being_written())
        put("Look again when it is finished: the ledger comes last.\n", 0);
    else if (!run.closed())
        put("Without a manifest there is no ledger, and nobody can say how many events there should be: "
            "what came last may be missing.\n",
            0);
    if (result.events > 0 && result.payload_read)
        put(fmt::format("{} whole and can be read all the same\n",
                        result.events == 1 ? "the listed event is" : "the listed events are"));
}

}  // namespace

int print_text(const RunReader& run, const TableOptions& options) {
    std::uint64_t bytes = 0;
    Losses losses;
    Progress progress("reading", run.stored_bytes(), false);
    print_heading(run);
    EventTable table(run, options, progress);
    const store::ScanHooks hooks = table.hooks([&](const EventInfo& event) {
        losses.take(event);
        bytes += event.stored_bytes;
        progress.at(bytes);
    });
    store::Verification result = options.quick ? run.scan_index(hooks, table.heads_max()) : run.scan(hooks);
    table.finish(result);
    print_totals(result);
    put(reduction_text(run, result) + table.packets().totals_text());
    losses.print(run);
    print_ledger(run);
    print_losses(run);
    print_verdict(run, result);
    return result.verified ? 0 : 1;
}

}  // namespace weir::app

#include "observe/counter_sections.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "assemble/counters.hpp"
#include "pipeline/level_counters.hpp"
#include "port/device_counters.hpp"
#include "record/recorder_counters.hpp"
#include "reduce/chain/codec_counter.hpp"
#include "reduce/chain/jungfrau_counter.hpp"
#include "reduce/mfp/mfp_counter.hpp"
#include "reduce/pedestal/pedestal_counter.hpp"
#include "reduce/sparse/sparse_counter.hpp"
#include "reduce/veto/veto_counter.hpp"
#include "roce/responder/answer_counter.hpp"
#include "stages/capture_counters.hpp"
#include "wire/decapsulation.hpp"
#include "wire/packet_counter.hpp"

namespace weir::observe {
namespace {

struct Page {
    std::string_view begin;  ///< of the full names of counters
    std::string_view section;
};
// The first that fits.
constexpr Page pages[] = {
    {"packets.unsteered", "unsteered"},
    {"packets.not_for_us.encapsulated", "encapsulated"},
    {"packets.not_for_us.", "unsteered"},
    {"packets.dropped.malformed.encapsulation", "encapsulated"},
    {"packets.dropped.malformed.nested", "encapsulated"},
    {"packets.dropped.ip_fragment.encapsulated", "encapsulated"},
    {"packets.dropped.malformed.truncated", "cut-frames"},
    {"packets.dropped.malformed.ip_length", "cut-frames"},
    {"packets.dropped.malformed.ip_fragment", "cut-frames"},
    {"packets.dropped.malformed.oversized", "cut-frames"},
    {"packets.dropped.malformed.bad_icrc", "icrc"},
    {"packets.dropped.malformed.", "geometry"},
    {"packets.dropped.roce.", "roce"},
    {"answers.", "roce"},
    {"packets.dropped.duplicate", "duplicate"},
    {"packets.dropped.late", "late"},
    {"packets.dropped.no_room", "no-room"},
    {"packets.dropped.queue_full", "queue-full"},
    {"packets.dropped.prescaled", "prescaled"},
    {"packets.dropped.ring_full.", "rings"},
    {"packets.dropped.unbound", "unbound"},
    {"messages.refused.duplicate", "duplicate"},
    {"messages.refused.late", "late"},
    {"messages.refused.no_room", "no-room"},
    {"messages.refused.queue_full", "queue-full"},
    {"messages.refused.prescaled", "prescaled"},
    {"messages.refused.unbound", "unbound"},
    {"events.refused.no_room", "no-room"},
    {"events.refused.queue_full", "queue-full"},
    {"events.refused.prescaled", "prescaled"},
    {"events.incomplete.timeout", "missing"},
    {"events.incomplete.evicted", "evicted"},
    {"events.incomplete.end_of_run", "end-of-run"},
    {"events.incomplete.no_room", "no-room"},
    {"events.incomplete.ended", "missing"},
    {"events.dropped.incomplete", "incomplete"},
    {"events.dropped.no_room", "no-room"},
    {"events.dropped.reduce_error", "reduce-error"},
    {"events.dropped.write_error", "write-error"},
    {"events.dropped.not_taken", "not-taken"},
    {"capture.", "unread"},
    {"decapsulated.", "encapsulated"},
    {"device.received", "nothing-came"},
    {"device.", "device"},
    {"rings.", "rings"},
    {"levels.", "no-room"},
};

/// `*` stands for any characters, dots too.
bool matches(std::string_view pattern, std::string_view name) {
    const std::size_t star = pattern.find('*');
    if (star == std::string_view::npos) return pattern == name;
    if (!name.starts_with(pattern.substr(0, star))) return false;
    const std::string_view rest = pattern.substr(star + 1);
    for (std::size_t at = star; at <= name.size(); ++at)
        if (matches(rest, name.substr(at))) return true;
    return false;
}

/// "events0" and "recycle0.1" are rings of one kind.
std::string_view without_number(std::string_view name) {
    const std::size_t last = name.find_last_not_of("0123456789.");
    return last == std::string_view::npos ? name : name.substr(0, last + 1);
}

}  // namespace

std::span<const CounterSection> counter_sections() {
    static const std::array sections = std::to_array<CounterSection>({
        {"packets",
         "Every packet that weir was given ends in exactly one of these: `received` is their sum, "
         "and `balanced` says that an independent count agrees.",
         wire::packet_counters},
        {"messages", "What one source sends for one event: `opened` = `delivered` + all `refused` + open.",
         assemble::message_counters},
        {"events",
         "`opened` = `complete` + all `incomplete` + open; of the closed ones, each is `vetoed`, `dropped`, "
         "`written` or queued.",
         assemble::event_counters},
        {"answers",
         "What weir sent as a RoCE responder (`service` other than \"listen\"), in the report's `roce`. "
         "A replay counts what it would have sent.",
         roce::answer_counters},
        {"reduce.jungfrau", "What `[[reduce]] kind = \"jungfrau\"` has done, in the report's `reduce`.",
         reduce::jungfrau_counters},
        {"reduce.mfp", "What `[[reduce]] kind = \"mfp\"` has done, in the report's `reduce`.", reduce::mfp_counters},
        {"reduce.veto", "What `[[reduce]] kind = \"veto\"` has decided, in the report's `reduce`.",
         reduce::veto_counters},
        {"reduce.sparse", "What `[[reduce]] kind = \"sparse\"` has done, in the report's `reduce`.",
         reduce::sparse_counters},
        {"reduce.pedestal", "What `[[reduce]] kind = \"pedestal\"` has done, in the report's `reduce`.",
         reduce::pedestal_counters},
        {"reduce.codec",
         "What the reducer that compresses (`zstd`, `pack`) has done, in the report's `reduce` under its own name.",
         reduce::codec_counters},
        {"device", "What each device says itself, per port, in the report's `devices`. Not part of the ledger's sums.",
         port::device_counters},
        {"capture",
         "What a replay found in its files and left out, in the report's `capture`. Not part of the ledger's sums.",
         stages::capture_counters},
        {"decapsulated",
         "What was taken off packets, per port that is asked to (`[[port]] decapsulate`), in the report's `decapsulated`. "
         "Not part of the ledger's sums: these packets end where the ones inside do.",
         wire::tunnel_counters},
        {"rings", "How full the rings between lcores and threads are: only while a run goes on, in `--progress json`.",
         pipeline::ring_counters},
        {"levels", "How full buffers and queues are: only while a run goes on, on the progress line and in JSON.",
         pipeline::level_counters},
        {"recorder",
         "What a sink of kind `pcapng` did with the packets beside the run, in the report's `recorder`. "
         "It changes none of the other counters.",
         record::recorder_counters},
    });
    return sections;
}

std::string counter_page(std::string_view full_name) {
    if (full_name.starts_with("recorder.")) return "docs/guides/RECORDER.md#what-is-counted";
    for (const Page& page : pages)
        if (full_name.starts_with(page.begin)) return "docs/guides/LOSSES.md#" + std::string(page.section);
    return "docs/reference/COUNTERS.md";
}

std::string counters_markdown() {
    std::string text =
        "# Counters\n\n"
        "What each number in the run report means, and what to do when it is not zero. Made from the tables that\n"
        "`lib/operate/observe/counter_sections.cpp` lists, by `weir explain --markdown`; edit the tables, not this page.\n"
        "`weir explain NAME` shows one of them in the terminal.\n";
    for (const CounterSection& section : counter_sections()) {
        text += fmt::format("\n## {}\n\n{}\n\n| counter | what it means, and what to do |\n|---|---|\n", section.name,
                            section.title);
        for (const core::CounterInfo& info : section.counters)
            text += fmt::format("| `{}` | {} |\n", info.name, info.help);
    }
    return text;
}

std::vector<NamedCounter> find_counters(std::string_view name) {
    std::vector<NamedCounter> found;
    for (const CounterSection& section : counter_sections()) {
        for (const core::CounterInfo& info : section.counters) {
            std::string full = fmt::format("{}.{}", section.name, info.name);
            bool same = matches(name, info.name) || matches(name, full) || fmt::format("dropped.{}", name) == info.name;
            if (section.name == "rings") same |= without_number(name) == info.name || without_number(name) == full;
            if (same) found.push_back({std::move(full), &info});
        }
    }
    return found;
}

}  // namespace weir::observe

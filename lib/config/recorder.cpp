// [[sink]] of kind "pcapng": reading, checking, printing.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/parts.hpp"
#include "config/printer.hpp"
#include "core/units.hpp"

namespace weir::pipeline::detail {

namespace {

constexpr std::uint64_t bytes_limit = std::uint64_t{1} << 44U;
constexpr double seconds_max = 86'400;
constexpr const char* only_flight_recorder =
    "nothing with packets = \"all\": it is for packets = \"incomplete\", the flight recorder";

std::string seconds_text(double seconds) {
    return fmt::format("{}", seconds);
}

}  // namespace

void read_recorder(TableReader& table, SinkConfig& sink) {
    RecorderConfig& record = sink.options.emplace<RecorderConfig>();
    record.packets = table.choice("packets", record_mode_names).value_or(record.packets);
    const bool flight = record.packets == RecordMode::incomplete;
    if (flight) {
        record.memory_bytes = RecorderConfig::ring_memory_default;
        record.bytes_max = RecorderConfig::ring_bytes_default;
        record.segment_bytes = RecorderConfig::ring_segment_default;
        // What is there to find out why things go wrong does not end a run by itself.
        if (table.get("on_error") == nullptr) sink.on_error = SinkError::carry_on;
    }
    constexpr std::uint64_t snap_max = 65535;
    record.snap_bytes =
        static_cast<std::uint32_t>(table.integer("snap_bytes", {0, snap_max}).value_or(record.snap_bytes));
    record.memory_bytes = table.size("memory", {16U << 20U, bytes_limit}).value_or(record.memory_bytes);
    record.bytes_max = table.size("bytes_max", {0, bytes_limit}).value_or(record.bytes_max);
    record.segment_bytes = table.size("segment_bytes", {0, bytes_limit}).value_or(record.segment_bytes);
    constexpr std::uint64_t segment_min = 1U << 20U;
    if (record.segment_bytes != 0 && record.segment_bytes < segment_min)
        table.wrong("segment_bytes", fmt::format("{} bytes", record.segment_bytes), "0 for one file, or 1MiB and more");
    record.keep_free = table.size("keep_free", {0, bytes_limit}).value_or(record.keep_free);
    if (!flight) {
        for (const auto* key : {"seconds", "before", "after", "drops", "files_max"})
            table.refuse(key, only_flight_recorder);
        return;
    }
    record.seconds = table.number("seconds", 0.001, seconds_max).value_or(record.seconds);
    record.before = table.number("before", 0, seconds_max).value_or(record.before);
    record.after = table.number("after", 0, seconds_max).value_or(record.after);
    record.drops = table.integer("drops", {0, UINT32_MAX}).value_or(record.drops);
    record.files_max = table.integer("files_max", {1, 9999}).value_or(record.files_max);
}

void check_recorders(const RunConfig& run) {
    const SinkConfig* before = nullptr;
    for (const SinkConfig& sink : run.sinks) {
        if (sink.kind != SinkKind::pcapng) continue;
        if (before != nullptr)
            fail(sink.place, "sink.kind", fmt::format("\"pcapng\", as in the sink at line {}", before->place.line),
                 "one sink of kind \"pcapng\" in a run");
        before = &sink;
        const RecorderConfig& record = sink.recorder();
        if (record.packets != RecordMode::incomplete) continue;
        const double needed = record.before + run.events.timeout_ms * 1e-3;
        if (record.seconds < needed)
            fail(sink.place, "sink.seconds", seconds_text(record.seconds),
                 fmt::format("at least before + events.timeout_ms = {} seconds: an event that times out began so long "
                             "ago",
                             seconds_text(needed)));
    }
}

void print_recorder(Printer& out, const SinkConfig& sink) {
    const RecorderConfig& record = sink.recorder();
    RecorderConfig defaults;
    const bool flight = record.packets == RecordMode::incomplete;
    out.choice("packets", record_mode_names, record.packets, defaults.packets);
    if (flight) {
        defaults.memory_bytes = RecorderConfig::ring_memory_default;
        defaults.bytes_max = RecorderConfig::ring_bytes_default;
        defaults.segment_bytes = RecorderConfig::ring_segment_default;
        const auto seconds = [&out](std::string_view key, double value, double fallback) {
            out.line(key, seconds_text(value), value == fallback);
        };
        seconds("seconds", record.seconds, defaults.seconds);
        seconds("before", record.before, defaults.before);
        seconds("after", record.after, defaults.after);
        out.number("drops", record.drops, defaults.drops);
        out.number("files_max", record.files_max, defaults.files_max);
    }
    out.number("snap_bytes", record.snap_bytes, defaults.snap_bytes);
    out.size("memory", record.memory_bytes, defaults.memory_bytes);
    out.size("bytes_max", record.bytes_max, defaults.bytes_max);
    out.size("segment_bytes", record.segment_bytes, defaults.segment_bytes);
    out.size("keep_free", record.keep_free, defaults.keep_free);
}

void recorder_json(nlohmann::json& out, const SinkConfig& sink) {
    const RecorderConfig& record = sink.recorder();
    out.update({{"packets", name_of(record_mode_names, record.packets)},
                {"snap_bytes", record.snap_bytes},
                {"memory", record.memory_bytes},
                {"bytes_max", record.bytes_max},
                {"segment_bytes", record.segment_bytes},
                {"keep_free", record.keep_free}});
    if (record.packets != RecordMode::incomplete) return;
    out.update({{"seconds", record.seconds},
                {"before", record.before},
                {"after", record.after},
                {"drops", record.drops},
                {"files_max", record.files_max}});
}

}  // namespace weir::pipeline::detail

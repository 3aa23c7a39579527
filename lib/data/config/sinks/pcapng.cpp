// [[sink]] of kind "pcapng".
#include <fmt/format.h>

#include "config/parts.hpp"
#include "config/sinks/entry.hpp"
#include "config/sinks/pcapng.hpp"
#include "core/units.hpp"
#include "store/capture_recovery.hpp"

namespace weir::config {

namespace {

using namespace detail;

constexpr std::array record_mode_names{Named{"all", RecordMode::all}, Named{"incomplete", RecordMode::incomplete}};

constexpr std::uint64_t bytes_limit = std::uint64_t{1} << 44U;
constexpr double seconds_max = 86'400;
bool is_flight(const RecorderConfig& record) {
    return record.packets == RecordMode::incomplete;
}

OptionTable<RecorderConfig> recorder_options() {
    constexpr std::uint64_t segment_min = 1U << 20U;
    const auto only_flight = [](const RecorderConfig& record) -> std::string {
        return is_flight(record)
                   ? ""
                   : "nothing with packets = \"all\": it is for packets = \"incomplete\", the flight recorder";
    };
    /// The flight recorder has another default.
    const auto flight = [](auto member, std::uint64_t value) {
        return [member, value](RecorderConfig& record) {
            record.*member = is_flight(record) ? value : RecorderConfig{}.*member;
        };
    };
    OptionTable<RecorderConfig> out;
    out.choice("packets", record_mode_names, &RecorderConfig::packets,
               "every packet that ports hand over; or the flight recorder: those around incomplete events, "
               "bursts of lost packets, and what is asked for (SIGUSR2)");
    out.integer("snap_bytes", {0, 65535}, &RecorderConfig::snap_bytes,
                "packets are cut after so many bytes; 0: not at all");
    out.size("memory", {16U << 20U, bytes_limit}, &RecorderConfig::memory_bytes,
             "for copies of packets, taken at the start, at least 16 MiB for each rx lcore")
        .otherwise(flight(&RecorderConfig::memory_bytes, RecorderConfig::ring_memory_default))
        .usually("64MiB; incomplete: 256MiB");
    out.size("bytes_max", {0, bytes_limit}, &RecorderConfig::bytes_max,
             "of all files of the run; then no more is written, and that is said. 0: no limit")
        .otherwise(flight(&RecorderConfig::bytes_max, RecorderConfig::ring_bytes_default))
        .usually("0; incomplete: 10GiB");
    out.size("segment_bytes", {0, bytes_limit}, &RecorderConfig::segment_bytes,
             "a file that has become so large goes on in a new one, `NAME-0002.pcapng`. 0: never")
        .kind("0, or size, 1MiB..16TiB")
        .otherwise(flight(&RecorderConfig::segment_bytes, RecorderConfig::ring_segment_default))
        .usually("0; incomplete: 1GiB")
        .check([](TableReader& table, const RecorderConfig& record) {
            if (record.segment_bytes != 0 && record.segment_bytes < segment_min)
                table.wrong("segment_bytes", fmt::format("{} bytes", record.segment_bytes),
                            "0 for one file, or 1MiB and more");
        });
    out.size("keep_free", {0, bytes_limit}, &RecorderConfig::keep_free,
             "so much of the disk is never written to: it counts as full before. 0: until the disk refuses");
    out.number("seconds", 0.001, seconds_max, &RecorderConfig::seconds,
               "incomplete: how long packets are kept in memory, as far as that goes; "
               "at least `before` and the time-out of events")
        .refused_where(only_flight);
    out.number("before", 0, seconds_max, &RecorderConfig::before,
               "incomplete: seconds in front of what happened that are saved. An event began with its first packet")
        .refused_where(only_flight);
    out.number("after", 0, seconds_max, &RecorderConfig::after, "incomplete: seconds after it that are saved")
        .refused_where(only_flight);
    out.integer("drops", {0, UINT32_MAX}, &RecorderConfig::drops,
                "incomplete: so many packets lost within a second are saved, too; 0: never")
        .refused_where(only_flight);
    out.integer("files_max", {1, 9999}, &RecorderConfig::files_max, "incomplete: files of the run")
        .refused_where(only_flight);
    return out;
}

/// Whether a flight recorder forgets sooner than events time out.
void check_recorders(const RunConfig& run) {
    const SinkConfig* before = nullptr;
    for (const SinkConfig& sink : run.sinks) {
        const auto* recorder = sink.as<RecorderConfig>();
        if (recorder == nullptr) continue;
        if (before != nullptr)
            fail(sink.place, "sink.kind", fmt::format("\"pcapng\", as in the sink at line {}", before->place.line),
                 "one sink of kind \"pcapng\" in a run");
        before = &sink;
        const RecorderConfig& record = *recorder;
        if (record.packets != RecordMode::incomplete) continue;
        const double needed = record.before + run.events.timeout_ms * 1e-3;
        if (record.seconds < needed)
            fail(sink.place, "sink.seconds", fmt::format("{}", record.seconds),
                 fmt::format("at least before + events.timeout_ms = {} seconds: "
                             "an event that times out began so long ago",
                             needed));
    }
}

}  // namespace

SinkEntry pcapng_sink() {
    return {.kind = kind_of("pcapng", recorder_options()),
            .meaning = "the packets themselves ([RECORDER.md](../guides/RECORDER.md); beside other sinks or alone)",
            .recover = store::recover_capture,
            // What is there to find out why things go wrong does not end a run by itself.
            .usually =
                [](const options::Held& options) {
                    return is_flight(*options.get_if<RecorderConfig>()) ? SinkError::carry_on : SinkError::stop;
                },
            .check = check_recorders};
}

}  // namespace weir::config

// [[sink]] of kind "events": the event file.
#include "config/sinks/events.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/sinks/entry.hpp"
#include "store/run_writer.hpp"

namespace weir::config {

namespace {

using namespace detail;

constexpr std::array sync_names{Named{"interval", SyncPolicy::interval}, Named{"segment", SyncPolicy::segment},
                                Named{"end", SyncPolicy::end}, Named{"never", SyncPolicy::never}};

OptionTable<EventsSinkConfig> event_file_options() {
    constexpr std::uint64_t bytes_max = std::uint64_t{1} << 44;
    OptionTable<EventsSinkConfig> out;
    out.size("segment_bytes", {1U << 20, bytes_max}, &EventsSinkConfig::segment_bytes,
             "a new file begins after this many bytes,");
    // Years fit, and so do their nanoseconds.
    out.integer("segment_seconds", {0, 1U << 30}, &EventsSinkConfig::segment_seconds,
                "and with the first event that comes this long after the first one in the file; 0: not by time. "
                "After 200000 files the last one grows");
    out.size("sync_bytes", {4096, bytes_max}, &EventsSinkConfig::sync_bytes,
             "data is synced to the disk after this many bytes,");
    out.integer("sync_ms", {1, 3'600'000}, &EventsSinkConfig::sync_ms,
                "and at least this often. What is synced survives a power cut; "
                "what is written survives the end of the program");
    out.choice("sync", sync_names, &EventsSinkConfig::sync,
               "when: by `sync_bytes` and `sync_ms`; only when a file is full; only at the end of the run; never, "
               "so that nothing is called synced and `written` means with the kernel");
    out.choice("direct", toggle_names, &EventsSinkConfig::direct,
               "writes go past the page cache (O_DIRECT), straight from the workers' buffers. `\"auto\"`: "
               "where the file system takes them, and the run says where not; `\"on\"`: it is refused where not. "
               "The run is of version 2 ([EVENT_FILE.md](EVENT_FILE.md)), and a file ends where a buffer ends. "
               "When to turn it on, and why it is not the default: [DISKS.md](../guides/DISKS.md#which-set-up)");
    out.choice("uring", toggle_names, &EventsSinkConfig::uring,
               "io_uring, so that several writes are under way at once: with `direct` and where the kernel allows it; "
               "always, or the run is refused; never");
    out.integer("queue_depth", {1, 1024}, &EventsSinkConfig::queue_depth,
                "with io_uring: writes under way at once, each up to a buffer (1 MiB and more). "
                "Workers have 4 to 16 buffers each, more than that cannot be under way");
    out.integer("files", {1, 64}, &EventsSinkConfig::files,
                "files that are written at the same time, buffers taking turns. More than one makes the run version 2");
    out.size("preallocate", {0, std::uint64_t{1} << 40}, &EventsSinkConfig::preallocate,
             "with `direct`: disk space is set aside in steps of this, which keeps writes from waiting for each other; "
             "the rest goes when the file is full or the run ends. 0: not")
        .kind("size, whole MiB, 0..1TiB")
        .check([](TableReader& table, const EventsSinkConfig& events) {
            if (events.preallocate % (1U << 20) != 0)
                table.wrong("preallocate", format_size(events.preallocate), "whole MiB, or 0");
        });
    return out;
}

std::unique_ptr<store::EventSink> open_events(const SinkContext& context) {
    const EventsSinkConfig& events = *context.sink.as<EventsSinkConfig>();
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
    const auto pads = [](const SinkConfig& sink) {
        const auto* own = sink.as<EventsSinkConfig>();
        return own != nullptr && own->direct != Toggle::off;
    };
    if (std::ranges::count_if(context.config.sinks, &SinkConfig::stores_events) > 1 &&
        std::ranges::any_of(context.config.sinks, pads))
        config.version = store::format_version_reduced;
    return std::make_unique<store::RunWriter>(config);
}

}  // namespace

SinkEntry events_sink() {
    return {.kind = kind_of("events", event_file_options()),
            .meaning = "event files ([EVENT_FILE.md](EVENT_FILE.md))",
            .open = open_events,
            .leftover =
                [](const std::filesystem::path& hidden) {
                    return fmt::format("`weir inspect {}` reads what is there", hidden.string());
                },
            .recover = store::recover_run};
}

}  // namespace weir::config

#include "probe_replay.hpp"

#include <optional>

#include "core/error.hpp"
#include "core/say.hpp"
#include "run/run.hpp"
#include "store/image.hpp"
#include "store/run_reader.hpp"
#include "version.hpp"

namespace weir::app {

namespace {

/// The pixels in a row of what the run is of; 0 if it is no images.
std::uint32_t image_columns(const config::RunConfig& run) {
    return config::format_entry(run.streams.front()).image.columns;
}

void draw_first(const std::string& out, std::uint32_t columns) {
    const store::RunReader run(out);
    for (const store::IndexEntry& entry : run.entries([](const store::IndexEntry&) { return true; })) {
        const store::EventInfo event = run.read_head(entry);
        if (!event.complete) continue;
        store::Image image = store::event_image(run, event, columns, std::nullopt);
        const store::Levels levels = store::percentile_levels(image);
        store::stretch(image, levels);
        const std::string file = out + ".png";
        store::write_png(file, image);
        return core::say("event {}: {} x {} pixels, values {} to {} from black to white: {}\n", event.id, image.width,
                         image.height, levels.low, levels.high, file);
    }
    core::say("no event is complete: no picture\n");
}

}  // namespace

int replay_proposal(const std::string& capture, const std::string& toml, const std::string& out) {
    run::RunOptions options;
    options.config = config::parse_config(toml, "proposed.toml");
    options.out = out;
    options.quiet = true;
    options.version = std::string(version()) + " " + commit();
    stages::CaptureFeeder::Config feeder;
    feeder.files = {capture};
    feeder.wait = true;
    options.capture = std::move(feeder);
    const std::uint32_t columns = image_columns(options.config);
    const int status = run::execute_run(std::move(options));
    if (status != 0) return status;
    core::say("events: {} (weir inspect {})\n", out, out);
    if (columns != 0)
        draw_first(out, columns);
    else
        core::say("this format has no images that are drawn: no picture\n");
    return status;
}

}  // namespace weir::app

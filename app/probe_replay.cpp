#include "probe_replay.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "draw_received.hpp"
#include "run/run.hpp"
#include "store/run_reader.hpp"
#include "version.hpp"
#include "wire/reported_stream.hpp"

namespace weir::app {

namespace {

void draw_first(const std::string& out, const store::ReceivedShape& shape) {
    const store::RunReader run(out);
    for (const store::IndexEntry& entry : run.entries([](const store::IndexEntry&) { return true; })) {
        const store::EventInfo event = run.read_head(entry);
        if (!event.complete) continue;
        return core::print_stderr("event {}: {}\n", event.id,
                                  draw_received(run, event, shape, std::nullopt, out + ".png"));
    }
    core::print_stderr("no event is complete: no picture\n");
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
    const nlohmann::json config = config::config_json(options.config);
    const std::optional<wire::ImageShape> image = wire::image_of_streams(config["stream"]);
    const std::string_view format = config::format_entry(options.config.streams.front()).name;
    const int status = run::execute_run(std::move(options));
    if (status != 0) return status;
    core::print_stderr("events: {} (weir inspect {})\n", out, out);
    if (image)
        draw_first(out, {image->columns, image->bits, format});
    else
        core::print_stderr("this format has no images that are drawn: no picture\n");
    return status;
}

}  // namespace weir::app

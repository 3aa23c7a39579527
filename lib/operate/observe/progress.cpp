#include "observe/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "observe/counted.hpp"
#include "observe/ledger_collect.hpp"
#include "observe/ledger_json.hpp"
#include "observe/run_recorder.hpp"
#include "observe/seen.hpp"
#include "observe/watch.hpp"
#include "pipeline/pipeline.hpp"

namespace weir::observe {

namespace {

std::size_t terminal_width() noexcept {
    winsize size{};
    constexpr std::size_t usual = 80;
    return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
}

std::string percent(const char* name, const pipeline::Level& level) {
    return fmt::format("{} {:.0f}%", name, 100 * level.fraction());
}

constexpr double seconds_per_hour = 3600;

std::string disk_text(std::uint64_t seconds_left) {
    constexpr double hours_shown_max = 1000;
    const double hours = static_cast<double>(seconds_left) / seconds_per_hour;
    if (hours >= hours_shown_max) return fmt::format("disk > {:.0f} h", hours_shown_max);
    if (hours >= 1) return fmt::format("disk {:.1f} h", hours);
    return fmt::format("disk {} min", seconds_left / 60);
}

/// ", recorder 9.8 s held, 2 files, saving"
std::string recorder_text(const record::Recorder::Status& recorder) {
    if (!recorder.stopped.empty()) return fmt::format("; recorder stopped, {} files", recorder.files);
    std::string text = recorder.mode == config::RecordMode::all
                           ? fmt::format("; recorder {} packets", recorder.written)
                           : fmt::format("; recorder {:.3g} s held, {} files", recorder.seconds_held, recorder.files);
    if (recorder.mode == config::RecordMode::incomplete && recorder.saving) text += ", saving";
    if (recorder.left_out > 0) text += fmt::format(", {} left out", recorder.left_out);
    return text;
}

/// A part of the line. The higher its rank, the earlier it is left out.
struct Part {
    int rank = 0;
    std::string text;
};

std::vector<Part> parts_of(const RunSample& sample) {
    const Ledger& ledger = sample.ledger;
    const pipeline::Levels& levels = sample.levels;
    const std::uint64_t closed = ledger.get(assemble::EventCounter::complete) + ledger.incomplete();
    std::vector<Part> parts;
    parts.push_back({0, fmt::format("{:6.1f} s  {:9.0f} packets/s  {:6.2f} Gb/s", sample.seconds, sample.packets_per_s,
                                    sample.gbps)});
    parts.push_back({1, "  " + counted(closed, "event")});
    if (!sample.nothing.empty()) parts.push_back({1, fmt::format("; nothing for any stream: {}", sample.nothing)});
    if (ledger.incomplete() > 0) parts.push_back({2, fmt::format(", {} incomplete", ledger.incomplete())});
    parts.push_back({4, fmt::format(", {} open", levels.open.used)});
    const std::vector<Ledger::Loss> losses = ledger.losses();
    constexpr std::size_t causes_max = 3;
    if (losses.empty() && sample.nothing.empty()) {
        parts.push_back({3, "; nothing lost"});
    } else if (!losses.empty()) {
        parts.push_back({1, fmt::format("; lost {} {}", losses[0].packets, losses[0].cause)});
        for (std::size_t i = 1; i < losses.size() && i < causes_max; ++i)
            parts.push_back({5, fmt::format(", {} {}", losses[i].packets, losses[i].cause)});
        if (losses.size() > causes_max) parts.push_back({6, ", ..."});
    }
    parts.push_back({4, "; " + percent("memory", levels.memory)});
    parts.push_back({6, ", " + percent("buffers", levels.buffers)});
    if (const pipeline::Levels::Ring* ring = levels.fullest(); ring != nullptr)
        parts.push_back({7, fmt::format(", ring {}", percent(ring->name.c_str(), ring->level))});
    if (levels.writer.size > 0) parts.push_back({5, ", " + percent("writer", levels.writer)});
    if (sample.recorder) parts.push_back({3, recorder_text(*sample.recorder)});
    if (ledger.disk.seconds_left.has_value()) parts.push_back({3, "; " + disk_text(*ledger.disk.seconds_left)});
    return parts;
}

}  // namespace

ProgressOption parse_progress(const std::string& text) {
    if (text == "auto") return {ProgressMode::automatic, ""};
    if (text == "line") return {ProgressMode::line, ""};
    if (text == "none") return {ProgressMode::none, ""};
    if (text == "json") return {ProgressMode::json, ""};
    constexpr std::string_view to_file = "json:";
    if (text.starts_with(to_file) && text.size() > to_file.size())
        return {ProgressMode::json, text.substr(to_file.size())};
    throw core::UsageError("--progress: found '" + text + "'; accepted: auto, line, none, json, json:FILE");
}

std::string progress_line(const RunSample& sample, std::size_t width) {
    std::vector<Part> parts = parts_of(sample);
    const auto length = [&] {
        std::size_t sum = 0;
        for (const Part& part : parts) sum += part.text.size();
        return sum;
    };
    while (length() > width && parts.size() > 1) {
        const auto least = std::ranges::max_element(parts, {}, &Part::rank);
        if (least->rank == 0) break;
        parts.erase(least);
    }
    std::string line;
    for (const Part& part : parts) line += part.text;
    return line.substr(0, width);
}

nlohmann::json progress_json(const RunSample& sample, bool final) {
    nlohmann::json json = ledger_json(sample.ledger);
    json["time_s"] = sample.seconds;
    json["final"] = final;
    if (!final) json.erase("balanced");  // what is on its way between two lcores is not counted yet
    json["rates"] = {{"packets_per_s", sample.packets_per_s},
                     {"gbps", sample.gbps},
                     {"events_per_s", sample.events_per_s},
                     {"sink_bytes_per_s", sample.sink_bytes_per_s}};
    json["levels"] = levels_json(sample.levels);
    if (sample.recorder) json["recorder"] = recorder_json(*sample.recorder);
    if (!sample.nothing.empty()) json["nothing_for_streams"] = sample.nothing;
    json["stages"] = stages_json(sample.usage);
    json["bottleneck"] = bottleneck_json(sample.usage);
    json["losses"] = nlohmann::json::array();
    for (const Ledger::Loss& loss : sample.ledger.losses())
        json["losses"].push_back(
            {{"cause", loss.cause}, {"packets", loss.packets}, {"place", core::name_of(loss.place)}});
    json["disk"] = nlohmann::json::object();
    const store::DiskOutlook& disk = sample.ledger.disk;
    if (disk.free_bytes.has_value()) json["disk"]["free_bytes"] = *disk.free_bytes;
    if (disk.seconds_left.has_value())
        json["disk"]["hours_left"] = static_cast<double>(*disk.seconds_left) / seconds_per_hour;
    return json;
}

Progress::Progress(const ProgressOption& option, bool quiet)
    : mode_(option.mode), quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {
    if (mode_ == ProgressMode::automatic) mode_ = terminal_ && !quiet ? ProgressMode::line : ProgressMode::none;
    if (option.file.empty()) return;
    out_ = std::fopen(option.file.c_str(), "w");
    if (out_ == nullptr) throw core::RunError(fmt::format("--progress json:{}: {}", option.file, std::strerror(errno)));
}

Progress::~Progress() {
    end_line();
    if (out_ != stderr) std::fclose(out_);
}

void Progress::end_line() {
    if (line_open_) core::say_text("\n");
    line_open_ = false;
}

void Progress::say(std::string_view text) {
    if (quiet_) return;
    end_line();
    core::print_stderr("{}\n", text);
}

void Progress::show(const RunSample& sample, bool final) {
    if (mode_ == ProgressMode::json) {
        const std::string text = progress_json(sample, final).dump() + "\n";
        std::fwrite(text.data(), 1, text.size(), out_);
        std::fflush(out_);
        return;
    }
    if (final) return;
    if (terminal_) {
        constexpr const char* clear_to_end = "\x1b[K";
        core::print_stderr("\r{}{}", progress_line(sample, terminal_width() - 1), clear_to_end);
        line_open_ = true;
    } else {
        core::print_stderr("{}\n", progress_line(sample, std::numeric_limits<std::size_t>::max()));
    }
}

void Progress::look(const RunMoment& moment) {
    if (mode_ == ProgressMode::none || moment.seconds - sampler_.last_s() < 1.0) return;
    show(sampler_.take(moment, collect(moment.pipeline)), false);
}

void Progress::counted(const RunMoment& moment, const Ledger& ledger, const Verdict& /*verdict*/) {
    if (mode_ == ProgressMode::none) return;
    show(sampler_.take(moment, ledger), true);
    end_line();
}

std::string Progress::line(const RunMoment& moment) {
    return progress_line(sampler_.take(moment, collect(moment.pipeline)), std::numeric_limits<std::size_t>::max());
}

void Progress::answer(const RunMoment& moment) {
    const auto& [pipeline, watch, seconds] = moment;
    const Ledger ledger = collect(pipeline);
    const Observations seen = watch.observations(pipeline, ledger, seconds);
    RunSample sample;
    sample.seconds = seconds;
    sample.levels = pipeline.levels();
    if (seconds > 0) {
        sample.packets_per_s = static_cast<double>(ledger.received) / seconds;
        sample.gbps = 8e-9 * static_cast<double>(ledger.received_bytes) / seconds;
    }
    sample.ledger = ledger;
    sample.recorder = recorder_of(pipeline);
    end_line();
    core::print_stderr("{} (rates since the start)\n", progress_line(sample, std::numeric_limits<std::size_t>::max()));
    if (nothing_for_streams(ledger, seen))
        core::print_stderr("nothing has come for any stream in {:.1f} s: {}\n", seconds, seen_text(ledger, seen));
}

}  // namespace weir::observe

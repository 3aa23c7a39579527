// Text about runs. See run_text.hpp.
#include "run_text.hpp"

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <ctime>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "store/json_members.hpp"
#include "store/run_recovery.hpp"

namespace weir::app {

using nlohmann::json;
using store::EventInfo;
using store::SourceInfo;
using store::SourceState;

namespace {

template <class T>
T parse_number(std::string_view text, std::string_view whole, std::string_view command) {
    const bool hexadecimal = text.starts_with("0x");
    const std::string_view digits = hexadecimal ? text.substr(2) : text;
    T value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
    if (result.ec != std::errc{} || result.ptr != digits.data() + digits.size())
        throw core::UsageError(
            fmt::format("{}: \"{}\" is not an event; write ID or EPOCH:ID, like 7 or 1:7", command, whole));
    return value;
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
    if (bytes < 10'000) return fmt::format("{} B", bytes);
    double value = static_cast<double>(bytes);
    const char* unit = "B";
    for (const char* next : {"KiB", "MiB", "GiB", "TiB", "PiB"}) {
        if (value < 1024) break;
        value /= 1024;
        unit = next;
    }
    return fmt::format("{:.1f} {}", value, unit);
}

std::string count_text(std::uint64_t count, std::string_view thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string time_text(std::int64_t ns) {
    const std::int64_t below = ((ns % core::ns_per_s) + core::ns_per_s) % core::ns_per_s;
    const std::time_t seconds = static_cast<std::time_t>((ns - below) / core::ns_per_s);
    std::tm fields{};
    if (::gmtime_r(&seconds, &fields) == nullptr) return std::to_string(ns);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", fields.tm_year + 1900, fields.tm_mon + 1,
                       fields.tm_mday, fields.tm_hour, fields.tm_min, fields.tm_sec, below / 1000);
}

std::string cause_text(const EventInfo& event) {
    return std::string(assemble::name_of(event.cause));
}

json missing_json(const SourceInfo& source) {
    if (source.state == SourceState::absent_unknown) return "all";
    if (source.state == SourceState::size_unknown) return "unknown";
    json ranges = json::array();
    for (const store::MissingRange& range : source.missing) ranges.push_back({range.offset, range.bytes});
    return ranges;
}

json event_json(const EventInfo& event) {
    json object = {{"epoch", event.epoch},       {"id", event.id},
                   {"complete", event.complete}, {"bytes", event.payload_bytes},
                   {"first_ns", event.first_ns}, {"last_ns", event.last_ns}};
    if (!event.complete) object["cause"] = cause_text(event);
    object["sources"] = json::array();
    for (const SourceInfo& source : event.sources) {
        object["sources"].push_back(
            {{"id", source.id}, {"bytes", source.received_bytes}, {"missing", missing_json(source)}});
        if (event.reduced()) object["sources"].back()["reduced_bytes"] = source.reduced_bytes;
    }
    if (event.version < store::format_version_reduced) return object;
    object["content"] = store::content_names[static_cast<std::size_t>(event.content)];
    object["veto"] = store::veto_names[static_cast<std::size_t>(event.veto)];
    object["pixels_above"] = event.pixels_above;
    object["peaks"] = event.peaks;
    object["reduced_bytes"] = event.reduced_bytes;
    return object;
}

std::string dump(const json& object) {
    return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

int lossless_status(const LossVerdict& verdict, std::string_view required, std::string_view command) {
    if (required.empty() || verdict.lossless == "yes" || (verdict.lossless == "unknown" && required == "known"))
        return 0;
    core::print_stderr("weir {}: --require-lossless: {}\n", command,
                       verdict.evidence.empty() ? "lossless: " + verdict.lossless : verdict.evidence.front());
    return 3;
}

LossVerdict loss_verdict(const store::RunReader& run) {
    const nlohmann::json& ledger = store::at_or_null(run.manifest(), "ledger");
    LossVerdict verdict{store::text_at(ledger, "lossless"), {}};
    if (verdict.lossless.empty() && run.manifest().contains(store::interrupted_key))
        return {"unknown", {"the run was interrupted, so nobody has counted what is missing"}};
    if (verdict.lossless.empty())
        return {"unknown",
                {run.closed() ? "the version of weir that took the run did not say"
                              : "the run was not closed, so nobody has counted what is missing"}};
    const nlohmann::json& evidence = store::at_or_null(ledger, "evidence");
    for (const nlohmann::json& line : evidence.is_array() ? evidence : nlohmann::json::array())
        if (line.is_string()) verdict.evidence.push_back(line.get<std::string>());
    return verdict;
}

json config_of(const store::RunReader& run) {
    const json& config = store::at_or_null(run.manifest(), "config");
    return config.is_object() ? config : store::at_or_null(store::at_or_null(run.start(), "start"), "config");
}

std::string copies_text(std::uint64_t copies) {
    return fmt::format("{} of events that another builder's run has as well {} left out",
                       copies == 1 ? "1 copy" : fmt::format("{} copies", copies), copies == 1 ? "is" : "are");
}

EventName parse_event_name(const std::string& text, std::string_view command) {
    EventName name;
    const std::size_t colon = text.find(':');
    if (colon != std::string::npos) name.epoch = parse_number<std::uint32_t>(text.substr(0, colon), text, command);
    name.id = parse_number<std::uint64_t>(text.substr(colon == std::string::npos ? 0 : colon + 1), text, command);
    return name;
}

EventInfo find_event(const store::RunReader& run, const EventName& name) {
    const std::optional<EventInfo> event = run.find(name.epoch, name.id);
    const std::string epoch = name.epoch ? fmt::format("{}:", *name.epoch) : "";
    if (!event) throw core::RunError(fmt::format("{} has no event {}{}", run.path().string(), epoch, name.id));
    return *event;
}

Progress::Progress(std::string what, std::uint64_t total, bool quiet)
    : what_(std::move(what)),
      total_(total),
      on_(!quiet && ::isatty(STDERR_FILENO) == 1),
      next_ns_(core::clock_ns(CLOCK_MONOTONIC) + core::ns_per_s) {}

Progress::~Progress() {
    clear();
}

void Progress::at(std::uint64_t done) {
    if (!on_) return;
    const core::TimeNs now = core::clock_ns(CLOCK_MONOTONIC);
    if (now < next_ns_) return;
    next_ns_ = now + core::ns_per_s / 4;
    shown_ = true;
    const double percent = total_ == 0 ? 100.0 : 100.0 * static_cast<double>(done) / static_cast<double>(total_);
    core::print_stderr("\r{} {:.0f}% ", what_, percent);
}

void Progress::clear() {
    if (shown_) core::say_text("\r\033[K");
    shown_ = false;
}

}  // namespace weir::app

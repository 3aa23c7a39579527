#include "watch_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"

namespace weir::app {

namespace {

using nlohmann::json;

const json& part_of(const json& document, const char* pointer) {
    static const json nothing;
    const json::json_pointer where(pointer);
    return document.contains(where) ? document.at(where) : nothing;
}

std::string json_words(const json& value) {
    if (value.is_null()) return {};
    return core::printable(value.is_string() ? value.get<std::string>()
                                             : value.dump(-1, ' ', false, json::error_handler_t::replace));
}

double json_number(const json& value) {
    return value.is_number() ? value.get<double>() : 0;
}

std::string elapsed_text(double seconds) {
    constexpr double longest = 1e15;
    const auto whole = static_cast<std::uint64_t>(std::clamp(seconds, 0.0, longest));
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
    return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

std::string state_line(const json& document) {
    std::string out =
        fmt::format("{} on {}: {}", json_words(part_of(document, "/name")), json_words(part_of(document, "/host")),
                    json_words(part_of(document, "/status/state")));
    const json& run = part_of(document, "/run");
    if (run.is_object()) {
        out += fmt::format(", run {} for {}", json_words(part_of(run, "/number")),
                           elapsed_text(json_number(part_of(run, "/seconds"))));
        if (const json& paths = part_of(run, "/paths"); paths.is_array())
            for (const json& path : paths) out += ", " + json_words(path);
    }
    return out + "\n";
}

std::string rates_line(const json& document) {
    const json& rates = part_of(document, "/rates");
    if (!rates.is_object()) return {};
    return fmt::format("  {:.3f} Gbit/s, {:.0f} packets/s, {:.0f} events/s\n", json_number(part_of(rates, "/gbps")),
                       json_number(part_of(rates, "/packets_per_s")), json_number(part_of(rates, "/events_per_s")));
}

/// "  lost: late 12 (0.5/s), ..."
std::string losses_line(const json& document) {
    const json& losses = part_of(document, "/losses");
    if (!losses.is_array()) return {};
    std::string out;
    for (const json& loss : losses)
        out += fmt::format("{}{} {} ({:.1f}/s)", out.empty() ? "" : ", ", json_words(part_of(loss, "/cause")),
                           json_words(part_of(loss, "/packets")), json_number(part_of(loss, "/per_s")));
    return fmt::format("  packets lost: {}\n", out.empty() ? "none" : out);
}

std::string places_lines(const json& document) {
    const json& places = part_of(document, "/where");
    std::string out;
    if (!places.is_array()) return out;
    for (const json& place : places) {
        const json& packets = part_of(place, "/packets");
        out +=
            fmt::format("    {}: {} ({})\n", json_words(part_of(place, "/title")),
                        packets.is_null() ? "unknown" : json_words(packets), json_words(part_of(place, "/evidence")));
    }
    return out;
}

std::string findings_lines(const json& document) {
    std::string out;
    if (const std::string sentence = json_words(part_of(document, "/bottleneck/sentence")); !sentence.empty())
        out += "  " + sentence + "\n";
    if (const json& findings = part_of(document, "/findings"); findings.is_array())
        for (const json& finding : findings)
            out += fmt::format("  {}: {}\n", json_words(part_of(finding, "/severity")),
                               json_words(part_of(finding, "/text")));
    return out;
}

std::string last_command_line(const json& document) {
    const json& last = part_of(document, "/command/last");
    if (!last.is_object() || json_words(part_of(last, "/command")).empty()) return {};
    const std::string error = json_words(part_of(last, "/error"));
    const std::string message = json_words(part_of(last, "/message"));
    const bool done = part_of(last, "/done") == true;
    return fmt::format("  last command: {} at {}{}\n", json_words(part_of(last, "/command")),
                       json_words(part_of(last, "/accepted")),
                       !done             ? ", under way"
                       : !error.empty()  ? ": " + error
                       : message.empty() ? ""
                                         : ": " + message);
}

}  // namespace

std::string watch_text(const json& document) {
    std::string out = state_line(document);
    if (const std::string error = json_words(part_of(document, "/status/error")); !error.empty())
        out += fmt::format("  error: {}\n", error);
    if (!part_of(document, "/run").is_null()) out += rates_line(document);
    return out + losses_line(document) + places_lines(document) + findings_lines(document) +
           last_command_line(document);
}

}  // namespace weir::app

#include "watch_text.hpp"

#include <fmt/format.h>

namespace weir::app {

namespace {

using nlohmann::json;

const json& at(const json& document, const char* pointer) {
    static const json nothing;
    const json::json_pointer where(pointer);
    return document.contains(where) ? document.at(where) : nothing;
}

std::string words(const json& value) {
    if (value.is_string()) return value.get<std::string>();
    return value.is_null() ? "" : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

double number(const json& value) {
    return value.is_number() ? value.get<double>() : 0;
}

std::string duration_text(double seconds) {
    const auto whole = static_cast<std::uint64_t>(seconds < 0 ? 0 : seconds);
    if (whole < 60) return fmt::format("{} s", whole);
    if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
    return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

std::string state_line(const json& document) {
    std::string out = fmt::format("{} on {}: {}", words(at(document, "/name")), words(at(document, "/host")),
                                  words(at(document, "/status/state")));
    const json& run = at(document, "/run");
    if (run.is_object()) {
        out += fmt::format(", run {} for {}", words(at(run, "/number")), duration_text(number(at(run, "/seconds"))));
        if (const json& paths = at(run, "/paths"); paths.is_array())
            for (const json& path : paths) out += ", " + words(path);
    }
    return out + "\n";
}

std::string rates_line(const json& document) {
    const json& rates = at(document, "/rates");
    if (!rates.is_object()) return {};
    return fmt::format("  {:.3f} Gbit/s, {:.0f} packets/s, {:.0f} events/s\n", number(at(rates, "/gbps")),
                       number(at(rates, "/packets_per_s")), number(at(rates, "/events_per_s")));
}

/// "  lost: late 12 (0.5/s), ..."
std::string losses_line(const json& document) {
    const json& losses = at(document, "/losses");
    if (!losses.is_array()) return {};
    std::string out;
    for (const json& loss : losses)
        out += fmt::format("{}{} {} ({:.1f}/s)", out.empty() ? "" : ", ", words(at(loss, "/cause")),
                           words(at(loss, "/packets")), number(at(loss, "/per_s")));
    return fmt::format("  packets lost: {}\n", out.empty() ? "none" : out);
}

std::string places_lines(const json& document) {
    const json& places = at(document, "/where");
    std::string out;
    if (!places.is_array()) return out;
    for (const json& place : places) {
        const json& packets = at(place, "/packets");
        out += fmt::format("    {}: {} ({})\n", words(at(place, "/title")),
                           packets.is_null() ? "unknown" : words(packets), words(at(place, "/evidence")));
    }
    return out;
}

std::string findings_lines(const json& document) {
    std::string out;
    if (const std::string sentence = words(at(document, "/bottleneck/sentence")); !sentence.empty())
        out += "  " + sentence + "\n";
    if (const json& findings = at(document, "/findings"); findings.is_array())
        for (const json& finding : findings)
            out += fmt::format("  {}: {}\n", words(at(finding, "/severity")), words(at(finding, "/text")));
    return out;
}

std::string command_line(const json& document) {
    const json& last = at(document, "/command/last");
    if (!last.is_object() || words(at(last, "/command")).empty()) return {};
    const std::string error = words(at(last, "/error"));
    const std::string message = words(at(last, "/message"));
    const bool done = at(last, "/done") == true;
    return fmt::format("  last command: {} at {}{}\n", words(at(last, "/command")), words(at(last, "/accepted")),
                       !done             ? ", under way"
                       : !error.empty()  ? ": " + error
                       : message.empty() ? ""
                                         : ": " + message);
}

}  // namespace

std::string watch_text(const json& document) {
    std::string out = state_line(document);
    if (const std::string error = words(at(document, "/status/error")); !error.empty())
        out += fmt::format("  error: {}\n", error);
    if (!at(document, "/run").is_null()) out += rates_line(document);
    return out + losses_line(document) + places_lines(document) + findings_lines(document) + command_line(document);
}

}  // namespace weir::app

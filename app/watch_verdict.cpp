#include "watch_verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "core/printable.hpp"
#include "watch_numbers.hpp"

namespace weir::app {

namespace {

using Level = WatchVerdict::Level;
using Json = nlohmann::json;

std::string counted_words(const Json& value, const char* noun) {
    return fmt::format("{} {}{}", watch_count(value), noun, value == 1 ? "" : "s");
}

double packets_at(const Json& document, const char* wanted) {
    for (const Json& place : watch_value(document, "/where"))
        if (watch_words(place, "/place") == wanted) return watch_number(place, "/packets");
    return 0;
}

/// "late, in weir"
std::string loss_words(const Json& document, const Json& loss) {
    const std::string cause = watch_words(loss, "/cause");
    std::string place = watch_words(loss, "/place");
    // A device is the card, or the kernel in front of it.
    if (place == "device") place = packets_at(document, "kernel") > packets_at(document, "nic") ? "kernel" : "nic";
    const char* const words = place == "way"      ? "on the way"
                              : place == "nic"    ? "in the NIC"
                              : place == "kernel" ? "in the kernel"
                                                  : "in weir";
    return fmt::format("{}, {}", watch_cause(cause), words);
}

/// Losses of which `key` is not zero, the largest first.
std::vector<Json> losses_by(const Json& document, const char* key) {
    std::vector<Json> found;
    for (const Json& loss : watch_value(document, "/losses"))
        if (watch_number(loss, key) > 0) found.push_back(loss);
    std::ranges::stable_sort(found, std::greater{}, [&](const Json& loss) { return watch_number(loss, key); });
    return found;
}

/// An error of a sink, or events that one lost: what, and why.
std::pair<std::string, std::string> sink_trouble(const Json& document) {
    const Json& sinks = watch_value(document, "/pipeline/sinks");
    const auto words = [](const Json& sink) {
        const std::string lost = watch_number(sink, "/lost") > 0
                                     ? counted_words(watch_value(sink, "/lost"), "event") + " not written"
                                     : "not written";
        return std::pair(fmt::format("{}, in the sink {}", lost, watch_words(sink, "/kind")),
                         watch_words(sink, "/error"));
    };
    for (const Json& sink : sinks)
        if (!watch_words(sink, "/error").empty()) return words(sink);
    for (const Json& sink : sinks)
        if (watch_number(sink, "/lost") > 0) return words(sink);
    return {};
}

/// Of a node of a cluster that has no run of its own.
WatchVerdict managing(const Json& cluster) {
    std::string detail = counted_words(watch_value(cluster, "/manager/assigned"), "block") + " given out";
    if (watch_number(cluster, "/manager/assigned_again") > 0)
        detail += fmt::format(", {} of them again", watch_count(watch_value(cluster, "/manager/assigned_again")));
    detail += '.';
    std::uint64_t lost = 0;
    for (const char* cause : {"builder_down", "nothing_held", "node_down", "late"})
        lost += static_cast<std::uint64_t>(watch_number(cluster, ("/lost_blocks/" + std::string(cause)).c_str()));
    if (lost > 0) return {Level::lost, counted_words(lost, "block") + " lost whole", detail};
    std::string away;
    for (const Json& node : watch_value(cluster, "/nodes"))
        if (watch_value(node, "/up") != true && watch_value(node, "/spare") != true)
            away += (away.empty() ? "" : ", ") + watch_words(node, "/name");
    if (!away.empty()) return {Level::unknown, "Not here: " + away, detail};
    return {Level::idle,
            watch_value(cluster, "/manager/manages") == true ? "No node is missing, and this one manages"
                                                             : "No node is missing, and another one manages",
            detail};
}

/// What a run that is over has lost, in weir and before.
std::string lost_before_words(const Json& run) {
    const std::string lossless = watch_words(run, "/lossless");
    if (lossless == "yes") return "no packet lost";
    if (lossless != "no") return "whether packets were lost is not known";
    if (watch_number(run, "/lost_packets") > 0 || watch_number(run, "/missing_packets") > 0)
        return fmt::format("{} lost in weir, {} missing", counted_words(watch_value(run, "/lost_packets"), "packet"),
                           watch_count(watch_value(run, "/missing_packets")));
    return "data was lost";
}

WatchVerdict without_run(const Json& document) {
    if (const std::string error = watch_words(document, "/status/error"); !error.empty())
        return {Level::lost, "No run: " + error, "The last command failed. Nothing is being received."};
    if (const Json& cluster = watch_value(document, "/cluster"); !cluster.is_null()) return managing(cluster);
    const Json& last = watch_value(document, "/runs/0");
    if (last.is_null()) return {Level::idle, "No run", "Nothing is being received."};
    const std::string by = watch_words(last, "/stop_reason");
    return {Level::idle, "No run",
            fmt::format("Run {} before: {}{}; {}.", watch_words(last, "/number"),
                        counted_words(watch_value(last, "/events"), "event"), by.empty() ? "" : ", ended by " + by,
                        lost_before_words(last))};
}

WatchVerdict losing_now(const Json& document, const std::vector<Json>& losses,
                        const std::pair<std::string, std::string>& trouble) {
    if (losses.empty()) return {Level::losing, "Losing data: " + trouble.first, trouble.second};
    const auto words = [&](const Json& loss) {
        return fmt::format("{} {}", watch_rate(watch_value(loss, "/per_s"), "packets/s"), loss_words(document, loss));
    };
    std::string others;
    for (std::size_t i = 1; i < losses.size(); ++i) others += (others.empty() ? "" : "; ") + words(losses[i]);
    if (!trouble.first.empty()) {
        others += (others.empty() ? "" : "; ") + trouble.first;
        if (!trouble.second.empty()) others += ": " + trouble.second;
    }
    return {Level::losing, "Losing data: " + words(losses[0]),
            others.empty() ? watch_count(watch_value(losses[0], "/packets")) + " of them in this run."
                           : fmt::format("Also {}.", others)};
}

WatchVerdict lost_before(const Json& document, const std::vector<Json>& losses) {
    const auto words = [&](const Json& loss) {
        return fmt::format("{} {}", counted_words(watch_value(loss, "/packets"), "packet"), loss_words(document, loss));
    };
    std::string others;
    for (std::size_t i = 1; i < losses.size(); ++i)
        others += (others.empty() ? " Also lost: " : "; ") + words(losses[i]);
    return {Level::lost, "Lost in this run: " + words(losses[0]),
            fmt::format("Nothing is being lost now.{}{}", others, others.empty() ? "" : ".")};
}

/// No loss is known: is that known of all places?
WatchVerdict no_loss_seen(const Json& document) {
    const Json& places = watch_value(document, "/where");
    for (const Json& place : places)
        if (watch_number(place, "/packets") > 0 && watch_number(document, "/rates/lost_per_s") > 0)
            return {
                Level::losing,  // of events that were thrown away no packet counter tells
                fmt::format("Losing data: {}, {}", watch_rate(watch_value(document, "/rates/lost_per_s"), "packets/s"),
                            watch_words(place, "/title")),
                watch_words(place, "/evidence")};
        else if (watch_number(place, "/packets") > 0)
            return {Level::lost,
                    fmt::format("Lost in this run: {} {}", counted_words(watch_value(place, "/packets"), "packet"),
                                watch_words(place, "/title")),
                    watch_words(place, "/evidence")};
    if (watch_words(document, "/status/state") == "running" && watch_number(document, "/ledger/packets/received") == 0)
        return {Level::unknown, "Nothing has come yet",
                fmt::format("The run has lasted {}, and no packet came.",
                            watch_duration(watch_value(document, "/run/seconds")))};
    std::string unknown;
    std::string why;
    for (const Json& place : places) {
        if (watch_value(place, "/packets").is_number()) continue;
        unknown += (unknown.empty() ? "" : " and ") + watch_words(place, "/title");
        why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", watch_words(place, "/title"),
                           watch_words(place, "/evidence"));
    }
    if (places.empty()) unknown = "everywhere";
    if (!unknown.empty()) return {Level::unknown, "No loss seen; unknown " + unknown, why};
    return {
        Level::ok, "Nothing lost",
        counted_words(watch_value(document, "/ledger/packets/received"), "packet") + " received, all accounted for."};
}

}  // namespace

const Json& watch_value(const Json& document, const char* pointer) {
    static const Json nothing;
    const Json::json_pointer where(pointer);
    return document.contains(where) ? document.at(where) : nothing;
}

std::string watch_words(const Json& document, const char* pointer) {
    const Json& value = watch_value(document, pointer);
    if (value.is_null()) return {};
    return core::printable(value.is_string() ? value.get<std::string>()
                                             : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

double watch_number(const Json& document, const char* pointer) {
    const Json& value = watch_value(document, pointer);
    return value.is_number() ? value.get<double>() : 0;
}

std::string watch_cause(std::string_view cause) {
    if (cause == "device") return "dropped by the device";
    std::string words;
    for (const char c : cause) {
        if (c == '.')
            words += ": ";
        else
            words += c == '_' ? ' ' : c;
    }
    return words;
}

WatchVerdict watch_verdict(const Json& document) {
    if (watch_value(document, "/run").is_null() || watch_words(document, "/cluster/role") == "manager")
        return without_run(document);
    const auto trouble = sink_trouble(document);
    const std::vector<Json> now = losses_by(document, "/per_s");
    if (!now.empty() || !trouble.first.empty()) return losing_now(document, now, trouble);
    const std::vector<Json> before = losses_by(document, "/packets");
    return before.empty() ? no_loss_seen(document) : lost_before(document, before);
}

}  // namespace weir::app

#include "observe/ledger_json.hpp"

#include <nlohmann/json.hpp>

#include "observe/rates.hpp"

namespace weir::observe {

using assemble::EventCounter;
using wire::PacketCounter;

namespace {

nlohmann::json queue_pairs_json(const Ledger& ledger) {
    nlohmann::json answers = nlohmann::json::object();
    for (std::size_t i = 0; i < ledger.answers.size(); ++i)
        answers[std::string(roce::answer_counters[i].name)] = ledger.answers[i];
    nlohmann::json queue_pairs = nlohmann::json::array();
    for (const Ledger::QueuePair& qp : ledger.queue_pairs)
        queue_pairs.push_back(
            {{"source", qp.source}, {"qp", qp.qp}, {"state", qp.state}, {"psn", qp.psn}, {"msn", qp.msn}});
    return {{"answers", answers}, {"queue_pairs", queue_pairs}, {"psns", psns_json(ledger.psns)}};
}

nlohmann::json decapsulated_json(const Ledger& ledger) {
    nlohmann::json ports = nlohmann::json::array();
    for (const Ledger::Decapsulated& one : ledger.decapsulated) {
        nlohmann::json& port = ports.emplace_back(nlohmann::json{{"port", one.port}});
        for (std::size_t i = 0; i < wire::tunnel_count; ++i)
            if (one.tunnels.has(wire::tunnel_at(i))) port[std::string(wire::tunnel_counters[i].name)] = one.taken[i];
    }
    return ports;
}

nlohmann::json sinks_json(const Ledger& ledger) {
    nlohmann::json sinks = nlohmann::json::array();
    for (const Ledger::Sink& sink : ledger.sinks) {
        sinks.push_back({{"kind", sink.kind},
                         {"written", sink.written},
                         {"lost", sink.lost},
                         {"synced", sink.synced},
                         {"bytes", sink.bytes}});
        for (const auto& [cause, events] : sink.dropped) sinks.back()["dropped"][std::string(cause)] = events;
        if (sink.interrupted > 0) sinks.back()["interrupted"] = sink.interrupted;
        if (!sink.error.empty()) sinks.back()["error"] = sink.error;
        if (sink.disk.free_bytes) sinks.back()["free_bytes"] = *sink.disk.free_bytes;
    }
    return sinks;
}

}  // namespace

nlohmann::json account_json(const Ledger& ledger) {
    using nlohmann::json;
    const auto known = [](const std::optional<std::uint64_t>& value) {
        return value.has_value() ? json(*value) : json("unknown");
    };
    json packets = {{"received", ledger.received}, {"not_for_us", json::object()}, {"dropped", json::object()}};
    json events = {{"incomplete", json::object()}, {"dropped", json::object()}};
    json messages = {{"refused", json::object()}};
    // A dotted name goes into the object that its first part names; the rest of it is one flat key.
    const auto put = [](json& into, std::string_view name, std::uint64_t value) {
        const std::size_t dot = name.find('.');
        if (dot == std::string_view::npos)
            into[std::string(name)] = value;
        else
            into[std::string(name.substr(0, dot))][std::string(name.substr(dot + 1))] = value;
    };
    for (std::size_t i = 0; i < ledger.packets.size(); ++i)
        put(packets, ledger.packet_infos[i].name, ledger.packets[i]);
    for (std::size_t i = 0; i < ledger.events.size(); ++i) put(events, ledger.event_infos[i].name, ledger.events[i]);
    for (std::size_t i = 0; i < ledger.messages.size(); ++i)
        put(messages, ledger.message_infos[i].name, ledger.messages[i]);
    json result = {
        {"packets", packets},
        {"bytes",
         {{"received", ledger.received_bytes}, {"placed", ledger.placed_bytes}, {"stored", ledger.stored_bytes}}},
        {"messages", messages},
        {"events", events},
        {"balanced", ledger.imbalance().empty()},
        {"device_missed", ledger.device_missed},
        {"unmatched", unmatched_json(ledger.unmatched, ledger.get(PacketCounter::unsteered))}};
    for (const Ledger::Device& device : ledger.devices) {
        json one{{"port", device.port},
                 {"driver", device.driver},
                 {"received", device.received},
                 {"missed", known(device.missed)},
                 {"no_buffer", known(device.no_buffer)}};
        if (device.missed_by_interface > 0) one["missed_by_interface"] = device.missed_by_interface;
        result["devices"].push_back(std::move(one));
    }
    if (ledger.capture)
        result["capture"] = {{"skipped", ledger.capture->skipped},
                             {"other_link", ledger.capture->other_link},
                             {"unread", ledger.capture->unread}};
    if (!ledger.psns.empty()) result["roce"] = queue_pairs_json(ledger);
    result["ip_fragments"] = {{"fragments", ledger.ip_fragments.fragments},
                              {"datagrams", ledger.ip_fragments.datagrams},
                              {"reused_identification", ledger.ip_fragments.reused_identification},
                              {"reusing_source", ledger.ip_fragments.reusing_source}};
    if (!ledger.decapsulated.empty()) result["decapsulated"] = decapsulated_json(ledger);
    result["overload"] = {{"policy", ledger.overload.policy},
                          {"input_waits", ledger.overload.input_waits},
                          {"times", ledger.overload.times},
                          {"kept", ledger.overload.kept},
                          {"refused", ledger.get(EventCounter::refused_prescaled)}};
    if (!ledger.reducers.empty()) result["reduce"] = reduce_json(ledger.reducers);
    if (!ledger.sinks.empty()) result["sinks"] = sinks_json(ledger);
    if (ledger.numbers) result["numbers_missing"] = numbers_json(*ledger.numbers);
    if (!ledger.numbers_unknown_because.empty()) result["numbers_unknown_because"] = ledger.numbers_unknown_because;
    const auto loss = ledger.wire_loss();
    result["wire_loss"] = loss.has_value() ? json(*loss) : json("unknown");
    return result;
}

nlohmann::json senders_json(const Ledger::Source& source) {
    nlohmann::json senders = nlohmann::json::array();
    for (const Ledger::Sender& sender : source.senders)
        senders.push_back({{"address", sender.address}, {"packets", sender.packets}});
    return senders;
}

nlohmann::json ledger_json(const Ledger& ledger) {
    nlohmann::json result = account_json(ledger);
    nlohmann::json& sources = result["sources"] = nlohmann::json::array();
    for (std::size_t i = 0; i < ledger.sources.size(); ++i) {
        sources.push_back({{"id", i},
                           {"packets", ledger.sources[i].packets},
                           {"missing_packets", ledger.sources[i].missing_packets},
                           {"refused", ledger.sources[i].refused}});
        if (!ledger.sources[i].senders.empty()) sources.back()["senders"] = senders_json(ledger.sources[i]);
        if (ledger.sources[i].missing_guessed > 0)
            sources.back()["missing_guessed"] = ledger.sources[i].missing_guessed;
        if (ledger.numbers) sources.back()["numbers_missing"] = source_numbers_json(*ledger.numbers, i);
    }
    return result;
}

nlohmann::json rates_json(const Ledger& ledger, double seconds, double active_seconds) {
    const auto json_of = [](const Rates& rates) {
        return nlohmann::json{{"seconds", rates.seconds},
                              {"packets_per_s", rates.packets_per_s},
                              {"gbps", rates.gbps},
                              {"events_per_s", rates.events_per_s},
                              {"sink_bytes_per_s", rates.sink_mb_per_s * 1e6}};
    };
    return {{"active", json_of(rates_over(ledger, active_seconds > 0 ? active_seconds : seconds))},
            {"run", json_of(rates_over(ledger, seconds))}};
}

}  // namespace weir::observe

// Sends one load as weir bench does, with its sender `sendmmsg` and its schedule, to a receiver that is not weir's, for
// scripts/bench neighbours: paced_sender ADDRESS PORT INTERFACE BYTES GBPS SECONDS. Prints one line of JSON: what
// became of the load on this side, and `why` the trial says nothing about the receiver, by the same rules; empty if it
// does.
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/sender.hpp"
#include "bench/transports.hpp"
#include "bench/trial_counts.hpp"

namespace {

using namespace weir::bench;

nlohmann::json send(char** words) {
    const Endpoint to{words[0], static_cast<std::uint16_t>(std::stoul(words[1]))};
    const std::string interface = words[2];
    PacketPlan plan;
    plan.trial = 1;
    plan.bytes = static_cast<std::uint32_t>(std::stoul(words[3]));
    check(plan);
    const Load load{
        .packets_per_s = std::stod(words[4]) * 1e9 / 8 / plan.bytes, .seconds = std::stod(words[5]), .burst = 1};
    const std::atomic<bool> never{false};
    const auto sender = sender_named("sendmmsg").open({.to = to});
    const SenderCounts counts = send_load(*sender, plan, load, interface, {never, never});
    // What the receiver got is not known here, and not this side's fault.
    ReceiverCounts all;
    all.taken = all.received = counts.handed_over;
    return {{"intended", counts.intended}, {"sent", counts.handed_over}, {"planned_s", counts.planned_s},
            {"took_s", counts.took_s},     {"cpu_s", counts.cpu_s},      {"why", judge(counts, all).why}};
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 7) {
        fmt::print(stderr, "usage: paced_sender ADDRESS PORT INTERFACE BYTES GBPS SECONDS\n");
        return 2;
    }
    try {
        fmt::print("{}\n", send(argv + 1).dump());
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "paced_sender: {}\n", error.what());
        return 1;
    }
}

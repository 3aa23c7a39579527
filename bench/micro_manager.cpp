// What a block costs the node that manages: its core alone, without a network, with as many readout nodes and builders
// as the name says. Of many readout nodes one tells of a block (Settings::tellers); beside that, what it would be if
// all did.
#include <benchmark/benchmark.h>

#include <set>
#include <string>
#include <vector>

#include "cluster/manager.hpp"

namespace weir::bench {
namespace {

using cluster::Block;
using cluster::Kind;
using cluster::Message;
using cluster::NodeId;

/// The other nodes: they answer what the manager says when they are asked for.
class Others final : public cluster::MessageSender {
public:
    void to(NodeId node, Message message, cluster::Payload /*payload*/) override {
        ++sent;
        if (message.kind == Kind::assign) builder = node;
        if (message.kind == Kind::record) witness = node;
    }
    using MessageSender::to;
    void to_manager(Message /*message*/) override {}

    std::uint64_t sent = 0;
    NodeId builder = 0;
    NodeId witness = 0;
};

/// Builders, the first of which manages, then as many readout nodes; all are there.
struct Cluster {
    explicit Cluster(NodeId each) : peers(static_cast<std::uint16_t>(2 * each)) {
        settings.nodes = static_cast<std::uint16_t>(2 * each);
        for (NodeId node = 0; node < settings.nodes; ++node) {
            (node < each ? settings.builders : settings.readouts).insert(node);
            if (node < each) settings.managers.insert(node);
            peers.set_up(node, 1);
        }
    }
    cluster::Settings settings;
    cluster::Peers peers;
};

void manage(benchmark::State& state, NodeId each, bool all_tell) {
    const Cluster nodes(each);
    Others others;
    cluster::Manager manager(nodes.settings, 0, nodes.peers, others, 0, {});
    core::TimeNs now = 1;
    manager.begin(now);
    for (NodeId node = 0; node < nodes.settings.nodes; ++node) {
        cluster::Report report;
        if (node < each) report.credits = nodes.settings.credits;
        static_cast<void>(manager.report(node, report, now));
    }
    for (NodeId node = each; node < 2 * each; ++node)
        manager.take(node, {.kind = Kind::ready, .block = 1}, now);  // the run begins when all have something
    std::uint64_t heard = 0;
    const auto say = [&](NodeId from, Message message) {
        ++heard;
        manager.take(from, message, now);
    };
    const auto finish = [&](Block block) {
        const NodeId builder = others.builder;
        say(builder, {.kind = Kind::finished, .block = block});
        say(others.witness, {.kind = Kind::recorded, .node = builder, .life = 1, .block = block});
        say(builder, {.kind = Kind::done, .block = block});
    };
    finish(0);
    Block block = 1;
    for (auto _ : state) {
        now += 50'000;
        const auto teller = static_cast<NodeId>(each + block % each);
        say(teller, {.kind = Kind::ready, .block = block + 1, .first = block});
        for (NodeId node = each; all_tell && node < 2 * each; ++node)
            if (node != teller) say(node, {.kind = Kind::ready, .block = block + 1, .first = block});
        finish(block++);
    }
    if (manager.stats().committed != block) state.SkipWithError("not all blocks were committed");
    state.SetItemsProcessed(state.iterations());
    state.counters["heard"] = benchmark::Counter(static_cast<double>(heard), benchmark::Counter::kAvgIterations);
    state.counters["sent"] = benchmark::Counter(static_cast<double>(others.sent), benchmark::Counter::kAvgIterations);
}

const bool registered = [] {
    for (const NodeId each : {4, 16, 64, 128, 512})
        for (const bool all_tell : {false, true})
            benchmark::RegisterBenchmark(
                ("manager/" + std::string(all_tell ? "all_tell/" : "one_tells/") + std::to_string(each)).c_str(),
                manage, each, all_tell);
    return true;
}();

}  // namespace
}  // namespace weir::bench

#include "observe/sink_account.hpp"

#include <algorithm>

#include "stages/sink_thread.hpp"

namespace weir::observe {

namespace {

bool counts(const config::SinkConfig& config, const stages::SinkThread& thread) {
    return (config.on_error == config::SinkError::stop || !thread.failed()) && !thread.sink().may_leave_out();
}

}  // namespace

std::vector<const config::SinkConfig*> event_sinks(const config::RunConfig& config) {
    std::vector<const config::SinkConfig*> found;
    for (const config::SinkConfig& sink : config.sinks)
        if (sink.stores_events()) found.push_back(&sink);
    return found;
}

SinkAccount account_sinks(const config::RunConfig& config,
                          const std::vector<std::unique_ptr<stages::SinkThread>>& threads) {
    const std::vector<const config::SinkConfig*> sinks = event_sinks(config);
    bool any = false;
    for (std::size_t i = 0; i < threads.size(); ++i) any |= counts(*sinks[i], *threads[i]);
    SinkAccount account;
    bool first = true;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        if (any && !counts(*sinks[i], *threads[i])) continue;
        const stages::SinkThread& thread = *threads[i];
        account.written = first ? thread.written() : std::min(account.written, thread.written());
        account.synced = first ? thread.synced() : std::min(account.synced, thread.synced());
        // In the end what is not in all of them is what is not in the one that has the fewest.
        if (thread.lost() + thread.dropped() >= account.lost + account.dropped) {
            account.lost = thread.lost();
            account.dropped = thread.dropped();
        }
        account.interrupted += thread.interrupted();
        first = false;
    }
    return account;
}

}  // namespace weir::observe

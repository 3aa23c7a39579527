#include "run/stop_condition.hpp"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

#include "observe/ledger_collect.hpp"
#include "run/run_signals.hpp"

namespace weir::run {

std::optional<std::string> StopCondition::ask(const pipeline::Pipeline& pipeline, bool sink_failed, double seconds) {
    if (const int number = stop_signal(); number != 0) return fmt::format("SIG{}", ::sigabbrev_np(number));
    if (sink_failed) return "the sink failed";
    if (options_.capture.has_value()) return std::nullopt;  // ends with its files
    if (options_.duration_s.has_value() && seconds >= *options_.duration_s) return std::string(options_.duration_name);
    if (pipeline.input_exhausted()) return "the simulated detector has sent everything";
    if (!options_.events.has_value() && !options_.idle_exit_s.has_value()) return std::nullopt;
    const observe::Ledger ledger = observe::collect(pipeline);
    if (options_.events.has_value() &&
        ledger.get(assemble::EventCounter::complete) + ledger.incomplete() >= *options_.events)
        return std::string(options_.events_name);
    if (!options_.idle_exit_s.has_value()) return std::nullopt;
    if (const std::uint64_t packets = ledger.stream_packets(); packets != idle_packets_) {
        idle_packets_ = packets;
        idle_since_s_ = seconds;
    }
    if (seconds - idle_since_s_ >= *options_.idle_exit_s) return "--idle-exit";
    return std::nullopt;
}

}  // namespace weir::run

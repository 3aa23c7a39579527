#include "observe/run_sampler.hpp"

#include <utility>

#include "observe/ledger_collect.hpp"
#include "observe/run_observer.hpp"
#include "observe/seen.hpp"
#include "observe/watch.hpp"
#include "pipeline/pipeline.hpp"

namespace weir::observe {

std::optional<record::Recorder::Status> recorder_of(const pipeline::Pipeline& pipeline) {
    const record::Recorder* const recorder = pipeline.options().recorder;
    return recorder == nullptr ? std::nullopt : std::optional(recorder->status());
}

RunSample RunSampler::take(const RunMoment& moment, Ledger ledger) {
    const auto& [pipeline, watch, seconds] = moment;
    RunSample sample;
    const double step = seconds - last_s_;
    const std::uint64_t events = ledger.get(assemble::EventCounter::complete) + ledger.incomplete();
    const auto per_second = [&](std::uint64_t now, std::uint64_t& last) {
        const double rate = step > 0 ? static_cast<double>(now - last) / step : 0;
        last = now;
        return rate;
    };
    sample.seconds = seconds;
    sample.packets_per_s = per_second(ledger.received, last_packets_);
    sample.gbps = 8e-9 * per_second(ledger.received_bytes, last_bytes_);
    sample.events_per_s = per_second(events, last_events_);
    sample.sink_bytes_per_s = per_second(ledger.stored_bytes, last_stored_);
    sample.levels = pipeline.levels();
    if (pipeline.is_live() && ledger.stream_packets() == 0)
        sample.nothing = seen_words(ledger, watch.observations(pipeline, ledger, seconds));
    const pipeline::Usage usage = usage_of(pipeline, ledger, seconds);
    sample.usage = usage;
    sample.recorder = recorder_of(pipeline);
    sample.usage -= last_usage_;
    last_usage_ = usage;
    sample.ledger = std::move(ledger);
    last_s_ = seconds;
    return sample;
}

}  // namespace weir::observe

#include "pipeline/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/allocation_context.hpp"
#include "core/clock_ns.hpp"
#include "core/resident_memory.hpp"
#include "port/host_topology.hpp"

namespace weir::pipeline {

namespace {

std::uint64_t refused(const wire::PacketTally& packets) {
    using enum wire::PacketCounter;
    return packets.get(no_room) + packets.get(queue_full) + packets.get(prescaled);
}

/// One message could have every reference there is; the list takes no memory before it is used.
std::uint32_t refs_max_of(const plan::Plan& plan) noexcept {
    return assemble::FragmentBlock::capacity *
           (plan.buffers_per_rx / 16 + plan.messages_per_rx + plan.copies.cells + 1);
}

/// A message waits for its packets, then its event for the other messages; and nobody looks all the time.
core::TimeNs numbers_wait_ns(const config::RunConfig& config) {
    return (2 * core::TimeNs{config.events.timeout_ms} + 500) * core::ns_per_ms;
}

/// As many as it has credits for; when the cluster has taken it for dead, those of the life before are still here.
std::uint32_t blocks_of(const fabric::ClusterThread& member) noexcept {
    return 4 * member.config().settings.credits;
}

bool any_answers(const config::RunConfig& config) {
    return std::ranges::any_of(config.streams, [](const config::StreamConfig& stream) {
        return stream.roce.service != roce::Service::listen;
    });
}

}  // namespace

// A replay waits for its page faults, and a small one does not need most of the memory. A beam does not wait.
Pipeline::Pipeline(Options options)
    : options_(std::move(options)),
      owners_(make_owners(options_.config, options_.plan.placement)),
      own_ports_(options_.ports == nullptr
                     ? std::make_unique<RunPorts>(options_.config, options_.plan, options_.make_built_in)
                     : nullptr),
      ports_(own_ports_ != nullptr ? *own_ports_ : *options_.ports),
      rings_(options_.plan, options_.capture.has_value(), options_.sinks.size()),
      blocks_(is_builder() ? std::make_unique<fabric::BlockQueue>(blocks_of(*options_.builder)) : nullptr),
      fence_(is_builder() ? std::make_unique<stages::OutputFence>(options_.plan.work.size()) : nullptr),
      outputs_(options_.plan, options_.sinks, options_.latest_event, rings_, fence_.get()),
      clock_(is_live() ? std::make_unique<port::LiveClock>() : nullptr),
      numbers_(options_.plan.build.size(), numbers_wait_ns(options_.config)),
      lcores_(options_.plan.placement.lcores(), options_.config.lcores.idle, signals_, clock_.get()) {
    const plan::Plan& plan = options_.plan;
    for (std::uint32_t port = 0; port < options_.config.ports.size(); ++port)
        steering_.push_back(std::make_unique<steer::Steering>(plan::make_steering(options_.config, port, owners_)));
    for (std::size_t i = 0; i < plan.rx.size(); ++i) rx_signals_.push_back(std::make_unique<stages::RxSignals>());
    if (any_answers(options_.config) && !options_.wait)
        event_room_ = std::make_unique<assemble::EventRoom>(static_cast<std::uint32_t>(plan.build.size()),
                                                            plan.open_max + plan.queued_max);
    const auto make_inputs = [&] {
        inputs_ = std::make_unique<RunInputs>(plan, options_.capture, blocks_.get(), ports_, rings_);
    };
    if (options_.capture.has_value()) make_inputs();  // sends nothing before start(), and workers ask it
    make_work();                                      // its memory is there before the first packet may come
    if (is_builder()) options_.builder->build_into(*blocks_, *fence_);
    if (inputs_ == nullptr) make_inputs();
    flows_ = std::make_unique<RunFlows>(options_.config, owners_, plan.placement, inputs_->ports());
    make_rx(connect_rx());
    if (stages::PassSignals* const passes = inputs_->passes(); passes != nullptr)
        passes->measure = [this, passes] { measure_passes(*passes); };
    make_build();
    make_lcores();
    if (is_live()) unlocked_ = core::lock_memory(plan.memory.sum());
}

Pipeline::~Pipeline() {
    join();
}

/// What each rx lcore gets packets from, and what it passes them and messages on to.
std::vector<stages::RxStage::Config> Pipeline::connect_rx() {
    const std::size_t count = options_.plan.rx.size();
    std::vector<stages::RxStage::Config> configs(count);
    inputs_->connect(configs);
    for (std::size_t i = 0; i < count; ++i) {
        stages::RxStage::Config& config = configs[i];
        for (const auto& steering : steering_) config.steering.push_back(steering.get());
        for (const config::PortConfig& port : options_.config.ports) config.decapsulate.push_back(port.decapsulate);
        config.rules = flows_->runtimes();
        config.steer_in.resize(count);
        config.steer_out.resize(count);
        for (std::size_t other = 0; other < count; ++other) {
            if (other == i) continue;
            config.steer_out[other] = {&rings_.steer(i, other), nullptr};
            config.steer_in[other] = {&rings_.steer(other, i), rx_signals_[other].get()};
        }
        for (std::size_t shard = 0; shard < options_.plan.build.size(); ++shard) {
            config.descriptors.push_back(&rings_.descriptors(i, shard));
            config.commands.push_back(&rings_.commands(i, shard));
        }
        for (std::size_t worker = 0; worker < options_.plan.work.size(); ++worker)
            config.recycle.push_back(&rings_.recycle(worker, i));
    }
    return configs;
}

void Pipeline::make_rx(std::vector<stages::RxStage::Config> configs) {
    const core::AllocationContext allocating("the bookkeeping of messages and sources");
    const plan::Plan& plan = options_.plan;
    const config::RunConfig& config = options_.config;
    for (std::size_t i = 0; i < configs.size(); ++i) {
        stages::RxStage::Config& stage = configs[i];
        stage.index = static_cast<std::uint16_t>(i);
        stage.wait = options_.wait;
        if (auto converter = options_.reduce->make_converter()) {
            stage.converter = converter.get();
            converters_.push_back(std::move(converter));
        }
        stage.passes = inputs_->passes();
        stage.table.follows_numbers = stage.passes != nullptr;
        stage.table.owner = stage.index;
        stage.table.shards = static_cast<std::uint32_t>(plan.build.size());
        stage.table.sources = static_cast<std::uint32_t>(config.sources.size());
        stage.table.messages_max = plan.messages_per_rx;
        stage.table.probation_max = plan.probation_per_source;
        stage.table.waits = options_.wait;
        stage.table.buffers_max = plan.buffers_per_rx;
        stage.table.copies = plan.copies;
        stage.table.range_blocks = plan.range_blocks_per_rx;
        stage.table.horizon = plan.horizon;
        for (const std::uint16_t owner : owners_) stage.table.own.push_back(owner == i ? 1 : 0);
        stage.table.touch = is_live();
        stage.table.message_bytes_max = plan.message_bytes_max;
        stage.table.timeout_ns = config.events.timeout_ms * core::ns_per_ms;
        stage.table.number_bits = number_bits();
        if (!is_builder()) stage.table.in_sequence = plan::make_in_sequence(config, options_.streams);
        stage.reassembly = plan.reassembly;
        stage.header_bytes = plan.header_bytes;
        if (is_live() && configs.size() > 1) stage.pool = ports_.pools().of_rx(i);
        stage.listener.sources = plan::make_roce_sources(config, options_.streams, owners_, stage.index);
        stage.listener.timeout_ns = stage.table.timeout_ns;
        stage.listener.runs_max = plan.roce_runs;
        stage.listener.psn_window = plan.psn_window;
        stage.listener.touch = is_live();
        // In messages that ended since: more than any reordering that the events' own limit allows for.
        stage.listener.window = 4 * plan.open_max;
        if (is_builder())
            build_for_cluster(stage);
        else
            make_answers(i, stage);
        if (options_.recorder != nullptr) {
            stage.record = &options_.recorder->ring(i);
            options_.recorder->connect(i, *rx_signals_[i], options_.wait);
        }
        const port::PreferNode memory(plan.memory_node(plan.rx[i]));
        rx_.push_back(std::make_unique<stages::RxStage>(stage, options_.streams, *rx_signals_[i], signals_));
    }
}

/// Messages come whole or with their gaps, numbered and once; nothing is listened to.
void Pipeline::build_for_cluster(stages::RxStage::Config& stage) const {
    stage.blocks_max = blocks_of(*options_.builder);
    stage.table.numbers_once = true;
    stage.table.keeps = true;
    stage.table.copies.at_once_bytes = stage.table.copies.bytes_max = 0;
    stage.listener.sources.clear();
}

/// Width of the sources' event numbers. A cluster's have been made long by its readout nodes.
std::vector<std::uint8_t> Pipeline::number_bits() const {
    if (is_builder()) return std::vector<std::uint8_t>(options_.config.sources.size(), 64);
    return plan::make_number_bits(options_.config, options_.streams);
}

/// What an rx lcore needs to answer the queue pairs that are its own.
void Pipeline::make_answers(std::size_t index, stages::RxStage::Config& stage) {
    stage.table.event_room = event_room_.get();
    stage.responder.sources = plan::make_responder_sources(options_.config, owners_, stage.index);
    stage.table.keeps = !stage.responder.sources.empty();
    if (options_.capture.has_value())  // nobody connects them: the capture's packets do
        for (auto& source : stage.responder.sources) source.ready = true;
    const RunInputs::Ports& ports = inputs_->ports();
    for (std::uint32_t port = 0; port < ports.size(); ++port) {
        const std::vector<std::uint16_t> lcores = plan::answering_lcores(options_.config, port, owners_);
        const auto at = std::ranges::find(lcores, stage.index);
        stage.answer_ports.push_back(
            at != lcores.end() ? ports[port]->answer_sender(static_cast<std::uint16_t>(at - lcores.begin())) : nullptr);
    }
    if (options_.answers != nullptr) stage.answer_log = &options_.answers->ring(index);
    queue_pairs_.push_back(std::make_unique<roce::QueuePairControl>());
    stage.queue_pairs = queue_pairs_.back().get();
}

roce::QueuePairControl* Pipeline::queue_pair_control(std::uint32_t source) noexcept {
    for (std::size_t i = 0; i < rx_.size(); ++i)
        if (rx_[i]->answers_source(source)) return queue_pairs_[i].get();
    return nullptr;
}

/// Works out how far the numbers of a pass reach: the first one has been closed.
void Pipeline::measure_passes(stages::PassSignals& passes) const {
    assemble::NumberRange numbers;
    std::uint32_t epochs = 0;
    for (const auto& rx : rx_) {
        numbers.merge(rx->numbers());
        epochs = std::max(epochs, rx->newest_epoch());
    }
    passes.span.store(numbers.span(options_.capture->loop), std::memory_order_relaxed);
    passes.epochs.store(epochs, std::memory_order_relaxed);
}

void Pipeline::make_work() {
    const core::AllocationContext allocating("output buffers");
    const plan::Plan& plan = options_.plan;
    const std::uint32_t refs_max = refs_max_of(plan);
    if (options_.pedestals != nullptr)
        pedestals_ = std::make_unique<stages::PedestalKeeper>(stages::PedestalKeeper::Config{
            options_.pedestals, static_cast<std::uint32_t>(plan.work.size()), refs_max, options_.wait, &signals_});
    for (std::size_t worker = 0; worker < plan.work.size(); ++worker) {
        const port::PreferNode memory(plan.memory_node(plan.work[worker]));
        stages::WorkStage::Config config;
        for (std::size_t shard = 0; shard < plan.build.size(); ++shard)
            config.build.push_back({&rings_.events(worker, shard), &rings_.released(worker, shard)});
        for (std::size_t rx = 0; rx < plan.rx.size(); ++rx) config.recycle.push_back(&rings_.recycle(worker, rx));
        config.clock = clock_.get();
        if (inputs_ != nullptr && inputs_->capture() != nullptr) config.cut_ns = &inputs_->capture()->cut_ns();
        config.timeout_ns = options_.config.events.timeout_ms * core::ns_per_ms;
        if (is_builder()) config.flush_after_ns = 5 * core::ns_per_ms;  // credits come back when events are written
        config.sources_needed = options_.config.events.sources;
        config.sources = options_.geometry;
        config.refs_max = refs_max;
        if (pedestals_ != nullptr) config.pedestals = &pedestals_->worker(static_cast<std::uint32_t>(worker));
        outputs_.make_buffers(config);
        auto encoder = options_.reduce->make_encoder({refs_max, refs_max * static_cast<std::uint32_t>(plan.rx.size()),
                                                      config.to_file || !options_.config.reduce.empty(),
                                                      pedestals_ != nullptr ? &config.pedestals->view() : nullptr});
        work_.push_back(std::make_unique<stages::WorkStage>(config, std::move(encoder), signals_));
    }
    outputs_.make_sinks(work_);
}

/// What all shards of the builder have in common.
stages::BuildStage::Config Pipeline::build_config() {
    const plan::Plan& plan = options_.plan;
    const config::RunConfig& config = options_.config;
    stages::BuildStage::Config build;
    build.builder.sources = static_cast<std::uint32_t>(config.sources.size());
    build.builder.sources_needed = config.events.sources;
    build.builder.open_max = plan.open_max;
    build.builder.queued_max = plan.queued_max;
    build.builder.timeout_ns = config.events.timeout_ms * core::ns_per_ms;
    build.builder.horizon = plan.horizon;
    build.builder.touch = is_live();
    build.builder.wait = options_.wait;
    build.builder.overload = config.events.overload;
    build.builder.prescale = config.events.prescale;
    build.builder.owner = owners_;
    build.builder.number_bits = number_bits();
    build.builder.ends_told = is_builder();
    build.builder.rx_count = static_cast<std::uint32_t>(plan.rx.size());
    build.builder.messages_max = plan.messages_per_rx;
    build.builder.event_room = event_room_.get();
    build.keep_incomplete = config.events.incomplete == config::IncompleteMode::keep;
    build.geometry = options_.geometry;
    return build;
}

void Pipeline::make_build() {
    const core::AllocationContext allocating("the bookkeeping of events");
    const plan::Plan& plan = options_.plan;
    stages::BuildStage::Config build = build_config();
    signals_.builders = static_cast<std::uint32_t>(plan.build.size());
    const assemble::ShardOf shard_of(signals_.builders, build.builder.number_bits);
    if (shard_of.shards() > 1) board_ = std::make_unique<assemble::ShardBoard>(shard_of.shards(), shard_of.bits());
    build.builder.board = board_.get();
    for (std::size_t shard = 0; shard < plan.build.size(); ++shard) {
        build.builder.shard = static_cast<std::uint32_t>(shard);
        build.builder.numbers = numbers_.log(shard);
        if (options_.recorder != nullptr) build.triggers = options_.recorder->triggers(shard);
        build.rx.clear();
        build.work.clear();
        for (std::size_t i = 0; i < plan.rx.size(); ++i)
            build.rx.push_back({&rings_.descriptors(i, shard), &rings_.commands(i, shard), rx_signals_[i].get()});
        for (std::size_t i = 0; i < plan.work.size(); ++i)
            build.work.push_back({&rings_.events(i, shard), &rings_.released(i, shard)});
        const port::PreferNode memory(plan.memory_node(plan.build[shard]));
        build_.push_back(std::make_unique<stages::BuildStage>(build, signals_));
    }
}

/// Along the way of the data, so that a fused lcore carries a packet from end to end in one turn.
void Pipeline::make_lcores() {
    const plan::Plan& plan = options_.plan;
    for (std::size_t i = 0; i < rx_.size(); ++i) {
        lcores_.add(plan.rx[i], *rx_[i]);
        lcores_.set_nap(plan.rx[i], inputs_->nap_ns(i));
    }
    for (std::size_t i = 0; i < build_.size(); ++i) lcores_.add(plan.build[i], *build_[i]);
    for (std::size_t i = 0; i < work_.size(); ++i) lcores_.add(plan.work[i], *work_[i]);
}

void Pipeline::start() {
    inputs_->begin();
    lcores_.start();
    running_ = true;
    try {
        outputs_.start();
        if (pedestals_ != nullptr)
            pedestals_->start(options_.snapshots, [this](std::uint32_t worker) { return work_[worker]->finished(); });
        inputs_->start(signals_);
    } catch (...) {
        // There is no room for a thread. What runs ends as always, once it knows that nothing comes: see join.
        inputs_->end_unstarted();
        throw;
    }
}

void Pipeline::look() {
    numbers_.look(core::monotonic_ns());
    if (clock_ != nullptr) clock_->look();
    inputs_->look();
    ports_.pools().look();
}

bool Pipeline::finished() const noexcept {
    for (const auto& worker : work_)
        if (!worker->finished()) return false;
    if (pedestals_ != nullptr && !pedestals_->finished()) return false;
    return outputs_.finished();
}

void Pipeline::join() {
    if (!running_) return;
    running_ = false;
    stop_input();
    outputs_.join();
    if (pedestals_ != nullptr) pedestals_->join();
    lcores_.join();
    inputs_->join();
    numbers_.look(core::monotonic_ns());
}

Levels Pipeline::levels() const {
    Levels levels;
    levels.buffers = ports_.pools().level();
    const plan::Plan& plan = options_.plan;
    const auto bytes_of = [&plan](std::uint64_t buffers, std::uint64_t cells) {
        return buffers * plan.room_bytes + cells * plan.copies.cell_bytes;
    };
    for (const auto& rx : rx_) {
        levels.memory.used += bytes_of(rx->buffers_held(), rx->cells_held());
        levels.memory.highest += bytes_of(rx->buffers_highest(), rx->cells_highest());
    }
    levels.memory.size = bytes_of(plan.buffers_per_rx, plan.copies.cells) * rx_.size();
    levels.open.size = options_.plan.open_max;
    levels.queued.size = options_.plan.queued_max;
    for (const auto& build : build_) {
        levels.open.used += build->open_events();
        levels.queued.used += build->queued_events();
        levels.open.highest += build->open_highest();
        levels.queued.highest += build->queued_highest();
    }
    rings_.add_to(levels);
    return levels;
}

Usage Pipeline::usage(double seconds) const {
    Usage usage;
    const plan::Plan& plan = options_.plan;
    usage.seconds = seconds;
    for (std::size_t i = 0; i < rx_.size(); ++i) {
        usage.stages.push_back({fmt::format("rx{}", i), plan.rx[i], rx_[i]->polls()});
        usage.refused_packets += refused(rx_[i]->packets());
    }
    for (std::size_t i = 0; i < build_.size(); ++i) {
        usage.stages.push_back({fmt::format("build{}", i), plan.build[i], build_[i]->polls()});
        usage.refused_packets += refused(build_[i]->packets());
        usage.evicted_events += build_[i]->events().get(assemble::EventCounter::incomplete_evicted);
    }
    for (std::size_t i = 0; i < work_.size(); ++i)
        usage.stages.push_back({fmt::format("work{}", i), plan.work[i], work_[i]->polls()});
    usage.lcores = lcores_.usage();
    // The one that is behind is what the run waits for.
    for (const auto& sink : outputs_.sinks())
        usage.sink_bytes = std::min(usage.sink_bytes.value_or(sink->bytes()), sink->bytes());
    if (const stages::CaptureFeeder* const capture = inputs_->capture(); capture != nullptr)
        usage.reader = Usage::Reader{static_cast<double>(capture->waiting_ns()) * 1e-9,
                                     static_cast<double>(capture->pacing_ns()) * 1e-9};
    return usage;
}

}  // namespace weir::pipeline

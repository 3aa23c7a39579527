#include "pipeline/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "config/device_facts.hpp"
#include "core/doing.hpp"
#include "core/resident_memory.hpp"
#include "port/eal.hpp"
#include "port/host_topology.hpp"

namespace weir::pipeline {

namespace {

/// Where the input waits, the limit of open events is all that is left, and there waiting does not help.
assemble::Overload overload_of(OverloadMode mode) noexcept {
    switch (mode) {
        case OverloadMode::refuse_new:
            return assemble::Overload::refuse_new;
        case OverloadMode::prescale:
            return assemble::Overload::prescale;
        case OverloadMode::evict_oldest:
        case OverloadMode::wait:
            break;
    }
    return assemble::Overload::evict_oldest;
}

/// What a ring between two lcores is called: as ever where there is one builder, "3.1" (lcore 3, shard 1) otherwise.
std::string edge_name(std::size_t lcore, std::size_t shard, std::size_t shards) {
    return shards == 1 ? fmt::format("{}", lcore) : fmt::format("{}.{}", lcore, shard);
}

}  // namespace

Pipeline::Pipeline(Options options) : options_(std::move(options)), numbers_(options_.plan.build.size()) {
    const Plan& plan = options_.plan;
    for (const Plan::Pool& pool : plan.pools)
        pools_.push_back(std::make_unique<port::BufferPool>(
            fmt::format("packets{}", pool.rx),
            port::BufferPoolConfig{pool.buffers, plan.room_bytes, pool.node, plan.rx[pool.rx]}));
    // A replay waits for its page faults, and a small one does not need most of the memory. A beam does not wait.
    if (is_live())
        for (const auto& pool : pools_) pool->touch();
    const std::vector<std::uint16_t> owners = make_owners(options_.config, plan.placement);
    for (std::uint32_t port = 0; port < options_.config.ports.size(); ++port)
        steering_.push_back(std::make_unique<flow::Steering>(make_steering(options_.config, port, owners)));
    std::vector<RxStage::Config> rx(plan.rx.size());
    for (std::size_t i = 0; i < rx.size(); ++i) {
        rx_signals_.push_back(std::make_unique<RxSignals>());
        for (std::size_t shard = 0; shard < plan.build.size(); ++shard) {
            const std::string edge = edge_name(i, shard, plan.build.size());
            descriptor_rings_.push_back(std::make_unique<port::Ring<assemble::Descriptor>>(
                "descriptors" + edge, plan.descriptor_ring, plan.memory_node(plan.build[shard])));
            command_rings_.push_back(std::make_unique<port::Ring<assemble::Command>>(
                "commands" + edge, plan.descriptor_ring, plan.memory_node(plan.rx[i])));
            rx[i].descriptors.push_back(descriptor_rings_.back().get());
            rx[i].commands.push_back(command_rings_.back().get());
        }
    }
    const bool answers = std::ranges::any_of(options_.config.streams, [](const StreamConfig& stream) {
        return stream.roce.service != roce::Service::listen;
    });
    if (answers && !options_.wait)
        event_room_ = std::make_unique<assemble::EventRoom>(static_cast<std::uint32_t>(plan.build.size()),
                                                            plan.open_max + plan.queued_max);
    if (!options_.capture.has_value()) clock_ = std::make_unique<port::LiveClock>();
    make_work();
    make_inputs(rx);
    flows_ = std::make_unique<RunFlows>(options_.config, owners, plan.placement, ports_);
    for (RxStage::Config& stage : rx) stage.rules = flows_->runtimes();
    make_rx(rx);
    make_build();
    make_lcores();
    if (is_live()) unlocked_ = core::lock_memory(plan.memory.sum());
}

Pipeline::~Pipeline() {
    join();
}

void Pipeline::make_inputs(std::vector<RxStage::Config>& rx) {
    const core::Doing doing("packet buffers");
    const std::size_t count = rx.size();
    const auto memory_node = [this](std::uint32_t lcore) { return options_.plan.memory_node(lcore); };
    for (RxStage::Config& config : rx) {
        for (const auto& steering : steering_) config.steering.push_back(steering.get());
        config.steer_in.resize(count);
        config.steer_out.resize(count);
    }
    for (std::size_t from = 0; from < count; ++from)
        for (std::size_t to = 0; to < count; ++to) {
            if (from == to) continue;
            packet_rings_.push_back(std::make_unique<port::Ring<port::Packet>>(
                fmt::format("steer{}.{}", from, to), options_.plan.steer_ring, memory_node(options_.plan.rx[to])));
            rx[from].steer_out[to] = {packet_rings_.back().get(), nullptr};
            rx[to].steer_in[from] = {packet_rings_.back().get(), rx_signals_[from].get()};
        }
    if (options_.capture.has_value()) {
        packet_rings_.push_back(std::make_unique<port::Ring<port::Packet>>("capture", options_.plan.packet_ring));
        if (options_.capture->loop > 1) {
            passes_ = std::make_unique<PassSignals>(rx.size());
            passes_->settle = [this] { settle_passes(); };
        }
        capture_ =
            std::make_unique<CaptureFeeder>(*options_.capture, *packet_rings_.back(), *pools_.front(), passes_.get());
        rx[0].rings.push_back({packet_rings_.back().get(), &capture_->ended()});
        return;
    }
    for (std::size_t i = 0; i < options_.config.ports.size(); ++i) make_port(i, rx);
}

void Pipeline::settle_passes() {
    assemble::NumberRange numbers;
    std::uint32_t epochs = 0;
    for (const auto& rx : rx_) {
        numbers.merge(rx->numbers());
        epochs = std::max(epochs, rx->newest_epoch());
    }
    passes_->span.store(numbers.span(options_.capture->loop), std::memory_order_relaxed);
    passes_->epochs.store(epochs, std::memory_order_relaxed);
}

void Pipeline::make_port(std::size_t index, std::vector<RxStage::Config>& rx) {
    const PortConfig& config = options_.config.ports[index];
    port::LivePortConfig live;
    live.name = config.name;
    live.index = static_cast<std::uint8_t>(index);
    const std::string device = port::with_queues(port::with_frame_room(config.devargs(), config.mtu), config.queues);
    const std::size_t comma = device.find(',');
    live.device = device.substr(0, comma);
    if (!port::is_pci_address(device)) live.args = comma == std::string::npos ? "" : device.substr(comma + 1);
    live.queues = config.queues;
    live.mtu = config.mtu;
    live.rx_descriptors = config.rx_descriptors;
    live.options = config.options;
    live.answer_queues =
        static_cast<std::uint16_t>(answering_lcores(options_.config, static_cast<std::uint32_t>(index),
                                                    make_owners(options_.config, options_.plan.placement))
                                       .size());
    if (!config.address.empty())
        if (const auto address = parse_ip_address(config.address.substr(0, config.address.find('/'))); address) {
            if (address->v6)
                live.ipv6_address = address->bytes;
            else
                live.address = address->v4();
        }
    if (SimulatorFeeder::is_simulator(config.device)) {
        std::uint32_t sources = 0;
        for (const StreamConfig& stream : options_.config.streams)
            if (stream.port == index) sources += stream.source_count;
        simulators_.push_back(std::make_unique<SimulatorFeeder>(
            SimulatorFeeder::parse_device(config.device, sources, options_.config.formats), config.name,
            pool_of(index, 0)));
        live.device = simulators_.back()->device();
        live.args.reset();
        live.queues = 1;
    }
    std::vector<port::BufferPool*> pools;
    for (std::uint32_t queue = 0; queue < live.queues; ++queue) pools.push_back(&pool_of(index, queue));
    ports_.push_back(std::make_unique<port::LivePort>(live, pools));
    for (const Placement::Queue& queue : options_.plan.placement.queues)
        if (queue.port == index)
            rx[queue.rx].ports.push_back({ports_.back().get(), static_cast<std::uint16_t>(queue.queue)});
}

port::BufferPool& Pipeline::pool_of(std::size_t port, std::uint32_t queue) {
    const std::vector<Plan::Pool>& pools = options_.plan.pools;
    const std::uint32_t rx = options_.plan.placement.rx_of_queue(static_cast<std::uint32_t>(port), queue);
    return *pools_[static_cast<std::size_t>(std::ranges::find(pools, rx, &Plan::Pool::rx) - pools.begin())];
}

void Pipeline::make_rx(std::vector<RxStage::Config>& rx) {
    const core::Doing doing("the bookkeeping of messages and sources");
    const Plan& plan = options_.plan;
    const RunConfig& config = options_.config;
    const std::vector<std::uint16_t> owners = make_owners(config, plan.placement);
    for (std::size_t i = 0; i < rx.size(); ++i) {
        RxStage::Config& stage = rx[i];
        stage.index = static_cast<std::uint16_t>(i);
        stage.wait = options_.wait;
        if (auto converter = options_.reduce->make_converter()) {
            stage.converter = converter.get();
            converters_.push_back(std::move(converter));
        }
        stage.passes = passes_.get();
        stage.table.follows_numbers = passes_ != nullptr;
        for (std::size_t worker = 0; worker < plan.work.size(); ++worker)
            stage.recycle.push_back(recycle_rings_[worker * rx.size() + i].get());
        stage.table.owner = stage.index;
        stage.table.shards = static_cast<std::uint32_t>(plan.build.size());
        stage.table.sources = static_cast<std::uint32_t>(config.sources.size());
        stage.table.messages_max = plan.messages_per_rx;
        stage.table.buffers_max = plan.buffers_per_rx;
        stage.table.copy_bytes_max = plan.copy_bytes_max;
        stage.table.copy_above_held = plan.copy_above_held;
        stage.table.copy_cells = plan.copy_cells_per_rx;
        stage.table.copy_cell_bytes = plan.copy_cell_bytes;
        stage.table.range_blocks = plan.range_blocks_per_rx;
        stage.table.horizon = plan.horizon;
        for (const std::uint16_t owner : owners) stage.table.own.push_back(owner == i ? 1 : 0);
        stage.table.touch = is_live();
        stage.table.message_bytes_max = plan.message_bytes_max;
        stage.table.timeout_ns = config.events.timeout_ms * core::ns_per_ms;
        stage.table.number_bits = make_number_bits(config, options_.streams);
        stage.reassembly = plan.reassembly;
        stage.reassembly.node = plan.memory_node(plan.rx[i]);
        const auto pool = std::ranges::find(plan.pools, i, &Plan::Pool::rx);
        if (capture_ == nullptr && rx.size() > 1 && pool != plan.pools.end())
            stage.pool = pools_[static_cast<std::size_t>(pool - plan.pools.begin())].get();
        stage.listener.sources = make_roce_sources(config, options_.streams, owners, stage.index);
        stage.listener.timeout_ns = stage.table.timeout_ns;
        stage.listener.runs_max = plan.roce_runs;
        stage.listener.psn_window = plan.psn_window;
        stage.listener.touch = is_live();
        // In messages that ended since: more than any reordering that the events' own limit allows for.
        stage.listener.window = 4 * plan.open_max;
        make_answers(i, stage, owners);
        if (options_.recorder != nullptr) {
            stage.record = &options_.recorder->ring(i);
            options_.recorder->connect(i, *rx_signals_[i], options_.wait);
        }
        const port::PreferNode memory(stage.reassembly.node);
        rx_.push_back(std::make_unique<RxStage>(stage, options_.streams, *rx_signals_[i], signals_));
    }
}

/// What an rx lcore needs to answer the queue pairs that are its own.
void Pipeline::make_answers(std::size_t index, RxStage::Config& stage, const std::vector<std::uint16_t>& owners) {
    stage.table.event_room = event_room_.get();
    stage.responder.sources = make_responder_sources(options_.config, owners, stage.index);
    stage.table.keeps = !stage.responder.sources.empty();
    if (options_.capture.has_value())  // nobody connects them: the capture's packets do
        for (auto& source : stage.responder.sources) source.ready = true;
    for (std::uint32_t port = 0; port < ports_.size(); ++port) {
        const std::vector<std::uint16_t> lcores = answering_lcores(options_.config, port, owners);
        const auto at = std::ranges::find(lcores, stage.index);
        stage.answer_ports.push_back(at != lcores.end()
                                         ? ports_[port]->answer_sender(static_cast<std::uint16_t>(at - lcores.begin()))
                                         : nullptr);
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

void Pipeline::make_work() {
    const core::Doing doing("output buffers");
    const Plan& plan = options_.plan;
    const bool to_file = !options_.sinks.empty();
    // One message could have every reference there is; the list takes no memory before it is used.
    const std::uint32_t refs_max = assemble::FragmentBlock::capacity *
                                   (plan.buffers_per_rx / 16 + plan.messages_per_rx + plan.copy_cells_per_rx + 1);
    if (options_.pedestals != nullptr)
        pedestals_ = std::make_unique<PedestalKeeper>(PedestalKeeper::Config{
            options_.pedestals, static_cast<std::uint32_t>(plan.work.size()), refs_max, options_.wait, &signals_});
    for (std::size_t worker = 0; worker < plan.work.size(); ++worker) {
        const int node = plan.memory_node(plan.work[worker]);
        const port::PreferNode memory(node);
        WorkStage::Config config;
        for (std::size_t shard = 0; shard < plan.build.size(); ++shard) {
            const std::string edge = edge_name(worker, shard, plan.build.size());
            event_rings_.push_back(
                std::make_unique<port::Ring<assemble::Event*>>("events" + edge, plan.event_ring, node));
            released_rings_.push_back(std::make_unique<port::Ring<assemble::Event*>>(
                "released" + edge, plan.event_ring, plan.memory_node(plan.build[shard])));
            config.build.push_back({event_rings_.back().get(), released_rings_.back().get()});
        }
        config.clock = clock_.get();
        config.to_file = to_file;
        config.null_buffer_bytes = plan.output_buffer_bytes;
        for (const store::EventSink* sink : options_.sinks)
            config.buffer_alignment = std::max(config.buffer_alignment, sink->alignment());
        config.sources_needed = options_.config.events.sources;
        config.sources = options_.geometry;
        config.refs_max = refs_max;
        if (pedestals_ != nullptr) config.pedestals = &pedestals_->worker(static_cast<std::uint32_t>(worker));
        for (std::size_t rx = 0; rx < plan.rx.size(); ++rx) {
            recycle_rings_.push_back(std::make_unique<port::Ring<assemble::Message*>>(
                fmt::format("recycle{}.{}", worker, rx), plan.messages_per_rx, plan.memory_node(plan.rx[rx])));
            config.recycle.push_back(recycle_rings_.back().get());
        }
        if (to_file) {
            free_rings_.push_back(
                std::make_unique<port::Ring<OutputBuffer*>>(fmt::format("free{}", worker), plan.output_buffers, node));
            full_rings_.push_back(
                std::make_unique<port::Ring<OutputBuffer*>>(fmt::format("full{}", worker), plan.output_buffers, node));
            config.free_buffers = free_rings_.back().get();
            config.full_buffers = full_rings_.back().get();
            const std::size_t buffer_bytes = plan.output_buffer_bytes;
            output_memory_.emplace_back(buffer_bytes * plan.output_buffers);
            for (std::uint32_t i = 0; i < plan.output_buffers; ++i) {
                output_buffers_.push_back(std::make_unique<OutputBuffer>());
                output_buffers_.back()->memory = output_memory_.back().span().subspan(i * buffer_bytes, buffer_bytes);
                output_buffers_.back()->worker = static_cast<std::uint32_t>(worker);
                config.free_buffers->push(output_buffers_.back().get());
            }
        }
        auto encoder = options_.reduce->make_encoder(
            {config.refs_max, refs_max * static_cast<std::uint32_t>(plan.rx.size()),
             to_file || !options_.config.reduce.empty(), pedestals_ != nullptr ? &config.pedestals->view() : nullptr});
        work_.push_back(std::make_unique<WorkStage>(config, std::move(encoder), signals_));
    }
    if (to_file) make_sinks();
}

/// Each sink gets all buffers, in the order in which the first one took them.
void Pipeline::make_sinks() {
    const std::vector<store::EventSink*>& sinks = options_.sinks;
    for (std::size_t i = 0; i < sinks.size(); ++i) {
        SinkThread::Config config;
        config.sink = sinks[i];
        if (i == 0) {
            for (std::size_t worker = 0; worker < work_.size(); ++worker)
                config.in.push_back(
                    {full_rings_[worker].get(), [stage = work_[worker].get()] { return stage->finished(); }});
        } else {
            config.in.push_back(
                {sink_rings_[i - 1].get(), [before = sinks_[i - 1].get()] { return before->finished(); }});
        }
        if (i + 1 < sinks.size()) {
            sink_rings_.push_back(std::make_unique<port::Ring<OutputBuffer*>>(
                fmt::format("sinks{}", i), static_cast<std::uint32_t>(output_buffers_.size())));
            config.next = sink_rings_.back().get();
        } else {
            for (const auto& ring : free_rings_) config.freed.push_back(ring.get());
        }
        sinks_.push_back(std::make_unique<SinkThread>(std::move(config)));
    }
}

void Pipeline::make_build() {
    const core::Doing doing("the bookkeeping of events");
    const Plan& plan = options_.plan;
    const RunConfig& config = options_.config;
    BuildStage::Config build;
    build.builder.sources = static_cast<std::uint32_t>(config.sources.size());
    build.builder.sources_needed = config.events.sources;
    build.builder.open_max = plan.open_max;
    build.builder.queued_max = plan.queued_max;
    build.builder.timeout_ns = config.events.timeout_ms * core::ns_per_ms;
    build.builder.horizon = plan.horizon;
    build.builder.wait = options_.wait;
    build.builder.overload = overload_of(config.events.overload);
    build.builder.prescale = config.events.prescale;
    build.builder.owner = make_owners(config, plan.placement);
    build.builder.number_bits = make_number_bits(config, options_.streams);
    build.builder.rx_count = static_cast<std::uint32_t>(plan.rx.size());
    build.builder.messages_max = plan.messages_per_rx;
    build.builder.event_room = event_room_.get();
    build.keep_incomplete = config.events.incomplete == IncompleteMode::keep;
    const std::size_t shards = plan.build.size();
    signals_.builders = static_cast<std::uint32_t>(shards);
    const assemble::ShardOf shard_of(signals_.builders, build.builder.number_bits);
    if (shard_of.shards() > 1) board_ = std::make_unique<assemble::ShardBoard>(shard_of.shards(), shard_of.bits());
    for (std::size_t shard = 0; shard < shards; ++shard) {
        build.builder.shard = static_cast<std::uint32_t>(shard);
        build.builder.board = board_.get();
        build.builder.numbers = numbers_.log(shard);
        if (options_.recorder != nullptr) build.triggers = options_.recorder->triggers(shard);
        build.geometry = options_.geometry;
        build.rx.clear();
        build.work.clear();
        for (std::size_t i = 0; i < plan.rx.size(); ++i)
            build.rx.push_back({descriptor_rings_[i * shards + shard].get(), command_rings_[i * shards + shard].get(),
                                rx_signals_[i].get()});
        for (std::size_t i = 0; i < plan.work.size(); ++i)
            build.work.push_back({event_rings_[i * shards + shard].get(), released_rings_[i * shards + shard].get()});
        const port::PreferNode memory(plan.memory_node(plan.build[shard]));
        build_.push_back(std::make_unique<BuildStage>(build, signals_));
    }
}

void Pipeline::make_lcores() {
    for (const std::uint32_t id : options_.plan.placement.lcores())
        lcores_.push_back(
            {id, {}, &signals_, clock_.get(), options_.config.lcores.idle, std::make_unique<PollCounts>()});
    const auto put = [&](std::uint32_t id, Stage* stage) {
        std::ranges::find(lcores_, id, &Lcore::id)->stages.push_back(stage);
    };
    // Along the way of the data, so that a fused lcore carries a packet from end to end in one turn.
    for (std::size_t i = 0; i < rx_.size(); ++i) put(options_.plan.rx[i], rx_[i].get());
    for (std::size_t i = 0; i < build_.size(); ++i) put(options_.plan.build[i], build_[i].get());
    for (std::size_t i = 0; i < work_.size(); ++i) put(options_.plan.work[i], work_[i].get());
}

}  // namespace weir::pipeline

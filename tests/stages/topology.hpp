// All stages of a small run and the rings between them, in memory: polled by hand in any order with made-up times, or
// each on a thread of its own. Wired as Pipeline does it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "assemble/shard_board.hpp"
#include "assemble/shard_of.hpp"
#include "core/hot_thread.hpp"
#include "made_packets.hpp"
#include "memory_sink.hpp"
#include "stages/build_stage.hpp"
#include "stages/bytes_encoder.hpp"
#include "stages/rx/rx_stage.hpp"
#include "stages/sink_thread.hpp"
#include "stages/work_stage.hpp"
#include "store/aligned_bytes.hpp"

namespace weir::stages::test {

using assemble::EventCounter;
using assemble::MessageCounter;
using wire::PacketCounter;

struct Shape {
    std::uint32_t rx = 1;
    std::uint32_t builders = 1;
    std::uint32_t workers = 1;
    std::uint32_t sources = 2;
    std::vector<std::uint16_t> owner{};  ///< per source; empty: they take turns
    std::uint32_t sources_needed = 0;    ///< 0: all
    bool replay = true;                  ///< all packets arrive at the first rx lcore; otherwise each has an input
    bool source_in_header = false;       ///< all sources send to the first port, and say who they are
    bool wait = true;
    bool keep_incomplete = true;
    assemble::Overload overload = assemble::Overload::evict_oldest;
    std::uint32_t prescale = 1;
    std::uint32_t open_max = 256;
    std::uint32_t queued_max = 256;
    std::uint32_t messages_max = 0;  ///< of an rx lcore; 0: as many as never run out, as a plan has them
    std::uint32_t buffers_max = 3072;
    TimeNs timeout_ns = 100 * ms;
    std::uint32_t packet_ring = 512;
    std::uint32_t steer_ring = 512;
    std::uint32_t descriptor_ring = 8192;
    std::uint32_t command_ring = 512;
    bool to_file = true;
    std::uint32_t output_buffers = 4;
    std::size_t output_buffer_bytes = std::size_t{64} << 10U;
    // What a test's stages have besides.
    std::function<void(RxStage::Config&)> with_rx{};
    std::function<void(BuildStage::Config&)> with_build{};
};

/// The counters of all stages, added up.
struct Account {
    std::uint64_t received = 0;
    std::array<std::uint64_t, core::count_of<PacketCounter>> packets{};
    std::array<std::uint64_t, core::count_of<MessageCounter>> messages{};
    std::array<std::uint64_t, core::count_of<EventCounter>> events{};

    [[nodiscard]] std::uint64_t get(PacketCounter c) const { return packets[static_cast<std::size_t>(c)]; }
    [[nodiscard]] std::uint64_t get(MessageCounter c) const { return messages[static_cast<std::size_t>(c)]; }
    [[nodiscard]] std::uint64_t get(EventCounter c) const { return events[static_cast<std::size_t>(c)]; }
    template <class E>
    void add(const core::Tally<E>& tally, std::array<std::uint64_t, core::count_of<E>>& to) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += tally.get(static_cast<E>(i));
    }
    [[nodiscard]] std::uint64_t closed() const {
        return get(EventCounter::complete) + get(EventCounter::incomplete_timeout) +
               get(EventCounter::incomplete_evicted) + get(EventCounter::incomplete_end_of_run) +
               get(EventCounter::incomplete_no_room) + get(EventCounter::incomplete_ended) +
               get(EventCounter::incomplete_node_down);
    }
    /// At the end of a run: what does not add up. Empty if all does.
    [[nodiscard]] std::string imbalance() const {
        std::string text;
        const auto check = [&](const char* what, std::uint64_t left, std::uint64_t right) {
            if (left != right)
                text += std::string(what) + ": " + std::to_string(left) + " against " + std::to_string(right) + "\n";
        };
        std::uint64_t ended = 0;
        for (const std::uint64_t value : packets) ended += value;
        check("packets received and accounted for", received, ended);
        check("packets still in flight", get(PacketCounter::in_flight), 0);
        std::uint64_t fates = 0;
        for (std::size_t i = 1; i < messages.size(); ++i) fates += messages[i];
        check("messages opened and ended", get(MessageCounter::opened), fates);
        check("events opened and closed", get(EventCounter::opened), closed());
        check("events closed and settled", closed(),
              get(EventCounter::vetoed) + get(EventCounter::dropped_incomplete) + get(EventCounter::dropped_no_room) +
                  get(EventCounter::dropped_reduce_error) + get(EventCounter::dropped_write_error) +
                  get(EventCounter::written));
        return text;
    }
};

class Topology {
public:
    /// `sink` takes what the workers write; null: one of its own.
    explicit Topology(const Shape& shape, MemorySink* sink = nullptr)
        : shape_(shape), sink_(sink != nullptr ? *sink : own_sink_) {
        for (std::uint32_t i = 0; shape_.owner.size() < shape_.sources; ++i)
            shape_.owner.push_back(static_cast<std::uint16_t>(i % shape_.rx));
        if (shape_.sources_needed == 0) shape_.sources_needed = shape_.sources;
        const std::uint32_t over = shape_.builders > 1 ? shape_.builders * (assemble::ShardBoard::asked_max + 1) : 0;
        if (shape_.messages_max == 0)
            shape_.messages_max = (shape_.open_max + shape_.queued_max + over + 16) * shape_.sources + 256;
        make_streams();
        make_rings();
        make_rx();
        make_build();
        make_work();
    }
    ~Topology() { stop_threads(); }
    Topology(const Topology&) = delete;
    Topology& operator=(const Topology&) = delete;

    // Packets that arrive at rx lcore `rx`, in order of time.
    /// False where its ring is full: the packet is still the caller's.
    [[nodiscard]] bool try_feed(const port::Packet& packet, std::uint32_t rx = 0) {
        if (!inputs_[rx]->push(packet)) return false;
        received_ += packet.pieces() > 0 ? packet.pieces() : 1;
        return true;
    }
    /// Polls everything while the ring is full. Time passes meanwhile: another worker may wait for what a worker has
    /// not handed over yet.
    void feed(const port::Packet& packet, std::uint32_t rx = 0) {
        for (int i = 0; i < patience; ++i, now += ms) {
            if (try_feed(packet, rx)) return;
            turn();
        }
        rte_pktmbuf_free(packet.mbuf);
        FAIL() << "rx lcore " << rx << " takes no packets any more";
    }
    void end_input() {
        for (auto& ended : ended_) ended.store(true, std::memory_order_release);
    }

    // By hand.
    [[nodiscard]] std::size_t stages() const { return stages_.size() + 1; }
    /// One of all stages, the last of which is the sink. Returns how much it moved.
    std::size_t poll(std::size_t index) {
        if (index == stages_.size()) return poll_sink();
        std::uint64_t tsc = ::rte_rdtsc();
        core::hot_thread(true);
        const std::size_t work = stages_[index]->counted_poll(now, tsc);
        core::hot_thread(false);
        return work;
    }
    std::size_t poll_rx(std::uint32_t i = 0) { return poll(i); }
    std::size_t poll_build(std::uint32_t i = 0) { return poll(shape_.rx + i); }
    std::size_t poll_work(std::uint32_t i = 0) { return poll(shape_.rx + shape_.builders + i); }
    /// Gives the sink one buffer, as its thread does.
    std::size_t poll_sink() {
        if (!shape_.to_file) return 0;
        std::array<OutputBuffer*, 1> taken;
        for (std::uint32_t i = 0; i < shape_.workers; ++i) {
            const std::uint32_t worker = sink_from_.value_or((sink_next_ + i) % shape_.workers);
            if (full_[worker]->pop(taken) == 0) continue;
            sink_.append(taken[0]->memory.first(taken[0]->used_bytes));
            sink_from_ = taken[0]->event_open ? std::optional(worker) : std::nullopt;
            sink_next_ = worker + 1;
            free_[taken[0]->worker]->push(taken[0]);
            return 1;
        }
        return 0;
    }
    /// All of them, along the way of the data.
    std::size_t turn() {
        std::size_t work = 0;
        for (std::size_t i = 0; i < stages(); ++i) work += poll(i);
        return work;
    }
    /// Until nothing moves any more; for workers time passes, so that they hand over what they have.
    void drain() {
        for (int idle = 0, i = 0; idle < 4 && i < patience; ++i, now += 100 * ms) idle = turn() > 0 ? 0 : idle + 1;
    }
    /// Ends the input and polls in order until the last event is with the sink and everything has been given back.
    void finish() {
        end_input();
        for (int i = 0; i < patience && !finished(); ++i, now += ms) turn();
        EXPECT_TRUE(finished()) << "the run does not come to its end";
        drain();
    }
    /// The same, in an order that chance decides.
    void finish(std::mt19937_64& random) {
        end_input();
        for (std::size_t i = 0; i < patience * stages() && !finished(); ++i, now += ms) poll(random() % stages());
        finish();
    }
    [[nodiscard]] bool finished() const {
        for (const auto& worker : work_)
            if (!worker->finished()) return false;
        for (const auto& full : full_)
            if (full->count() != 0) return false;  // what a thread outside may ask
        return sink_thread_ == nullptr || sink_thread_->finished();
    }

    // Each stage on a thread.
    void start_threads() {
        if (shape_.to_file) {
            SinkThread::Config config;
            config.sink = &sink_;
            for (std::uint32_t i = 0; i < shape_.workers; ++i)
                config.in.push_back({full_[i].get(), [this, stage = work_[i].get()] {
                                         return stage->finished() || run.exit.load(std::memory_order_relaxed);
                                     }});
            for (const auto& ring : free_) config.freed.push_back(ring.get());
            sink_thread_ = std::make_unique<SinkThread>(std::move(config));
            sink_thread_->start();
        }
        for (Stage* stage : stages_) threads_.emplace_back([this, stage] { run_stage(*stage); });
    }
    /// Ends the input and the threads, once the last event is with the sink.
    void finish_threads() {
        end_input();
        // In time that passes, so that a poll order which is starved by the machine is no failure.
        for (int i = 0; i < 60'000 && !finished(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        EXPECT_TRUE(finished()) << "the run does not come to its end";
        stop_threads();
        drain();
    }

    [[nodiscard]] Account account() const {
        Account account;
        account.received = received_;
        for (const auto& rx : rx_) {
            account.add(rx->packets(), account.packets);
            account.add(rx->messages(), account.messages);
        }
        for (const auto& build : build_) {
            account.add(build->packets(), account.packets);
            account.add(build->messages(), account.messages);
            account.add(build->events(), account.events);
        }
        for (const auto& work : work_) account.add(work->events(), account.events);
        const std::uint64_t lost = sink_thread_ != nullptr ? sink_thread_->lost() : 0;
        account.events[static_cast<std::size_t>(EventCounter::dropped_write_error)] += lost;
        account.events[static_cast<std::size_t>(EventCounter::written)] += sink_.stats().events;
        return account;
    }
    [[nodiscard]] std::uint64_t count(PacketCounter counter) const { return account().get(counter); }
    [[nodiscard]] std::uint64_t count(EventCounter counter) const { return account().get(counter); }
    [[nodiscard]] std::uint64_t count(MessageCounter counter) const { return account().get(counter); }
    [[nodiscard]] EventsFound events() const { return sink_.events(); }
    [[nodiscard]] std::uint64_t blocked(const Stage& stage, Blocked what) const {
        return stage.polls().blocked[static_cast<std::size_t>(what)];
    }

    /// At the end: what has not come back to where it belongs. Empty: everything has.
    [[nodiscard]] std::string not_given_back(const port::BufferPool& pool) const {
        std::string text;
        if (pool.in_use() != 0) text += std::to_string(pool.in_use()) + " packet buffers\n";
        for (const auto& rx : rx_) {
            if (rx->buffers_held() != 0) text += std::to_string(rx->buffers_held()) + " references\n";
            if (rx->cells_held() != 0) text += std::to_string(rx->cells_held()) + " copies\n";
        }
        for (const auto& ring : free_)
            if (ring->count() != shape_.output_buffers) text += "output buffers\n";
        for (const auto& ring : recycle_)
            if (!ring->empty()) text += "messages on their way back\n";
        for (const auto& ring : steer_)
            if (ring != nullptr && !ring->empty()) text += "packets that were steered\n";
        if (!run.builders_empty()) text += "events\n";
        return text;
    }

    [[nodiscard]] RxStage& rx(std::uint32_t i = 0) { return *rx_[i]; }
    [[nodiscard]] BuildStage& build(std::uint32_t i = 0) { return *build_[i]; }
    [[nodiscard]] WorkStage& work(std::uint32_t i = 0) { return *work_[i]; }
    [[nodiscard]] SinkThread& sink_thread() { return *sink_thread_; }
    [[nodiscard]] RxSignals& signals(std::uint32_t rx = 0) { return *signals_[rx]; }
    [[nodiscard]] port::Ring<port::Packet>& input(std::uint32_t rx = 0) { return *inputs_[rx]; }
    [[nodiscard]] std::atomic<bool>& input_ended(std::uint32_t rx = 0) { return ended_[rx]; }
    [[nodiscard]] port::Ring<port::Packet>& steered(std::uint32_t from, std::uint32_t to) {
        return *steer_[from * shape_.rx + to];
    }
    [[nodiscard]] port::Ring<assemble::Descriptor>& descriptors(std::uint32_t rx = 0, std::uint32_t shard = 0) {
        return *descriptors_[rx * shape_.builders + shard];
    }
    [[nodiscard]] port::Ring<assemble::Command>& commands(std::uint32_t rx = 0, std::uint32_t shard = 0) {
        return *commands_[rx * shape_.builders + shard];
    }
    [[nodiscard]] port::Ring<OutputBuffer*>& free_buffers(std::uint32_t worker = 0) { return *free_[worker]; }
    [[nodiscard]] port::Ring<OutputBuffer*>& full_buffers(std::uint32_t worker = 0) { return *full_[worker]; }
    /// Takes a closed event that no worker has taken, and gives it back to its builder with its messages.
    [[nodiscard]] std::optional<std::pair<std::uint64_t, assemble::EventCause>> take_event() {
        for (std::uint32_t i = 0; i < events_.size(); ++i) {
            std::array<assemble::Event*, 1> taken;
            if (events_[i]->pop(taken) == 0) continue;
            const std::pair found(taken[0]->number, taken[0]->cause);
            for (assemble::Message* message : taken[0]->messages)
                if (message != nullptr) recycle_[i / shape_.builders * shape_.rx + message->owner]->push(message);
            released_[i]->push(taken[0]);
            return found;
        }
        return std::nullopt;
    }
    [[nodiscard]] const Shape& shape() const { return shape_; }

    TimeNs now = 0;  ///< what hand-made polls are told
    RunSignals run;

private:
    static constexpr int patience = 20'000;

    template <class T>
    using RingPtr = std::unique_ptr<port::Ring<T>>;
    template <class T>
    [[nodiscard]] RingPtr<T> ring(std::uint32_t capacity) {
        return std::make_unique<port::Ring<T>>(unique_name(), capacity);
    }
    static std::string unique_name() {
        static std::uint64_t made = 0;
        return "test" + std::to_string(made++);
    }

    void make_streams() {
        StreamRuntime stream;
        stream.format = wire::find_format("ejfat");
        wire::FormatOptions options;
        options.message_bytes_max = 1U << 20U;
        stream.context = stream.format->make_context(options);
        stream.source_count = shape_.source_in_header ? shape_.sources : 1;
        stream.source_in_header = shape_.source_in_header;
        std::vector<std::uint32_t> ids;
        for (std::uint32_t i = 0; i < shape_.sources; ++i) ids.push_back(i);
        if (shape_.source_in_header) stream.source_ids = core::NumberIndex(ids);
        std::vector<steer::Rule> rules;
        for (std::uint32_t i = 0; i < shape_.sources; i += stream.source_count) {
            stream.first_source = i;
            steer::Rule rule;
            rule.key = first_port + i;
            rule.stream = static_cast<std::uint16_t>(streams_.size());
            rule.source = i;
            rule.owner = shape_.owner[i];
            rules.push_back(rule);
            streams_.push_back(stream);
        }
        // The last source may be a queue pair as well: what of it comes there.
        StreamRuntime roce;
        roce.roce = true;
        roce.format = wire::find_format("message");
        roce.context = roce.format->make_context({});
        roce.first_source = shape_.sources - 1;
        roce.source_count = 1;
        steer::Rule rule;
        rule.key = roce_qp;
        rule.stream = static_cast<std::uint16_t>(streams_.size());
        rule.source = roce.first_source;
        rule.owner = shape_.owner.back();
        streams_.push_back(roce);
        steering_.emplace(rules, std::vector<steer::Rule>{rule});
    }

    void make_rings() {
        const std::uint32_t events = 2 * shape_.open_max + shape_.queued_max + 128;
        for (std::uint32_t i = 0; i < shape_.rx; ++i) {
            signals_.push_back(std::make_unique<RxSignals>());
            inputs_.push_back(ring<port::Packet>(shape_.packet_ring));
            for (std::uint32_t to = 0; to < shape_.rx; ++to)
                steer_.push_back(i != to ? ring<port::Packet>(shape_.steer_ring) : nullptr);
            for (std::uint32_t shard = 0; shard < shape_.builders; ++shard) {
                descriptors_.push_back(ring<assemble::Descriptor>(shape_.descriptor_ring));
                commands_.push_back(ring<assemble::Command>(shape_.command_ring));
            }
        }
        ended_ = std::vector<std::atomic<bool>>(shape_.rx);
        for (std::uint32_t i = 0; i < shape_.workers; ++i) {
            for (std::uint32_t shard = 0; shard < shape_.builders; ++shard) {
                events_.push_back(ring<assemble::Event*>(events));
                released_.push_back(ring<assemble::Event*>(events));
            }
            for (std::uint32_t rx = 0; rx < shape_.rx; ++rx)
                recycle_.push_back(ring<assemble::Message*>(shape_.messages_max));
            if (shape_.to_file) make_output(i);
        }
    }

    void make_output(std::uint32_t worker) {
        free_.push_back(ring<OutputBuffer*>(shape_.output_buffers));
        full_.push_back(ring<OutputBuffer*>(shape_.output_buffers));
        for (std::uint32_t i = 0; i < shape_.output_buffers; ++i) {
            output_memory_.emplace_back(shape_.output_buffer_bytes);
            output_buffers_.push_back(std::make_unique<OutputBuffer>());
            output_buffers_.back()->memory = output_memory_.back().span();
            output_buffers_.back()->worker = worker;
            free_.back()->push(output_buffers_.back().get());
        }
    }

    void make_rx() {
        for (std::uint32_t i = 0; i < shape_.rx; ++i) {
            RxStage::Config config;
            config.index = static_cast<std::uint16_t>(i);
            config.wait = shape_.wait;
            config.steering = {&*steering_};
            if (i == 0 || !shape_.replay) config.rings = {{inputs_[i].get(), &ended_[i]}};
            for (std::uint32_t other = 0; other < shape_.rx; ++other) {
                config.steer_in.push_back({steer_[other * shape_.rx + i].get(), signals_[other].get()});
                config.steer_out.push_back({steer_[i * shape_.rx + other].get(), nullptr});
            }
            for (std::uint32_t shard = 0; shard < shape_.builders; ++shard) {
                config.descriptors.push_back(descriptors_[i * shape_.builders + shard].get());
                config.commands.push_back(commands_[i * shape_.builders + shard].get());
            }
            for (std::uint32_t worker = 0; worker < shape_.workers; ++worker)
                config.recycle.push_back(recycle_[worker * shape_.rx + i].get());
            config.table.owner = config.index;
            config.table.sources = shape_.sources;
            config.table.shards = shape_.builders;
            config.table.messages_max = shape_.messages_max;
            config.table.buffers_max = shape_.buffers_max;
            config.table.timeout_ns = shape_.timeout_ns;
            config.table.number_bits.assign(shape_.sources, 64);
            config.table.horizon = horizon;
            config.reassembly.buffers_max = shape_.buffers_max / 4;
            config.reassembly.datagrams_max = shape_.buffers_max / 8;
            for (const std::uint16_t owner : shape_.owner) config.table.own.push_back(owner == i ? 1 : 0);
            if (shape_.with_rx) shape_.with_rx(config);
            rx_.push_back(std::make_unique<RxStage>(config, streams_, *signals_[i], run));
            stages_.push_back(rx_.back().get());
        }
    }

    void make_build() {
        BuildStage::Config config;
        config.builder.sources = shape_.sources;
        config.builder.sources_needed = shape_.sources_needed;
        config.builder.open_max = shape_.open_max;
        config.builder.queued_max = shape_.queued_max;
        config.builder.messages_max = shape_.messages_max;
        config.builder.timeout_ns = shape_.timeout_ns;
        config.builder.horizon = horizon;
        config.builder.wait = shape_.wait;
        config.builder.overload = shape_.overload;
        config.builder.prescale = shape_.prescale;
        config.builder.owner = shape_.owner;
        config.builder.number_bits.assign(shape_.sources, 64);
        config.builder.rx_count = shape_.rx;
        config.keep_incomplete = shape_.keep_incomplete;
        run.builders = shape_.builders;
        if (shape_.builders > 1) board_ = std::make_unique<assemble::ShardBoard>(shape_.builders, 64);
        config.builder.board = board_.get();
        for (std::uint32_t shard = 0; shard < shape_.builders; ++shard) {
            config.builder.shard = shard;
            config.rx.clear();
            config.work.clear();
            for (std::uint32_t i = 0; i < shape_.rx; ++i)
                config.rx.push_back({&descriptors(i, shard), &commands(i, shard), signals_[i].get()});
            for (std::uint32_t i = 0; i < shape_.workers; ++i)
                config.work.push_back(
                    {events_[i * shape_.builders + shard].get(), released_[i * shape_.builders + shard].get()});
            if (shape_.with_build) shape_.with_build(config);
            build_.push_back(std::make_unique<BuildStage>(config, run));
            stages_.push_back(build_.back().get());
        }
    }

    void make_work() {
        for (std::uint32_t i = 0; i < shape_.workers; ++i) {
            WorkStage::Config config;
            config.to_file = shape_.to_file;
            config.sources_needed = shape_.sources_needed;
            config.sources.resize(shape_.sources);
            for (std::uint32_t shard = 0; shard < shape_.builders; ++shard)
                config.build.push_back(
                    {events_[i * shape_.builders + shard].get(), released_[i * shape_.builders + shard].get()});
            for (std::uint32_t rx = 0; rx < shape_.rx; ++rx)
                config.recycle.push_back(recycle_[i * shape_.rx + rx].get());
            if (shape_.to_file) {
                config.free_buffers = free_[i].get();
                config.full_buffers = full_[i].get();
            }
            auto encoder = std::make_unique<BytesEncoder>(BytesEncoder::Config{}, nullptr);
            work_.push_back(std::make_unique<WorkStage>(config, std::move(encoder), run));
            stages_.push_back(work_.back().get());
        }
    }

    void run_stage(Stage& stage) {
        core::hot_thread(true);
        std::uint64_t tsc = ::rte_rdtsc();
        // A wall clock for the workers, which hand over a buffer that is not full after a while of it.
        TimeNs time = 0;
        while (!run.exit.load(std::memory_order_relaxed)) {
            if (stage.counted_poll(time, tsc) == 0) std::this_thread::yield();
            time += ms;
        }
        core::hot_thread(false);
    }
    void stop_threads() {
        end_input();
        run.exit.store(true, std::memory_order_relaxed);
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
        if (sink_thread_ != nullptr) sink_thread_->join();
    }

    static constexpr std::uint32_t horizon = 8192;

    Shape shape_;
    MemorySink own_sink_;
    MemorySink& sink_;
    std::vector<StreamRuntime> streams_;
    std::optional<steer::Steering> steering_;
    std::vector<std::unique_ptr<RxSignals>> signals_;
    std::unique_ptr<assemble::ShardBoard> board_;
    std::vector<RingPtr<port::Packet>> inputs_;
    std::vector<std::atomic<bool>> ended_;
    std::vector<RingPtr<port::Packet>> steer_;  ///< from * rx + to
    std::vector<RingPtr<assemble::Descriptor>> descriptors_;
    std::vector<RingPtr<assemble::Command>> commands_;
    std::vector<RingPtr<assemble::Event*>> events_;  ///< worker * builders + shard
    std::vector<RingPtr<assemble::Event*>> released_;
    std::vector<RingPtr<assemble::Message*>> recycle_;  ///< worker * rx + rx
    std::vector<RingPtr<OutputBuffer*>> free_;
    std::vector<RingPtr<OutputBuffer*>> full_;
    std::vector<store::AlignedBytes> output_memory_;
    std::vector<std::unique_ptr<OutputBuffer>> output_buffers_;
    std::vector<std::unique_ptr<RxStage>> rx_;
    std::vector<std::unique_ptr<BuildStage>> build_;
    std::vector<std::unique_ptr<WorkStage>> work_;
    std::vector<Stage*> stages_;  ///< along the way of the data
    std::unique_ptr<SinkThread> sink_thread_;
    std::vector<std::thread> threads_;
    std::optional<std::uint32_t> sink_from_;  ///< the worker whose next buffer must follow
    std::uint32_t sink_next_ = 0;
    std::uint64_t received_ = 0;
};

/// A pool, a maker of packets for it, and the check that all of them came back.
class StagesTest : public testing::Test {
protected:
    /// Ends the run and checks that everything adds up and has been given back.
    static void expect_clean_end(Topology& topology, const port::BufferPool& pool) {
        EXPECT_EQ(topology.account().imbalance(), "");
        EXPECT_EQ(topology.not_given_back(pool), "");
        EXPECT_EQ(wrong_bytes(topology.events()), "");
    }
    void finish(Topology& topology) {
        topology.finish();
        expect_clean_end(topology, pool_);
    }
    void TearDown() override { EXPECT_EQ(pool_.in_use(), 0U) << "packet buffers that were not given back"; }

    port::BufferPool pool_{"made", {4096, 2048}};
    PacketMaker make_{pool_};
};

}  // namespace weir::stages::test

// The rings of a run: every edge between its lcores and threads, as the plan sizes them, each in the memory of the NUMA
// node that reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "assemble/event.hpp"
#include "pipeline/levels.hpp"
#include "plan/plan.hpp"
#include "port/buffers.hpp"
#include "port/ring.hpp"
#include "stages/stage.hpp"

namespace weir::pipeline {

/// Indices are those of the plan's lcores: `rx`, `shard` (of the builder), `worker`.
class RunRings {
public:
    template <class T>
    using Ring = port::Ring<T>;

    /// `capture`: a capture is replayed. `sinks`: how many there are; without any nothing comes after the workers.
    /// Throws core::RunError when EAL memory does not suffice.
    RunRings(const plan::Plan& plan, bool capture, std::size_t sinks);

    [[nodiscard]] Ring<port::Packet>& capture() noexcept { return *capture_.front(); }
    /// Between two different rx lcores.
    [[nodiscard]] Ring<port::Packet>& steer(std::size_t from, std::size_t to) noexcept {
        return *steer_[from * rx_count_ + to];
    }
    [[nodiscard]] Ring<assemble::Descriptor>& descriptors(std::size_t rx, std::size_t shard) noexcept {
        return *descriptors_[rx * shards_ + shard];
    }
    [[nodiscard]] Ring<assemble::Command>& commands(std::size_t rx, std::size_t shard) noexcept {
        return *commands_[rx * shards_ + shard];
    }
    [[nodiscard]] Ring<assemble::Event*>& events(std::size_t worker, std::size_t shard) noexcept {
        return *events_[worker * shards_ + shard];
    }
    [[nodiscard]] Ring<assemble::Event*>& released(std::size_t worker, std::size_t shard) noexcept {
        return *released_[worker * shards_ + shard];
    }
    [[nodiscard]] Ring<assemble::Message*>& recycle(std::size_t worker, std::size_t rx) noexcept {
        return *recycle_[worker * rx_count_ + rx];
    }
    // With sinks.
    [[nodiscard]] Ring<stages::OutputBuffer*>& free(std::size_t worker) noexcept { return *free_[worker]; }
    [[nodiscard]] Ring<stages::OutputBuffer*>& full(std::size_t worker) noexcept { return *full_[worker]; }
    /// From this sink to the next.
    [[nodiscard]] Ring<stages::OutputBuffer*>& after_sink(std::size_t sink) noexcept { return *sinks_[sink]; }

    /// Adds all rings, and what waits for the disk.
    void add_to(Levels& levels) const;

private:
    template <class T>
    using Rings = std::vector<std::unique_ptr<Ring<T>>>;

    struct Edge {
        std::string from;
        std::string to;
    };

    void make_steer(const plan::Plan& plan);
    void make_assembly(const plan::Plan& plan);
    void make_output(const plan::Plan& plan, std::size_t sinks);

    template <class T>
    void add(Levels& levels, const Rings<T>& rings) const;

    std::map<std::string, Edge> edges_;  ///< by the ring's name
    std::size_t rx_count_;
    std::size_t shards_;
    Rings<port::Packet> steer_;    ///< by rx lcore and rx lcore; null from one to itself
    Rings<port::Packet> capture_;  ///< one or none
    Rings<assemble::Descriptor> descriptors_;
    Rings<assemble::Command> commands_;
    Rings<assemble::Message*> recycle_;
    Rings<assemble::Event*> events_;
    Rings<assemble::Event*> released_;
    Rings<stages::OutputBuffer*> free_;
    Rings<stages::OutputBuffer*> full_;
    Rings<stages::OutputBuffer*> sinks_;
};

}  // namespace weir::pipeline

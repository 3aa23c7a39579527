// Memory that all processes of the benchmark share: what is to be done, and what was counted. The conductor writes the
// task and the step, each node its own seat.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "cluster/message.hpp"
#include "options.hpp"

namespace weir::fabric::bench {

/// What all nodes do at the same time; the next stage comes when all have reached this one.
enum class Stage : std::uint8_t {
    nothing,
    connect,  ///< until everybody is there
    prepare,  ///< memory for a turn
    go,       ///< until further notice
    pause,    ///< nothing new is begun
    finish,   ///< until everything that was begun has ended
    leave,
};

struct Task {
    Mode mode = Mode::n_to_n;
    std::uint64_t part_bytes = 0;
    std::uint32_t number = 0;  ///< of the turn, from 1 on: what comes late carries another one
};

/// Of one turn.
struct Counts {
    static constexpr std::size_t kinds = static_cast<std::size_t>(cluster::Kind::expelled) + 1;
    std::array<std::uint64_t, kinds> messages{};  ///< that left for another node, by kind
    std::uint64_t handed_over = 0;                ///< parts
    std::uint64_t received = 0;
    std::uint64_t blocks = 0;  ///< built, with all parts
    std::uint64_t wrong = 0;   ///< parts or blocks that are not what they should be

    Counts& operator+=(const Counts& other) noexcept {
        for (std::size_t kind = 0; kind < kinds; ++kind) messages[kind] += other.messages[kind];
        handed_over += other.handed_over;
        received += other.received;
        blocks += other.blocks;
        wrong += other.wrong;
        return *this;
    }
};

struct alignas(64) Seat {
    std::atomic<std::uint64_t> received_bytes{0};  ///< payload, of all turns
    std::atomic<std::uint32_t> reached{0};         ///< a step
    std::atomic<cluster::Block> next{0};           ///< pause: the first block that this readout node has not begun
    Counts counts;                                 ///< finish
    char error[256] = {};
    char network[256] = {};  ///< connect: what UCX has chosen
};

struct Board {
    static constexpr std::size_t nodes_max = 64;
    /// The stage, with a number that rises: see step_of().
    std::atomic<std::uint32_t> step{0};
    std::atomic<cluster::Block> last{0};  ///< finish: the first block that nobody begins
    Task task;
    std::array<Seat, nodes_max> seats;
};

[[nodiscard]] constexpr std::uint32_t step_of(std::uint32_t turn, Stage stage) noexcept {
    return turn * 8 + static_cast<std::uint32_t>(stage);
}
[[nodiscard]] constexpr Stage stage_of(std::uint32_t step) noexcept {
    return static_cast<Stage>(step % 8);
}

}  // namespace weir::fabric::bench

// Starts the nodes as processes of this machine and leads them through turns.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "board.hpp"

namespace weir::fabric::bench {

/// Of one mode in one turn.
struct Measured {
    double seconds = 0;
    double gigabytes = 0;    ///< payload that all builders received meanwhile
    double cpu_seconds = 0;  ///< of all nodes meanwhile
    Counts counts;           ///< of the whole turn, of all nodes
};

class Conductor {
public:
    Conductor(const Options& options, const std::string& transports);
    ~Conductor();
    Conductor(const Conductor&) = delete;
    Conductor& operator=(const Conductor&) = delete;

    [[nodiscard]] std::string network() const { return board_->seats.front().network; }
    /// Throws std::runtime_error: a node failed, or parts were lost.
    [[nodiscard]] Measured turn(Mode mode, std::uint64_t part_bytes);

private:
    struct Sample {
        double seconds = 0;
        double gigabytes = 0;
        double cpu_seconds = 0;
    };
    struct Unmap {
        void operator()(Board* board) const noexcept { ::munmap(board, sizeof(Board)); }
    };

    void start(const std::string& transports);
    void lead(Stage stage);
    void wait_for_all();
    void check_children();
    [[nodiscard]] bool have_all_reached() const;
    [[nodiscard]] Sample sample() const;
    [[nodiscard]] Counts counted() const;

    const Options& options_;
    std::unique_ptr<Board, Unmap> board_;
    std::vector<pid_t> children_;  ///< 0: has ended
    std::uint32_t turn_ = 0;
};

}  // namespace weir::fabric::bench

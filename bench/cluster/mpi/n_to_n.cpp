#include "n_to_n.hpp"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

namespace weir::cluster::bench {

namespace {

void exchange(std::vector<std::byte>& bytes, int to, int from) {
    const auto half = static_cast<int>(bytes.size() / 2);
    std::array<MPI_Request, 2> requests{};
    MPI_Irecv(bytes.data(), half, MPI_BYTE, from, 0, MPI_COMM_WORLD, requests.data());
    MPI_Isend(bytes.data() + half, half, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
}

void round(const Options& options, NodeId self, std::vector<std::byte>& bytes) {
    const int nodes = options.settings.nodes;
    for (int step = 1; step < nodes; ++step) {
        exchange(bytes, (self + step) % nodes, (self + nodes - step) % nodes);
        if (options.slow == self) usleep(static_cast<useconds_t>(options.slow_us));
        if (options.mode == Mode::lockstep) MPI_Barrier(MPI_COMM_WORLD);
    }
}

}  // namespace

Measured n_to_n(const Options& options, NodeId self) {
    const std::uint64_t nodes = options.settings.nodes;
    std::vector<std::byte> bytes(2 * options.part_bytes);
    for (std::uint64_t i = 0; i < std::max<std::uint64_t>(1, options.warm_blocks / nodes); ++i)
        round(options, self, bytes);
    const std::uint64_t rounds = std::max<std::uint64_t>(1, options.measured_blocks / nodes);
    const double from = MPI_Wtime();
    for (std::uint64_t i = 0; i < rounds; ++i) round(options, self, bytes);
    Measured measured;
    measured.seconds = MPI_Wtime() - from;
    measured.bytes = rounds * (nodes - 1) * options.part_bytes;
    return measured;
}

}  // namespace weir::cluster::bench

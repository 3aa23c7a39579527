// Event building over MPI: the core of lib/data/cluster as it is, a network that MPI makes, and no detector.
// scripts/simulate runs it in a simulator; with mpirun it runs on machines. One line of JSON on the standard output.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "building.hpp"
#include "n_to_n.hpp"

namespace {

using namespace weir::cluster::bench;

Measured measure(const Options& options, weir::cluster::NodeId self) {
    if (options.mode != Mode::build) return n_to_n(options, self);
    Building building(options, self);
    const Measured measured = building.run();
    MPI_Barrier(MPI_COMM_WORLD);
    return measured;
}

void run(int count, char** words) {
    int self = 0;
    int nodes = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &nodes);
    const Options options = parse(count, words, static_cast<std::uint16_t>(nodes));
    const Measured own = measure(options, static_cast<weir::cluster::NodeId>(self));
    std::vector<Measured> all(self == 0 ? static_cast<std::size_t>(nodes) : 0);
    MPI_Gather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (self == 0) print(all);
    if (options.mode == Mode::build && !options.drain) {  // much is on its way yet, and nobody waits for it
        if (self == 0) std::_Exit(0);                     // a simulator is one process
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

}  // namespace

int main(int count, char** words) {
    MPI_Init(&count, &words);
    int status = 0;
    try {
        run(count, words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cluster_mpi: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
        status = 1;
    }
    MPI_Finalize();
    return status;
}

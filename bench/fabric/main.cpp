// Event building over a network beside plain N-to-N over the same one: lib/data/cluster on lib/fabric, as processes of
// this machine. scripts/bench cluster runs it; docs/internals/benchmarks/EVENT_BUILDING.md says what the numbers mean.

#include <fmt/core.h>
#include <stdlib.h>
#include <unistd.h>

#include <exception>
#include <fstream>
#include <stdexcept>

#include "machine.hpp"
#include "report.hpp"

namespace {

using namespace weir::fabric::bench;

/// Event building is always between the other two, and the order turns round each time.
Case measure(const Options& options, Conductor& conductor, std::uint64_t part_bytes) {
    Case one{.part_bytes = part_bytes, .turns = {}};
    for (std::uint32_t turn = 0; turn < options.turns; ++turn) {
        const bool other_way = turn % 2 == 1;
        for (const Mode mode : {other_way ? Mode::n_to_n_batched : Mode::n_to_n, Mode::building,
                                other_way ? Mode::n_to_n : Mode::n_to_n_batched})
            one.turns[static_cast<std::size_t>(mode)].push_back(conductor.turn(mode, part_bytes));
    }
    return one;
}

std::vector<Case> measure_all(const Options& options, const std::string& transports) {
    Conductor conductor(options, transports);
    print_head(options, transports, conductor.network());
    std::vector<Case> cases;
    for (const std::uint64_t bytes : options.sizes) {
        cases.push_back(measure(options, conductor, bytes));
        print_case(cases.back());
    }
    print_verdict(cases);
    return cases;
}

void run(const Options& options) {
    double load = 0;
    ::getloadavg(&load, 1);
    fmt::print("load before: {:.1f} on {} CPUs; who has nothing to do {}\n", load, ::sysconf(_SC_NPROCESSORS_ONLN),
               options.spins ? "looks again at once" : "sleeps until something comes");
    nlohmann::json results = nlohmann::json::array();
    for (const std::string& transports : options.transports)
        for (const Case& one : measure_all(options, transports)) results.push_back(json_of(one, transports));
    if (options.json.empty()) return;
    const nlohmann::json all{{"machine", weir::bench::describe_machine(options.commit)},
                             {"pairs", options.pairs},
                             {"credits", options.credits},
                             {"parallel", options.parallel},
                             {"window", options.window()},
                             {"seconds", options.seconds},
                             {"results", results}};
    std::ofstream(options.json) << all.dump(1) << '\n';
}

}  // namespace

int main(int count, char** words) {
    try {
        run(parse(count, words));
        return 0;
    } catch (const std::invalid_argument& error) {
        fmt::print(stderr, "cluster_bench: {}\nusage: {}\n", error.what(), usage());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "cluster_bench: {}\n", error.what());
        return 1;
    }
}

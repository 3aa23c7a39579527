// Event building over a network of flows: the core of lib/data/cluster as it is, in one thread, without MPI.
// scripts/simulate runs it. One line of JSON on the standard output, and what it took to find it on the standard error.

#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "exchange.hpp"
#include "fat_tree.hpp"
#include "flows.hpp"
#include "simulation.hpp"

namespace {

using namespace weir::cluster::bench;
using weir::cluster::NodeId;

/// What headers of 4 KiB frames leave of 100 Gb/s.
constexpr double link_bytes_per_ns = 12.5 * 0.97;

struct Network {
    NodeId nodes = 0;
    NodeId nodes_per_leaf = 0;
    std::string places;  ///< a file with the place of each node; empty: its own
    double tolerance = 0.05;
};

std::vector<NodeId> read_places(const std::string& path) {
    std::vector<NodeId> places;
    if (path.empty()) return places;
    std::ifstream file(path);
    if (!file) throw std::invalid_argument(path + " cannot be read");
    for (NodeId place = 0; file >> place;) places.push_back(place);
    return places;
}

/// Takes its own words, with their values, out of the others.
Network take_network(std::vector<char*>& words) {
    Network network;
    for (std::size_t i = 1; i + 1 < words.size();) {
        const std::string word = words[i];
        const std::string value = words[i + 1];
        if (word == "--nodes")
            network.nodes = static_cast<NodeId>(std::stoul(value));
        else if (word == "--leaf")
            network.nodes_per_leaf = static_cast<NodeId>(std::stoul(value));
        else if (word == "--places")
            network.places = value;
        else if (word == "--tolerance")
            network.tolerance = std::stod(value);
        else {
            i += 2;
            continue;
        }
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    }
    if (network.nodes < 2) throw std::invalid_argument("--nodes: two at least");
    return network;
}

void run(std::vector<char*> words) {
    const Network network = take_network(words);
    const Options options = parse(static_cast<int>(words.size()), words.data(), network.nodes);
    const FatTree tree(network.nodes, network.nodes_per_leaf, read_places(network.places));
    Flows flows({.links = tree.links(), .bytes_per_ns = link_bytes_per_ns, .tolerance = network.tolerance});
    print(options.mode == Mode::build ? Simulation(options, tree, flows).run() : Exchange(options, tree, flows).run());
    std::fprintf(
        stderr, "flows %llu, levels %llu, cut off %llu\n", static_cast<unsigned long long>(flows.stats().flows),
        static_cast<unsigned long long>(flows.stats().levels), static_cast<unsigned long long>(flows.stats().cut_off));
}

}  // namespace

int main(int count, char** words) {
    try {
        run({words, words + count});
    } catch (const std::exception& error) {
        std::fprintf(stderr, "cluster_flow: %s\n", error.what());
        return 1;
    }
    return 0;
}

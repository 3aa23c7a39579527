#include "options.hpp"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "board.hpp"

namespace weir::fabric::bench {

namespace {

std::vector<std::uint64_t> parse_sizes(const std::string& text) {
    std::vector<std::uint64_t> sizes;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) sizes.push_back(std::stoull(word) << 10U);
    return sizes;
}

void be_quick(Options& options) {
    options.turns = 3;
    options.seconds = 0.2;
    options.warm_seconds = 0.08;
}

void set(Options& options, const std::string& key, const std::string& value) {
    if (key == "--nodes") {
        options.pairs = static_cast<cluster::NodeId>(std::stoul(value));
    } else if (key == "--transports") {
        options.transports = {value};
    } else if (key == "--sizes") {
        options.sizes = parse_sizes(value);
    } else if (key == "--turns") {
        options.turns = static_cast<std::uint32_t>(std::stoul(value));
    } else if (key == "--seconds") {
        options.seconds = std::stod(value);
    } else if (key == "--credits") {
        options.credits = static_cast<std::uint32_t>(std::stoul(value));
    } else if (key == "--parallel") {
        options.parallel = static_cast<std::uint32_t>(std::stoul(value));
    } else if (key == "--sends") {
        options.sends = static_cast<std::uint32_t>(std::stoul(value));
    } else if (key == "--json") {
        options.json = value;
    } else if (key == "--commit") {
        options.commit = value;
    } else {
        throw std::invalid_argument(key + " is no option");
    }
}

void check(const Options& options) {
    if (options.pairs == 0 || options.nodes() > Board::nodes_max)
        throw std::invalid_argument("--nodes: from 1 to " + std::to_string(Board::nodes_max / 2));
    const bool any_zero = options.turns == 0 || options.credits == 0 || options.parallel == 0 || options.sizes.empty();
    if (any_zero || std::ranges::count(options.sizes, 0U) > 0 || options.seconds <= 0)
        throw std::invalid_argument("none of these may be 0");
}

}  // namespace

/// A builder has a block open for each credit, and asks for so many parts of each at a time.
std::uint32_t Options::window() const noexcept {
    return std::max(1U, credits * std::min<std::uint32_t>(parallel, pairs) / pairs);
}

cluster::Settings settings_of(const Options& options) {
    cluster::Settings settings;
    settings.nodes = options.nodes();
    for (cluster::NodeId node = 0; node < settings.nodes; ++node)
        (is_readout(node) ? settings.readouts : settings.builders).insert(node);
    settings.managers.insert(1);
    settings.credits = options.credits;
    settings.parallel = options.parallel;
    settings.sends = options.sends;
    settings.timeout_ns = settings.join_wait_ns = 3600 * core::ns_per_s;  // no node dies
    return settings;
}

Options parse(int count, char** words) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string key = words[i];
        if (key == "--quick") {
            be_quick(options);
        } else if (i + 1 < count) {
            set(options, key, words[++i]);
        } else {
            throw std::invalid_argument(key);
        }
    }
    check(options);
    options.spins = ::sysconf(_SC_NPROCESSORS_ONLN) >= options.nodes();
    return options;
}

std::string usage() {
    return "cluster_bench [--quick] [--nodes N] [--transports UCX_TLS] [--sizes KIB,KIB] [--turns N] [--seconds S] "
           "[--credits N] [--parallel N] [--sends N] [--json FILE]";
}

}  // namespace weir::fabric::bench

#include "options.hpp"

#include <fstream>
#include <functional>
#include <map>
#include <stdexcept>

namespace weir::cluster::bench {

namespace {

template <class T>
T one_of(const std::string& word, const std::map<std::string, T>& names) {
    const auto found = names.find(word);
    if (found == names.end()) throw std::invalid_argument("'" + word + "' is none of the choices");
    return found->second;
}

std::vector<NodeId> read_list(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw std::invalid_argument(path + " cannot be read");
    std::vector<NodeId> list;
    for (NodeId node = 0; file >> node;) list.push_back(node);
    return list;
}

/// `builders`: that do nothing else, evenly spread; 0: every node is readout and builder.
void set_roles(Settings& settings, std::uint16_t builders) {
    if (builders > settings.nodes / 2) throw std::invalid_argument("--builders is more than half of the nodes");
    const unsigned every = builders == 0 ? 1U : settings.nodes / builders;
    for (NodeId node = 0; node < settings.nodes; ++node) {
        const bool builds = node % every == every - 1 && (builders == 0 || node / every < builders);
        if (!builds || builders == 0) settings.readouts.insert(node);
        if (builds) settings.builders.insert(node);
    }
}

using Setters = std::map<std::string, std::function<void(const std::string&)>>;

Setters setters(Options& options, std::uint16_t& builders) {
    const auto number = [](auto& where) {
        return [&where](const std::string& word) {
            where = static_cast<std::decay_t<decltype(where)>>(std::stoull(word));
        };
    };
    Settings& settings = options.settings;
    return {
        {"--mode",
         [&](const std::string& word) {
             options.mode =
                 one_of<Mode>(word, {{"build", Mode::build}, {"n-to-n", Mode::n_to_n}, {"lockstep", Mode::lockstep}});
         }},
        {"--builders", number(builders)},
        {"--strategy",
         [&](const std::string& word) {
             settings.strategy = one_of<Strategy>(word, {{"pull", Strategy::pull}, {"push", Strategy::push}});
         }},
        {"--order",
         [&](const std::string& word) {
             settings.order =
                 one_of<Order>(word, {{"linear", Order::linear}, {"random", Order::random}, {"listed", Order::listed}});
         }},
        {"--list", [&](const std::string& word) { settings.list = read_list(word); }},
        {"--credits", number(settings.credits)},
        {"--parallel", number(settings.parallel)},
        {"--seed", number(settings.seed)},
        {"--part", number(options.part_bytes)},
        {"--sends", number(settings.sends)},
        {"--barrier",
         [&](const std::string& word) {
             settings.barrier = one_of<bool>(word, {{"no", false}, {"yes", true}});
         }},
        {"--slot-us", [&](const std::string& word) { settings.slot_ns = std::stol(word) * 1000; }},
        {"--apart-us", number(options.apart_us)},
        {"--clocks-apart-us", number(options.clocks_apart_us)},
        {"--receives", number(options.receives)},
        {"--warm", number(options.warm_blocks)},
        {"--measured", number(options.measured_blocks)},
        {"--held", number(options.held_blocks)},
        {"--slow", [&](const std::string& word) { options.slow = static_cast<NodeId>(std::stoul(word)); }},
        {"--slow-us", number(options.slow_us)},
        {"--drain",
         [&](const std::string& word) {
             options.drain = one_of<bool>(word, {{"no", false}, {"yes", true}});
         }},
    };
}

void fill_in(Options& options) {
    Settings& settings = options.settings;
    const std::uint64_t builders = settings.builders.size();
    if (options.warm_blocks == 0) options.warm_blocks = builders * settings.credits;
    if (options.measured_blocks == 0) options.measured_blocks = builders * settings.credits;
    if (options.held_blocks == 0) options.held_blocks = builders * settings.credits * 5 / 4;
    if (options.receives == 0)
        options.receives = settings.strategy == Strategy::pull ? settings.credits * settings.parallel : 32;
    if (settings.order == Order::listed && settings.list.size() != settings.nodes)
        throw std::invalid_argument("--list does not have every node once");
    if (options.held_blocks < builders) throw std::invalid_argument("--held is less than one block for each builder");
}

}  // namespace

Options parse(int count, char** words, std::uint16_t nodes) {
    Options options;
    Settings& settings = options.settings;
    settings.nodes = nodes;
    settings.managers.insert(0);
    settings.timeout_ns = settings.join_wait_ns = 3600 * core::ns_per_s;  // no node dies
    std::uint16_t builders = 0;
    const Setters known = setters(options, builders);
    for (int i = 1; i < count; i += 2) {
        const auto setter = known.find(words[i]);
        if (setter == known.end() || i + 1 == count)
            throw std::invalid_argument(std::string(words[i]) + ": " + usage());
        setter->second(words[i + 1]);
    }
    set_roles(settings, builders);
    fill_in(options);
    return options;
}

std::string usage() {
    Options options;
    std::uint16_t builders = 0;
    std::string text = "each with a value:";
    for (const auto& [name, setter] : setters(options, builders)) text += " " + name;
    return text;
}

}  // namespace weir::cluster::bench

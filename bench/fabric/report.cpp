#include "report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weir::fabric::bench {

namespace {

constexpr double aim = 0.97;

Quartiles quartiles(std::vector<double> values) {
    std::ranges::sort(values);
    const auto at = [&](double part) {
        const double place = part * static_cast<double>(values.size() - 1);
        const auto below = static_cast<std::size_t>(place);
        const std::size_t above = std::min(below + 1, values.size() - 1);
        return std::lerp(values[below], values[above], place - static_cast<double>(below));
    };
    return {at(0.25), at(0.5), at(0.75)};
}

const std::vector<Measured>& turns_of(const Case& one, Mode mode) {
    return one.turns[static_cast<std::size_t>(mode)];
}

double rate(const Measured& turn) {
    return turn.gigabytes / turn.seconds;
}

double cpu_per_gb(const Measured& turn) {
    return turn.cpu_seconds / turn.gigabytes;
}

template <class Value>
Quartiles of_turns(const Case& one, Mode mode, Value&& value) {
    std::vector<double> values;
    for (const Measured& turn : turns_of(one, mode)) values.push_back(value(turn));
    return quartiles(std::move(values));
}

/// Of neighbours in time.
template <class Value>
Quartiles ratio(const Case& one, Mode above, Mode below, Value&& value) {
    std::vector<double> values;
    for (std::size_t turn = 0; turn < turns_of(one, above).size(); ++turn)
        values.push_back(value(turns_of(one, above)[turn]) / value(turns_of(one, below)[turn]));
    return quartiles(std::move(values));
}

Quartiles rate_ratio(const Case& one, Mode of) {
    return ratio(one, Mode::building, of, rate);
}

/// What the ratio would be if CPU time were all that counts.
Quartiles cpu_ratio(const Case& one) {
    return ratio(one, Mode::n_to_n, Mode::building, cpu_per_gb);
}

/// Messages between nodes for each part, without those that carry the parts.
double messages_per_part(const Measured& turn) {
    const auto& messages = turn.counts.messages;
    const auto all = std::accumulate(messages.begin(), messages.end(), std::uint64_t{0});
    const std::uint64_t parts = turn.counts.handed_over;
    return static_cast<double>(all - parts) / static_cast<double>(parts);
}

std::string text(const Quartiles& value, int digits) {
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", value.median, digits, value.low, digits, value.high, digits);
}

nlohmann::json list_of(const Case& one, Mode mode) {
    nlohmann::json list = nlohmann::json::array();
    for (const Measured& turn : turns_of(one, mode)) {
        nlohmann::json messages;
        for (std::size_t kind = 0; kind < Counts::kinds; ++kind)
            if (turn.counts.messages[kind] > 0)
                messages[std::string(name_of(static_cast<cluster::Kind>(kind)))] = turn.counts.messages[kind];
        list.push_back({{"gb_per_s", rate(turn)},
                        {"cpu_s_per_gb", cpu_per_gb(turn)},
                        {"parts", turn.counts.handed_over},
                        {"messages", messages}});
    }
    return list;
}

}  // namespace

void print_head(const Options& options, const std::string& transports, const std::string& network) {
    fmt::print("\n{} readout nodes x {} builders over UCX_TLS={}, which is {}; {} turns of {} s of each\n",
               options.pairs, options.pairs, transports, network, options.turns, options.seconds);
    fmt::print("N-to-N: at most {} parts on their way in each pair, one message back for each part (batched: for {})\n",
               options.window(), std::max(1U, options.window() / 2));
    fmt::print("event building: pull, {} credits, {} parts of a block at a time\n", options.credits, options.parallel);
    fmt::print(
        "GB/s of all builders together, and ratios of neighbours in time: median (quartiles); by CPU time: what "
        "N-to-N takes for a part / what event building takes\n");
    fmt::print("{:>8} {:>21} {:>21} {:>21} {:>21} {:>21} {:>21} {:>20} {:>17}\n", "KiB", "N-to-N", "batched",
               "building", "building/N-to-N", "building/batched", "by CPU time", "CPU s/GB", "messages/part");
}

void print_case(const Case& one) {
    const auto rates = [&](Mode mode) { return text(of_turns(one, mode, rate), 3); };
    const auto of_all = [&](auto&& value, int digits) {
        std::string all;
        for (const Mode mode : {Mode::n_to_n, Mode::n_to_n_batched, Mode::building})
            all += fmt::format("{}{:.{}f}", all.empty() ? "" : ", ", of_turns(one, mode, value).median, digits);
        return all;
    };
    fmt::print("{:>8} {:>21} {:>21} {:>21} {:>21} {:>21} {:>21} {:>20} {:>17}\n", one.part_bytes >> 10U,
               rates(Mode::n_to_n), rates(Mode::n_to_n_batched), rates(Mode::building),
               text(rate_ratio(one, Mode::n_to_n), 2), text(rate_ratio(one, Mode::n_to_n_batched), 2),
               text(cpu_ratio(one), 2), of_all(cpu_per_gb, 2), of_all(messages_per_part, 2));
    std::fflush(stdout);
}

void print_verdict(const std::vector<Case>& cases) {
    for (const Mode mode : {Mode::n_to_n, Mode::n_to_n_batched}) {
        const auto reaches = [mode](const Case& one) { return rate_ratio(one, mode).median >= aim; };
        const auto last_below = std::find_if_not(cases.rbegin(), cases.rend(), reaches);
        const std::string where = last_below == cases.rbegin()
                                      ? "not by the largest parts"
                                      : fmt::format("from {} KiB on", last_below.base()->part_bytes >> 10U);
        fmt::print("{:.2f} of {}: {}\n", aim, mode == Mode::n_to_n ? "N-to-N" : "N-to-N, batched", where);
    }
}

nlohmann::json json_of(const Case& one, const std::string& transports) {
    return {{"transports", transports},
            {"part_bytes", one.part_bytes},
            {"n_to_n", list_of(one, Mode::n_to_n)},
            {"n_to_n_batched", list_of(one, Mode::n_to_n_batched)},
            {"building", list_of(one, Mode::building)}};
}

}  // namespace weir::fabric::bench

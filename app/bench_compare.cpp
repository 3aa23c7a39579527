#include "bench_compare.hpp"

#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/comparison.hpp"
#include "bench/results.hpp"
#include "core/error.hpp"
#include "options_common.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

constexpr const char* compare_usage = R"(weir bench compare BEFORE.json AFTER.json [options]

Says what has changed between two results of `weir bench --json`, by the ranks of their repeats: a difference that chance explains
as often as one time in twenty is none. That takes at least four repeats on each side (--repeats).

Exit status: 0 nothing is worse; 1 something is, or is missing: it is in BEFORE, and AFTER does not have it, or has no rate for it.

)";

}  // namespace

int bench_compare_command(const std::vector<std::string>& args) {
    po::options_description description = options_for_terminal("Options");
    // clang-format off
    description.add_options()
        ("width", po::value<double>()->default_value(2)->value_name("PERCENT"), "a smaller change of the median is none")
        ("allow-missing", "what is missing is not worse")
        ("json", "print JSON")
        ("help,h", "this text");
    // clang-format on
    po::options_description all = description;
    all.add_options()("file", po::value<std::vector<std::string>>());
    const po::variables_map given = parse(args, all, "file");
    if (given.count("help") > 0) {
        print_help(compare_usage, description);
        return 0;
    }
    const auto files =
        given.count("file") > 0 ? given["file"].as<std::vector<std::string>>() : std::vector<std::string>();
    core::require(files.size() == 2, "weir bench compare needs two files, BEFORE.json and AFTER.json");
    bench::ComparisonRules rules;
    rules.width = given["width"].as<double>() / 100;
    core::require(rules.width >= 0 && rules.width < 1, "--width: accepted: 0 to 99 percent");
    rules.allow_missing = given.count("allow-missing") > 0;
    bench::Results before = bench::read_results(files[0]);
    bench::Results after = bench::read_results(files[1]);
    before.title = files[0];
    after.title = files[1];
    const bench::Comparison comparison = bench::compare(before, after, rules);
    if (given.count("json") > 0)
        std::cout << to_json(comparison).dump(1) << '\n';
    else
        std::cout << comparison_text(comparison, columns_of(STDOUT_FILENO));
    return changed_for_the_worse(comparison) ? 1 : 0;
}

}  // namespace weir::app

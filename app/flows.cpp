#include "command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "config/run_config.hpp"
#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "options_common.hpp"
#include "plan/stream_rules.hpp"
#include "steer/classifier.hpp"
#include "steer/rule_parser.hpp"
#include "store/capture/reader.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

constexpr const char* flows_usage = R"(weir flows check FILE [--capture CAPTURE] [--json]
weir flows print --config FILE [--port NAME]

Reads flow rules in the syntax of dpdk-testpmd (docs/guides/FLOWS.md). With a capture it says for each rule how many packets it
takes, and with --json also which rule takes each packet, and what becomes of it: the queue, the mark, or dropped. This is
what a network card does with these rules if it does them all.

`print` shows the rules that a run gives its ports: those of the configuration's rule files, or where there are none and
several queues, those that weir writes from the streams. The output is a rule file.

Examples:
  weir flows check flows/jungfrau-2-modules.flow
  weir flows check det.flow --capture run7.pcap
  weir flows check det.flow --capture run7.pcap --json
  weir flows print --config det.toml > det.flow

)";

template <class T>
nlohmann::json or_null(const std::optional<T>& value) {
    return value.has_value() ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

struct Result {
    std::vector<std::uint64_t> hits;
    std::uint64_t packets = 0;
    std::uint64_t unmatched = 0;
    std::uint64_t dropped = 0;
};

/// Runs a capture through the rules. Writes an entry per packet while it reads: captures are larger than memory.
Result classify(const steer::Classifier& classifier, const std::string& capture, bool json) {
    Result result{.hits = std::vector<std::uint64_t>(classifier.rules().size())};
    store::CaptureReader reader(capture);
    store::CaptureReader::Record record;
    while (reader.next(record)) {
        const steer::Verdict verdict = classifier.classify(steer::read_fields(record.bytes));
        if (verdict.rule.has_value())
            ++result.hits[*verdict.rule];
        else
            ++result.unmatched;
        result.dropped += verdict.dropped ? 1 : 0;
        if (json) {
            const nlohmann::json rule = verdict.rule.has_value()
                                            ? nlohmann::json(classifier.rules()[*verdict.rule].line)
                                            : nlohmann::json(nullptr);
            fmt::print("{}{}", result.packets > 0 ? ",\n  " : "",
                       nlohmann::json{{"rule", rule},
                                      {"queue", or_null(verdict.queue)},
                                      {"mark", or_null(verdict.mark)},
                                      {"dropped", verdict.dropped}}
                           .dump());
        }
        ++result.packets;
    }
    for (const std::string& warning : reader.warnings()) core::print_stderr("warning: {}\n", warning);
    return result;
}

void print_json(const steer::Classifier& classifier, const std::string& capture) {
    fmt::print("{{\"packets\": [");
    Result result{.hits = std::vector<std::uint64_t>(classifier.rules().size())};
    if (!capture.empty()) result = classify(classifier, capture, true);
    nlohmann::json rules = nlohmann::json::array();
    for (std::size_t i = 0; i < classifier.rules().size(); ++i)
        rules.push_back({{"line", classifier.rules()[i].line},
                         {"hits", result.hits[i]},
                         {"text", steer::to_text(classifier.rules()[i])}});
    fmt::print("],\n\"rules\": {}}}\n", rules.dump());
}

void print_text(const steer::Classifier& classifier, const std::string& capture) {
    if (capture.empty()) {
        for (const steer::FlowRule& rule : classifier.rules())
            fmt::print("line {:4}  {}\n", rule.line, steer::to_text(rule));
        fmt::print("{} rules, all understood\n", classifier.rules().size());
        return;
    }
    const Result result = classify(classifier, capture, false);
    for (std::size_t i = 0; i < classifier.rules().size(); ++i)
        fmt::print("line {:4}  {:10} packets  {}\n", classifier.rules()[i].line, result.hits[i],
                   steer::to_text(classifier.rules()[i]));
    fmt::print("{} packets: {} matched a rule ({} dropped by one), {} matched none\n", result.packets,
               result.packets - result.unmatched, result.dropped, result.unmatched);
}

int flows_command(const std::vector<std::string>& args) {
    po::options_description description = options_for_terminal("Options");
    // clang-format off
    description.add_options()
        ("help,h", "this text")
        ("capture", po::value<std::string>()->default_value("")->value_name("CAPTURE"), "check: pcap or pcapng file to run through the rules")
        ("config", po::value<std::string>()->value_name("FILE"), "print: the configuration")
        ("port", po::value<std::string>()->default_value("")->value_name("NAME"), "print: of this port only")
        ("json", "check: as JSON, with an entry per packet, in order");
    po::options_description hidden;
    hidden.add_options()("word", po::value<std::vector<std::string>>());
    // clang-format on
    po::options_description all;
    all.add(description).add(hidden);
    const po::variables_map given = parse(args, all, "word");
    if (given.count("help") > 0) {
        print_help(flows_usage, description);
        return 0;
    }
    const auto words =
        given.count("word") > 0 ? given["word"].as<std::vector<std::string>>() : std::vector<std::string>{};
    if (words.size() == 1 && words[0] == "print") {
        if (given.count("config") == 0)
            throw core::UsageError("weir flows print needs --config FILE (weir flows --help)");
        const config::RunConfig config = config::load_config(given["config"].as<std::string>());
        fmt::print("{}", plan::flow_rules_text(config, given["port"].as<std::string>()));
        return 0;
    }
    if (words.size() != 2 || words[0] != "check")
        throw core::UsageError("weir flows: expected 'check' and one file with rules, or 'print' (weir flows --help)");
    const steer::Classifier classifier(steer::load_rules(words[1]));
    const std::string capture = given["capture"].as<std::string>();
    if (given.count("json") > 0)
        print_json(classifier, capture);
    else
        print_text(classifier, capture);
    return 0;
}

}  // namespace

Command flows_entry() {
    return {"flows", "check flow rules (testpmd's syntax), try them on a capture, print those of a configuration",
            flows_command};
}

}  // namespace weir::app

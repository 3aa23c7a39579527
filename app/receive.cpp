// `weir receive`: takes the events of a stream, and writes them as runs.
#include "command.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.hpp"
#include "core/print_stderr.hpp"
#include "interrupt.hpp"
#include "observe/run_report.hpp"
#include "options_common.hpp"
#include "run_text.hpp"
#include "stream/receiver.hpp"
#include "terminal.hpp"

namespace weir::app {

namespace po = boost::program_options;

namespace {

constexpr const char* receive_usage = R"(weir receive tcp://HOST:PORT --out DIR [options]

Connects to a stream (ZeroMQ PULL; DECTRIS Stream V2: a sink of kind "stream" of another weir, or a detector's own
server) and writes each series that comes as a run in DIR, which `weir inspect` verifies. Images are kept as they came,
packed or not. Counts what is missing by the numbers of the images, and what could not be understood, and compares that
with what the sender says at the end. One stream goes to one receiver: two at the same port would share its events.

Ends with Ctrl-C, with the end of a series if --series says how many, or as --events and --idle-exit say.

Exit status: 0 something came and was written, 1 nothing came, or it could not be written, 2 bad usage, 3
--require-lossless does not hold.

Examples:
  weir receive tcp://daq1:31001 --out /data/received
  weir receive tcp://daq1:31001 --out copies --series 1 --require-lossless --report copies.json

)";

struct ReceiveOptions {
    std::string address;
    std::string out;
    std::string report;
    std::string require;  ///< --require-lossless: empty, "yes" or "known"
    std::optional<std::uint64_t> events;
    std::optional<std::uint64_t> series;
    std::optional<double> idle_exit_s;
    bool json = false;
    bool quiet = false;
};

std::optional<ReceiveOptions> parse_receive_options(const std::vector<std::string>& args) {
    po::options_description description = options_for_terminal("Options");
    // clang-format off
    description.add_options()
        ("out", po::value<std::string>()->value_name("DIR"), "the folder in which runs are made, each with the name of its series")
        ("events", po::value<std::uint64_t>()->value_name("N"), "end after so many events")
        ("series", po::value<std::uint64_t>()->value_name("N"), "end when so many series have ended")
        ("idle-exit", po::value<double>()->value_name("S"), "end when nothing has come for so many seconds")
        ("json", "print the account as JSON")
        ("report", po::value<std::string>()->default_value("")->value_name("FILE"), "write the account as JSON to this file")
        ("require-lossless", po::value<std::string>()->implicit_value("yes")->value_name("yes|known"), "exit with status 3 if an event of a series did not come or is incomplete, or if nothing shows whether all came; `known` lets the second pass")
        ("quiet", "print nothing but errors")
        ("help,h", "this text");
    po::options_description hidden;
    hidden.add_options()("address", po::value<std::vector<std::string>>());
    // clang-format on
    po::options_description all;
    all.add(description).add(hidden);
    const po::variables_map given = parse(args, all, "address");
    if (given.count("help") > 0) {
        print_help(receive_usage, description);
        return {};
    }
    const auto addresses =
        given.count("address") > 0 ? given["address"].as<std::vector<std::string>>() : std::vector<std::string>{};
    if (addresses.size() != 1)
        throw core::UsageError(
            fmt::format("weir receive: found {} addresses; accepted: one, as tcp://daq1:31001", addresses.size()));
    if (given.count("out") == 0) throw core::UsageError("weir receive needs --out DIR (weir receive --help)");
    ReceiveOptions options;
    options.address = addresses.front();
    options.out = given["out"].as<std::string>();
    options.report = given["report"].as<std::string>();
    if (given.count("events") > 0) options.events = given["events"].as<std::uint64_t>();
    if (given.count("series") > 0) options.series = given["series"].as<std::uint64_t>();
    if (given.count("idle-exit") > 0) options.idle_exit_s = given["idle-exit"].as<double>();
    if (options.idle_exit_s && (!std::isfinite(*options.idle_exit_s) || *options.idle_exit_s <= 0))
        throw core::UsageError("weir receive: --idle-exit: accepted: more than 0 seconds");
    options.json = given.count("json") > 0;
    options.require = required_lossless(given);
    options.quiet = given.count("quiet") > 0;
    return options;
}

std::uint64_t ended_series(const stream::ReceiveAccount& account) {
    std::uint64_t ended = 0;
    for (const stream::SeriesAccount& series : account.series) ended += series.ended ? 1 : 0;
    return ended;
}

/// Until something says that it is enough.
void receive_all(stream::Receiver& receiver, const ReceiveOptions& options) {
    constexpr auto patience = std::chrono::milliseconds(100);
    auto last = std::chrono::steady_clock::now();
    while (!interrupted) {
        if (receiver.receive(patience)) {
            last = std::chrono::steady_clock::now();
        } else if (options.idle_exit_s) {
            const std::chrono::duration<double> idle = std::chrono::steady_clock::now() - last;
            if (idle.count() >= *options.idle_exit_s) return;
        }
        if (options.events && receiver.account().events() >= *options.events) return;
        if (options.series && ended_series(receiver.account()) >= *options.series) return;
    }
}

std::string account_text(const stream::ReceiveAccount& account) {
    std::string text = fmt::format("{} messages, {} bytes, {} could not be understood\n", account.messages,
                                   account.bytes, account.malformed);
    for (const std::string& problem : account.problems) text += fmt::format("  {}\n", problem);
    for (const stream::SeriesAccount& series : account.series) {
        text += fmt::format("series {}: {} events, {} incomplete, {} missing", series.id, series.received,
                            series.incomplete, series.missing);
        if (series.refused > 0) text += fmt::format(", {} refused", series.refused);
        if (series.conflicts > 0) text += fmt::format(", {} in conflict", series.conflicts);
        if (series.unwritten > 0) text += fmt::format(", {} not written", series.unwritten);
        if (series.announced) text += fmt::format("; the sender had {}", *series.announced);
        if (series.dropped) text += fmt::format(" and dropped {}", *series.dropped);
        text += fmt::format("\n  written to {}\n", series.path);
    }
    std::vector<std::string> why;
    text += fmt::format("lossless  {}\n", account.lossless(why));
    for (const std::string& reason : why) text += fmt::format("  {}\n", reason);
    return text;
}

int receive_command(const std::vector<std::string>& args) {
    const std::optional<ReceiveOptions> options = parse_receive_options(args);
    if (!options) return 0;
    observe::ReportFile report(options->report);
    stream::Receiver receiver(options->address, options->out);
    catch_interrupts();
    try {
        receive_all(receiver, *options);
        receiver.finish();
    } catch (const std::exception& error) {
        receiver.fail(error.what());
    }
    const stream::ReceiveAccount& account = receiver.account();
    const nlohmann::json json = stream::receive_json(account);
    report.write(json);
    if (!options->quiet && options->json)
        fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    if (!options->quiet && !options->json) fmt::print("{}", account_text(account));
    if (!account.failed.empty()) {
        core::print_stderr("weir receive: {}\n", account.failed);
        return 1;
    }
    if (account.events() == 0) {
        core::print_stderr("weir receive: no event came from {}\n", options->address);
        return 1;
    }
    std::vector<std::string> why;
    const std::string_view lossless = account.lossless(why);
    return lossless_status({std::string(lossless), why}, options->require, "receive");
}

}  // namespace

Command receive_entry() {
    return {"receive", "take the events of a stream, and write them as runs", receive_command};
}

}  // namespace weir::app

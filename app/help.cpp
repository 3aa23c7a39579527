#include "help.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <string_view>

#include "command.hpp"
#include "core/nearest.hpp"
#include "terminal.hpp"
#include "wire/format.hpp"

namespace weir::app {

namespace {

constexpr std::string_view text_before_commands =
    R"(weir measures the stream and lets it through: a readout appliance for detectors.

It takes detector packets off the wire with DPDK (or from a capture file), assembles
the messages of all sources into events, reduces and stores them, and accounts for
every single packet on the way.

usage: weir COMMAND [options]

)";

constexpr std::string_view text_after_commands =
    R"(  help     this text; help COMMAND is COMMAND --help (or -h), which tells more

  --version  version, commit and the DPDK it was built with

Three worked examples:

  1. Make a capture of a two-module JUNGFRAU, with one packet in a thousand lost:
       weir send --format jungfrau --sources 2 --events 20 --drop 0.001 --to jf.pcap
  2. Turn it into events and look at what became of every packet:
       weir replay jf.pcap --config examples/jungfrau-2-modules.toml --out run1 --report run1.json
  3. Check the files, then look at event 3 as a picture:
       weir inspect run1
       weir inspect run1 --png 3 frame.png

Exit status: 0 fine; 1 the run failed, or what was inspected does not verify;
2 wrong usage or configuration; 3 it worked, but --require-lossless did not hold.

)";

constexpr std::string_view text_after_formats =
    R"(docs/reference/formats/ has a page for each, formats/ has some declared ones.

docs/README.md lists the documentation: the first hour (docs/start/), how to do
something (docs/guides/), every key, counter and byte (docs/reference/), and how it
works (docs/ARCHITECTURE.md). `scripts/demo` shows it all.
)";

}  // namespace

std::string help_text() {
    std::string formats = "Formats: ";
    for (const std::string_view format : wire::built_in_formats()) formats += std::string(format) + ", ";
    formats += "and your own, declared in the configuration; over UDP or RoCEv2 (RC, UC, UD).\n";
    std::string list;
    for (const Command& command : commands()) list += fmt::format("  {:7}  {}\n", command.name, command.summary);
    const std::size_t columns = columns_of(STDOUT_FILENO);
    return laid_out(text_before_commands, columns) + laid_out(list + std::string(text_after_commands), columns) +
           wrapped(formats, columns, 0) + laid_out(text_after_formats, columns);
}

std::string unknown_command_text(const std::string& name, const std::vector<std::string>& commands) {
    std::string text = "there is no command '" + name + "'";
    const std::vector<std::string> near = core::closest(name, commands, 3);
    if (!near.empty()) text += "; did you mean '" + near.front() + "'?";
    return text + " (weir --help lists them)";
}

}  // namespace weir::app

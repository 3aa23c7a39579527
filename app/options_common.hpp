// Options that `weir run` and `weir replay` share, and the way all subcommands parse theirs.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "run/run.hpp"

namespace weir::app {

/// --config, --out, --report, --require-lossless, --quiet, --print-config, --help.
void add_common_options(boost::program_options::options_description& description);

/// Parses `args`; `positional` names the option that collects arguments without a dash, or is empty. Throws
/// core::UsageError in the words of the option that is wrong.
boost::program_options::variables_map parse(const std::vector<std::string>& args,
                                            const boost::program_options::options_description& description,
                                            const char* positional);

/// What --require-lossless asks for, of options that have it: "yes", "known" ("unknown" passes, too), or nothing.
/// Throws core::UsageError.
std::string required_lossless(const boost::program_options::variables_map& given);

/// Loads the configuration and fills in what the common options say.
run::RunOptions run_options(const boost::program_options::variables_map& given, const char* command);

}  // namespace weir::app

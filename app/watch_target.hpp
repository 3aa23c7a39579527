// Which running weir is meant: the options that `weir ctl` and `weir top` share.
#pragma once

#include <boost/program_options.hpp>

#include "web/client.hpp"

namespace weir::app {

/// --socket, --url, --token-file, --name.
void add_target_options(boost::program_options::options_description& description);

/// Asks whom these options mean: without one, the only weir that has a socket here. `command` is put in front of
/// errors. Throws core::UsageError, and core::RunError if there is none.
web::Client target_of(const boost::program_options::variables_map& given, const char* command);

}  // namespace weir::app

// [serve].
#include <fmt/format.h>

#include "config/parts.hpp"

namespace weir::config::detail {

OptionTable<ServeConfig> serve_options() {
    OptionTable<ServeConfig> out;
    out.text("listen", &ServeConfig::listen,
             "`\"HOST:PORT\"`, `\"[V6]:PORT\"` or `\"unix:/path\"`: the page, `/metrics` and `/api` are there. "
             "Whoever reaches it can read; nothing is encrypted ([WATCHING.md](../guides/WATCHING.md#from-elsewhere))")
        .unset("only `socket`");
    out.text("socket", &ServeConfig::socket,
             "a UNIX socket for `weir ctl` and `weir top`: who may write to it may start and stop runs")
        .unset("by the run's name")
        .usually(
            "`/run/weir/NAME.sock`, or `$XDG_RUNTIME_DIR/weir/NAME.sock`; of a node of a cluster `NAME-NODE.sock`");
    out.text("token_file", &ServeConfig::token_file,
             "what is in this file has to be shown over TCP by who changes something; it is read again when it changes")
        .unset("nobody changes anything over TCP");
    out.text(
           "reports", &ServeConfig::reports,
           "a folder: each run's report is kept in it as `NAME-RUN.json`, of a node of a cluster `NAME-NODE-RUN.json`, "
           "and each snapshot. `{name}`, `{run}`, `{run:06}` and `{node}` may be in it")
        .unset("none are kept");
    out.text("run_log", &ServeConfig::run_log,
             "a file that gets a line of JSON for each change of state ([SERVE.md](../guides/SERVE.md#run-log)). "
             "`{node}` may be in it")
        .unset("none");
    out.integer("connections", {1, 4096}, &ServeConfig::connections, "at the same time; more are turned away");
    out.integer("updates_per_s", {1, 5}, &ServeConfig::updates_per_s, "of what the page shows, at most");
    return out;
}

}  // namespace weir::config::detail

// `weir probe --replay`: events and a picture of what was just proposed.
#pragma once

#include <string>

namespace weir::app {

/// Replays `capture` with the configuration `toml` into the run directory `out`, and draws the first complete event of
/// a detector with images into `out`.png. Says on standard error where everything is. The exit status of the replay.
int replay_proposal(const std::string& capture, const std::string& toml, const std::string& out);

}  // namespace weir::app

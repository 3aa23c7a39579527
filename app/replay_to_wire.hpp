// `weir replay CAPTURE... --to device:...|udp:...`: captures are sent out, instead of going through the pipeline.
#pragma once

#include <boost/program_options.hpp>
#include <string>

#include "stages/capture_feeder.hpp"

namespace weir::app {

/// `given` has all options of `weir replay`, `captures` what they say of files, range, loop and pace. Returns the exit
/// status; throws core::UsageError for options that only the pipeline has.
int replay_to_wire(const boost::program_options::variables_map& given, const std::string& destination,
                   const stages::CaptureFeeder::Config& captures);

}  // namespace weir::app

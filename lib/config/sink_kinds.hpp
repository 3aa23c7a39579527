// The kinds of sink whose keys are described in files of their own, for the table in sink.cpp.
#pragma once

#include "config/sink.hpp"
#include "options/option.hpp"

namespace weir::pipeline::detail {

options::OptionTable<Hdf5SinkConfig> hdf5_options();
options::OptionTable<RecorderConfig> recorder_options();

}  // namespace weir::pipeline::detail

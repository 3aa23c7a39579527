// [[sink]] of kind "null": events are counted and let go.
#include "config/sinks/entry.hpp"

namespace weir::config {

SinkEntry null_sink() {
    return {.kind = options::kind_of("null", options::OptionTable<NullSinkConfig>()),
            .meaning = "nowhere",
            .writes = false};
}

}  // namespace weir::config

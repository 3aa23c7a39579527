#include "export_target.hpp"

namespace weir::app {

void refuse_too_large(const store::EventInfo& event, const ExportOptions& options) {
    const std::string problem =
        too_large_text(filled_bytes(event, options.source), event.content_bytes(), options.event_bytes_max);
    if (!problem.empty()) throw EventRefused(problem + "; --max-event raises that");
}

}  // namespace weir::app

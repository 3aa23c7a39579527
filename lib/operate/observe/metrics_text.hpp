// The numbers of the document as Prometheus reads them: what GET /metrics returns.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace weir::observe {

/// Prometheus's text format, version 0.0.4 (Content-Type: text/plain; version=0.0.4; charset=utf-8). `document`: what
/// PublishedDocument holds, with "version", "name", "host", "status" and "run" where there are such, and RunView's part
/// of a run. Whatever is not in it is left out. docs/reference/METRICS.md lists what there can be.
[[nodiscard]] std::string metrics_text(const nlohmann::json& document);

}  // namespace weir::observe

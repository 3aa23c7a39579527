// The page of `weir run` and `weir replay` where the configuration has [serve]: to look at, not to change anything.
#pragma once

#include <optional>
#include <string>

#include "run/run.hpp"
#include "serve/web_frontend.hpp"

namespace weir::serve {

/// Must outlive the run.
class ShownRun {
public:
    /// Puts itself into `options`, if they ask for it; listens once the run is made.
    explicit ShownRun(run::RunOptions& options);
    ShownRun(const ShownRun&) = delete;
    ShownRun& operator=(const ShownRun&) = delete;

private:
    void describe(nlohmann::json& document) const;

    std::string mode_;
    std::optional<WebFrontend> frontend_;
};

}  // namespace weir::serve

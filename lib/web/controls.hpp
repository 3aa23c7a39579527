// What others may change through the API. Whoever runs things implements it; the server's thread calls it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace weir::web {

class Controls {
public:
    /// What became of a request: an HTTP status, and for people why.
    struct Outcome {
        int status = 200;  ///< 202: it is under way, and the document says when it is done
        std::string message;
    };

    virtual ~Controls() = default;
    /// "start", "stop", ... Decides whether the state allows it, and returns without waiting for it to be done.
    [[nodiscard]] virtual Outcome execute(std::string_view command) = 0;
    /// Sets what may be set: `path` below the API's root, "config/duration_s".
    [[nodiscard]] virtual Outcome set(std::string_view path, const nlohmann::json& value) = 0;
};

}  // namespace weir::web

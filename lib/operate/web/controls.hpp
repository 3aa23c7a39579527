// What others may change through the API. Whoever runs things implements it; the server's thread calls it.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace weir::web {

class Controls {
public:
    /// What became of a request: an HTTP status, and for people why.
    struct Outcome {
        int status = 200;  ///< 202: it is under way, and the document says when it is done
        std::string message;
    };

    /// A place below the API's root ("config/duration_s"), and what it is to be.
    using Value = std::pair<std::string, nlohmann::json>;

    virtual ~Controls() = default;
    /// Sets the values, then takes the command ("start"; empty: none): all of it, or nothing if the outcome is an
    /// error. Decides whether the state allows the command, and returns without waiting for it to be done.
    [[nodiscard]] virtual Outcome apply(std::span<const Value> values, std::string_view command) = 0;
    [[nodiscard]] Outcome execute(std::string_view command) { return apply({}, command); }
    [[nodiscard]] Outcome set(std::string_view path, nlohmann::json value) {
        const Value one{path, std::move(value)};
        return apply({&one, 1}, {});
    }
};

}  // namespace weir::web

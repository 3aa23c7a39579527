// /api: what a run shows and lets be changed, as a tree in odin-control's convention. docs/reference/WATCH_API.md.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "web/controls.hpp"
#include "web/routes.hpp"

namespace weir::web {

/// Any thread, if what it is given may be called by any.
class Api {
public:
    struct Options {
        /// The newest document. Of a board: `[&] { auto shown = board.latest();
        /// return std::shared_ptr<const nlohmann::json>(shown, &shown->document); }`.
        std::function<std::shared_ptr<const nlohmann::json>()> document{};
        Controls* controls = nullptr;    ///< null: nothing can be changed
        nlohmann::json config_schema{};  ///< what config_schema.json is; null: there is none
    };

    explicit Api(Options options) : options_(std::move(options)) {}

    /// GET and PUT of /api/0.1/weir and below, and what else clients ask for. The Api must outlive the routes.
    void add_to(Routes& routes) const;

private:
    [[nodiscard]] Response get(const Request& request) const;
    [[nodiscard]] Response put(const Request& request) const;
    [[nodiscard]] Response apply(const std::string& path, const nlohmann::json& body) const;
    [[nodiscard]] Controls::Outcome refusal(const std::string& path, const nlohmann::json& value) const;

    Options options_;
};

}  // namespace weir::web

#include "web/request.hpp"

#include <nlohmann/json.hpp>

namespace weir::web {

std::string_view Request::header(std::string_view name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

Response text_response(std::string text, std::string type, int status) {
    return {status, std::move(type), std::make_shared<const std::string>(std::move(text)), {}, nullptr};
}

Response json_response(const nlohmann::json& value, int status) {
    return text_response(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
                         "application/json", status);
}

Response error_response(int status, std::string_view why) {
    return json_response({{"error", why}}, status);
}

}  // namespace weir::web

// libFuzzer target: any bytes as the path, the headers' values and the body of a request to the API. Each is answered
// with a status that is written down and with JSON, commands come only from a PUT that says so, and what can be read is
// what is in the document.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "web/api.hpp"
#include "web/gate.hpp"
#include "web/url.hpp"

namespace {

using namespace weir::web;
using nlohmann::json;

class CountingControls : public Controls {
public:
    Outcome apply(std::span<const Value> values, std::string_view command) override {
        if (values.empty() && command.empty()) std::abort();
        for (const Value& value : values)
            if (!value.first.starts_with("config/")) std::abort();
        ++calls;
        return {command.empty() ? 200 : 202, std::string(command)};
    }
    int calls = 0;
};

const std::shared_ptr<const json> document = std::make_shared<json>(json::parse(R"({
    "status": {"state": "idle", "since_s": 1.5}, "config": {"events": null, "comment": ""},
    "command": {"allowed": ["start"], "start": {"allowed": true, "execute": false}},
    "where": [{"place": "way", "packets": null}], "sources": {"label": ["a", "b"]}})"));

/// The parts of the input, which newlines separate; the last one may have newlines itself.
std::array<std::string, 5> parts_of(std::string_view text) {
    std::array<std::string, 5> parts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::size_t end = i + 1 == parts.size() ? text.size() : std::min(text.find('\n'), text.size());
        parts[i] = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

void check(const Response& response) {
    static constexpr int statuses[] = {200, 202, 400, 403, 404, 405, 415};
    if (std::ranges::find(statuses, response.status) == std::end(statuses)) std::abort();
    if (!json::accept(*response.body)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto copy = std::make_unique<char[]>(size);
    std::copy_n(data, size, copy.get());
    const auto [url, type, accept, origin, body] = parts_of({copy.get(), size});
    const auto path = percent_decoded(url);
    if (!path) return 0;
    CountingControls controls;
    const Api api({.document = [] { return document; }, .controls = &controls});
    Routes routes;
    api.add_to(routes);
    Request request;
    request.path = "/api/0.1/weir/" + *path;
    request.body = body;
    request.headers = {{"content-type", type}, {"accept", accept}, {"origin", origin}, {"host", accept}};
    static_cast<void>(Gate("localhost", true, nullptr).refusal(request, {}));
    for (const char* method : {"GET", "HEAD", "DELETE"}) {
        request.method = method;
        check(routes.answer(request));
    }
    if (controls.calls > 0) std::abort();
    request.method = "PUT";
    check(routes.answer(request));
    request.path = *path;
    check(routes.answer(request));
    return 0;
}

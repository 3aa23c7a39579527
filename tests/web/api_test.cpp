#include "web/api.hpp"

#include <gtest/gtest.h>

#include "fake_controls.hpp"

namespace weir::web::test {
namespace {

using nlohmann::json;
using Calls = std::vector<std::string>;

class ApiTest : public ::testing::Test {
protected:
    Response ask(const std::string& method, const std::string& path, const std::string& body = "",
                 std::map<std::string, std::string, std::less<>> headers = {}) {
        Request request;
        request.method = method;
        request.path = path;
        request.body = body;
        request.headers = std::move(headers);
        return routes_.answer(request);
    }
    json get(const std::string& path) {
        const Response response = ask("GET", path);
        EXPECT_EQ(response.type, "application/json");
        return json::parse(*response.body);
    }
    int put(const std::string& path, const std::string& body) {
        const Response response = ask("PUT", "/api/0.1/weir" + path, body, {{"content-type", "application/json"}});
        EXPECT_EQ(json::parse(*response.body).contains("error"), response.status >= 300) << *response.body;
        return response.status;
    }
    void SetUp() override { api_.add_to(routes_); }

    std::shared_ptr<const json> document_ = std::make_shared<json>(json::parse(R"({
        "status": {"state": "idle"}, "config": {"events": null},
        "command": {"allowed": ["start", "stop"], "execute": "", "start": {"allowed": true, "execute": false}}})"));
    FakeControls controls_;
    Api api_{
        {.document = [this] { return document_; }, .controls = &controls_, .config_schema = json{{"type", "object"}}}};
    Routes routes_;
};

TEST_F(ApiTest, SaysWhatOdinsClientsAskFirst) {
    EXPECT_EQ(get("/api"), json({{"api", 0.1}}));
    EXPECT_EQ(get("/api/0.1/adapters"), json({{"adapters", {"weir"}}}));
    EXPECT_EQ(get("/api/0.1/weir/command/allowed"), json({{"allowed", {"start", "stop"}}}));
}

TEST_F(ApiTest, GivesTheDocumentAndItsParts) {
    EXPECT_EQ(get("/api/0.1/weir"), *document_);
    EXPECT_EQ(get("/api/0.1/weir/"), *document_);
    EXPECT_EQ(get("/api/0.1/weir/status"), document_->at("status"));
    EXPECT_EQ(get("/api/0.1/weir/status/state"), json({{"value", "idle"}}));
    EXPECT_EQ(ask("GET", "/api/0.1/weir/status/none").status, 404);
    EXPECT_EQ(ask("GET", "/api/0.1/weir/../../etc").status, 400);
    EXPECT_EQ(ask("GET", "/api/0.1/weirdo").status, 404);
    EXPECT_EQ(ask("DELETE", "/api/0.1/weir/status").status, 405);
}

TEST_F(ApiTest, AddsMetadataWhereItIsAskedFor) {
    const json typed = {{"value", "idle"}, {"type", "str"}, {"writeable", false}};
    for (const char* accept : {"application/json;metadata=true", "application/json; metadata=true"})
        EXPECT_EQ(json::parse(*ask("GET", "/api/0.1/weir/status", "", {{"accept", accept}}).body)["state"], typed);
    EXPECT_EQ(
        json::parse(*ask("GET", "/api/0.1/weir/status", "", {{"accept", "application/json;metadata=false"}}).body),
        document_->at("status"));
}

TEST_F(ApiTest, ExecutesACommandInEachWayOfWritingIt) {
    EXPECT_EQ(put("/command/execute", "\"start\""), 202);
    EXPECT_EQ(put("/command/execute", R"({"value": "start"})"), 202);
    EXPECT_EQ(put("/command", R"({"execute": "start"})"), 202);
    EXPECT_EQ(put("/command/start/execute", "true"), 202);
    EXPECT_EQ(put("/command/start", R"({"execute": true})"), 202);
    EXPECT_EQ(put("", R"({"command": {"execute": "start"}})"), 202);
    EXPECT_EQ(controls_.calls(), Calls(6, "execute start"));
    EXPECT_EQ(put("/command/execute", "\"stop\""), 409);
}

TEST_F(ApiTest, SetsValuesBeforeItExecutes) {
    EXPECT_EQ(put("", R"({"command": {"execute": "start"}, "config": {"events": 3, "comment": "x"}})"), 202);
    EXPECT_EQ(controls_.calls(), (Calls{"set config/comment \"x\"", "set config/events 3", "execute start"}));
    EXPECT_EQ(put("/config/events", "null"), 200);
}

TEST_F(ApiTest, AValueThatDoesNotFitKeepsTheCommandFromBeingExecuted) {
    EXPECT_EQ(put("", R"({"command": {"execute": "start"}, "config": {"unknown": 3}})"), 404);
    EXPECT_EQ(controls_.calls(), Calls{"set config/unknown 3"});
}

TEST_F(ApiTest, OfARequestWithSomethingReadOnlyInItNothingIsSet) {
    EXPECT_EQ(put("", R"({"config": {"events": 3}, "status": {"state": "running"}})"), 400);
    EXPECT_EQ(put("", R"({"config": {"events": 3}, "command": {"execute": 5}})"), 400);
    EXPECT_EQ(put("", R"({"config": {"events": 3}, "nothing": 1})"), 404);
    EXPECT_EQ(controls_.calls(), Calls{});
}

TEST_F(ApiTest, RefusesWhatChangesNothingThatCanBeChanged) {
    for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
             {"/status/state", "\"running\""},
             {"", "5"},
             {"", "{}"},
             {"/command", "\"start\""},
             {"/command/execute", "5"},
             {"/command/execute", "\"\""},
             {"/command/start/execute", "false"},
             {"/command/start/execute", "\"start\""},
             {"/command/start/allowed", "true"},
             {"/command/execute", "start"},
             {"/command/execute", ""},
             {"/command/execute", "[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]"},
             {"/a//b", "1"},
             {"/command", R"({"execute": "start", "stop": {"execute": true}})"}})
        EXPECT_EQ(put(path, body), 400) << path << " " << body;
    EXPECT_EQ(put("/nothing", "1"), 404);
    EXPECT_EQ(controls_.calls(), Calls{});
}

TEST_F(ApiTest, TakesJsonOnly) {
    for (const char* type :
         {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"})
        EXPECT_EQ(ask("PUT", "/api/0.1/weir/command/execute", "\"start\"", {{"content-type", type}}).status, 415)
            << type;
    for (const char* type : {"application/json; charset=utf-8", "Application/JSON", ""})
        EXPECT_EQ(ask("PUT", "/api/0.1/weir/command/execute", "\"start\"", {{"content-type", type}}).status, 202)
            << type;
}

TEST_F(ApiTest, WithoutControlsNothingCanBeChanged) {
    const Api api({.document = [this] { return document_; }, .controls = nullptr, .config_schema = nullptr});
    Routes routes;
    api.add_to(routes);
    routes_ = routes;
    EXPECT_EQ(put("/command/execute", "\"start\""), 403);
    EXPECT_EQ(ask("GET", "/api/0.1/weir/config_schema.json").status, 404);
}

/// Each path that the document describes, and that this API has, is answered.
TEST_F(ApiTest, DescribesItself) {
    const json openapi = get("/api/0.1/weir/openapi.json");
    EXPECT_EQ(openapi.at("openapi"), "3.0.3");
    for (const auto& [path, item] : openapi.at("paths").items()) {
        if (!path.starts_with("/api") || path.find('{') != std::string::npos) continue;
        if (item.contains("get")) {
            EXPECT_EQ(ask("GET", path).status, 200) << path;
        }
        if (item.contains("put")) {
            EXPECT_EQ(ask("PUT", path, R"({"command": {"execute": 0}})").status, 400) << path;
        }
    }
    EXPECT_EQ(get("/api/0.1/weir/config_schema.json"), json({{"type", "object"}}));
}

}  // namespace
}  // namespace weir::web::test

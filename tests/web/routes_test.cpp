#include "web/routes.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace weir::web::test {
namespace {

Response ask(const Routes& routes, std::string method, std::string path) {
    Request request;
    request.method = std::move(method);
    request.path = std::move(path);
    return routes.answer(request);
}

Handler says(std::string text) {
    return [text](const Request&) { return text_response(text, "text/plain"); };
}

Routes some_routes() {
    Routes routes;
    routes.add("GET", "/tree/special", says("special"));
    routes.add_below("GET", "/tree", says("tree"));
    routes.add_below("PUT", "/tree", says("put"));
    routes.add("GET", "/broken", [](const Request&) -> Response { throw std::runtime_error("it broke"); });
    return routes;
}

TEST(Routes, TheFirstThatFitsAnswers) {
    const Routes routes = some_routes();
    EXPECT_EQ(*ask(routes, "GET", "/tree").body, "tree");
    EXPECT_EQ(*ask(routes, "GET", "/tree/a/b").body, "tree");
    EXPECT_EQ(*ask(routes, "GET", "/tree/special").body, "special");
    EXPECT_EQ(*ask(routes, "HEAD", "/tree/special").body, "special");
    EXPECT_EQ(*ask(routes, "PUT", "/tree/a").body, "put");
}

TEST(Routes, WhatIsNotThereIs404AndWhatIsNotTakenIs405) {
    const Routes routes = some_routes();
    for (const char* path : {"/", "", "/tre", "/treex", "/special", "/../tree", "/broken/below"})
        EXPECT_EQ(ask(routes, "GET", path).status, 404) << path;
    const Response response = ask(routes, "POST", "/tree");
    EXPECT_EQ(response.status, 405);
    EXPECT_EQ(response.headers, (decltype(response.headers){{"Allow", "GET, PUT"}}));
    EXPECT_TRUE(nlohmann::json::parse(*response.body).at("error").is_string());
}

TEST(Routes, WhatAHandlerThrowsIsA500) {
    const Response response = ask(some_routes(), "GET", "/broken");
    EXPECT_EQ(response.status, 500);
    EXPECT_EQ(nlohmann::json::parse(*response.body), nlohmann::json({{"error", "it broke"}}));
}

TEST(Routes, AnErrorMayQuoteWhateverBytesThePathHad) {
    const Response response = ask(some_routes(), "GET", "/\xff\xfe\"<script>");
    EXPECT_EQ(response.status, 404);
    EXPECT_TRUE(nlohmann::json::accept(*response.body)) << *response.body;
}

TEST(Routes, AssetsAreServedByTheirExactPath) {
    static constexpr Asset assets[] = {{"/", "text/html; charset=utf-8", "<html>"},
                                       {"/assets/a.js", "text/javascript", "x"}};
    Routes routes;
    routes.add(assets);
    EXPECT_EQ(*ask(routes, "GET", "/").body, "<html>");
    EXPECT_EQ(ask(routes, "GET", "/assets/a.js").type, "text/javascript");
    for (const char* path : {"/assets", "/assets/", "/assets/../", "/assets/a.js/", "//", "/assets//a.js"})
        EXPECT_EQ(ask(routes, "GET", path).status, 404) << path;
    EXPECT_EQ(ask(routes, "PUT", "/").status, 405);
}

}  // namespace
}  // namespace weir::web::test

#include "serve/colleagues.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace weir::serve {

namespace {

using nlohmann::json;

/// A node that lives answers within milliseconds.
constexpr std::chrono::milliseconds patience(2000);
constexpr std::size_t askers_max = 16;

web::Client::Options options_for(const Colleagues::Node& node, std::string token) {
    web::Client::Options options;
    options.url = "http://" + node.serve;
    options.token = std::move(token);
    options.patience = patience;
    return options;
}

/// {"config": {"run_number": 12}, "command": {"execute": "start"}}
json body_of(std::span<const web::Controls::Value> values, std::string_view command) {
    json body = json::object();
    for (const auto& [path, value] : values) body[json::json_pointer("/" + path)] = value;
    if (!command.empty()) body["command"]["execute"] = command;
    return body;
}

}  // namespace

RemoteColleagues::RemoteColleagues(std::vector<Node> nodes, Self self, std::string token_file)
    : Colleagues(std::move(nodes)),
      self_(std::move(self)),
      token_file_(std::move(token_file)),
      clients_(this->nodes().size()) {}

web::Client& RemoteColleagues::client_of(std::size_t node) {
    if (clients_[node] == nullptr) clients_[node] = std::make_unique<web::Client>(options_for(nodes()[node], ""));
    return *clients_[node];
}

Colleagues::Answer RemoteColleagues::ask(std::size_t node) {
    if (node == self_.node) return {self_.summary(), ""};
    if (nodes()[node].serve.empty()) return {nullptr, "its [[node]] has no serve = \"HOST:PORT\""};
    try {
        web::Client::Answer answer = client_of(node).get("/node");
        if (answer.good() && answer.body.is_object()) return {std::move(answer.body), ""};
        return {nullptr, core::printable(answer.error())};
    } catch (const core::RunError& error) {
        return {nullptr, error.what()};
    }
}

std::vector<Colleagues::Answer> RemoteColleagues::ask() {
    std::vector<Answer> answers(nodes().size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t node = next++; node < answers.size(); node = next++) answers[node] = ask(node);
    };
    std::vector<std::jthread> askers;
    for (std::size_t i = 1; i < std::min(answers.size(), askers_max); ++i) askers.emplace_back(work);
    work();
    askers.clear();  // joins
    return answers;
}

web::Controls::Outcome RemoteColleagues::tell(std::size_t node, std::span<const web::Controls::Value> values,
                                              std::string_view command) {
    if (node == self_.node) {
        if (self_.controls == nullptr) return {403, "it is not run by weir serve"};
        return self_.controls->apply(values, command);
    }
    if (nodes()[node].serve.empty()) return {404, "its [[node]] has no serve = \"HOST:PORT\""};
    if (token_file_.empty()) return {401, "[serve] has no token_file, so nobody changes anything over the network"};
    try {
        // The token may be a new one, so this connection is not kept.
        web::Client client(options_for(nodes()[node], web::token_in(token_file_)));
        const web::Client::Answer answer = client.put("", body_of(values, command));
        return {answer.status, answer.good() ? "" : core::printable(answer.error())};
    } catch (const std::exception& error) {
        return {503, error.what()};
    }
}

}  // namespace weir::serve

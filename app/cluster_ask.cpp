#include "cluster_ask.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "core/printable.hpp"
#include "watch_verdict.hpp"

namespace weir::app {

namespace {

nlohmann::json cluster_document_of(web::Client& client, const std::string& command) {
    constexpr int not_found = 404;
    web::Client::Answer answer = client.get("/cluster");
    if (answer.status == not_found)
        throw core::RunError(fmt::format(
            "{}: {} is no node of a cluster, or no [[node]] has serve = \"HOST:PORT\", where the others reach it",
            command, client.place()));
    if (!answer.good() || !answer.body.is_object())
        throw core::RunError(fmt::format("{}: {}: {}", command, client.place(), core::printable(answer.error())));
    return std::move(answer.body);
}

/// Until it has asked all nodes `more` times since the first answer to this one.
nlohmann::json await_rounds(web::Client& client, const std::string& command, double more) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds pause(50);
    constexpr std::chrono::seconds patience(60);
    const auto end = Clock::now() + patience;
    nlohmann::json document = cluster_document_of(client, command);
    const double wanted = watch_number(document, "/rounds") + more;
    while (watch_number(document, "/rounds") < wanted || !watch_value(document, "/age_s").is_number()) {
        if (Clock::now() >= end)
            throw core::RunError(fmt::format("{}: {} does not hear from its cluster", command, client.place()));
        std::this_thread::sleep_for(pause);
        document = cluster_document_of(client, command);
    }
    return document;
}

}  // namespace

nlohmann::json ask_cluster(web::Client& client, const std::string& command) {
    return await_rounds(client, command, 0);
}

/// One round may have been on its way.
nlohmann::json ask_cluster_anew(web::Client& client, const std::string& command) {
    return await_rounds(client, command, 2);
}

}  // namespace weir::app

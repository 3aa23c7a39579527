// All nodes of a cluster at one of them: how they are, asked while somebody wants to know, and the orders that it gives
// them. /cluster of docs/reference/WATCH_API.md.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "serve/cluster_order.hpp"
#include "serve/colleagues.hpp"
#include "web/routes.hpp"

namespace weir::serve {

class ClusterWatch {
public:
    struct Options {
        std::string name;      ///< of the cluster's runs
        bool controls = true;  ///< orders are taken
        ClusterOrders::Options orders{};
        std::chrono::milliseconds interval{500};     ///< between two rounds of questions
        std::chrono::milliseconds interest{10'000};  ///< nobody is asked once nobody has wanted to know for so long
    };

    /// Has a thread of its own from now on.
    ClusterWatch(std::unique_ptr<Colleagues> colleagues, Options options);
    ~ClusterWatch();
    ClusterWatch(const ClusterWatch&) = delete;
    ClusterWatch& operator=(const ClusterWatch&) = delete;

    /// GET /cluster and PUT /cluster. It must outlive the routes.
    void add_to(web::Routes& routes);

    // Any thread; these do not wait.

    /// What was heard last. "age_s" is null until all have been asked.
    [[nodiscard]] nlohmann::json document();
    /// {"execute": "start", "without": ["builder1"], "comment": "..."}: 202 if it will be done, 400, 403, 409.
    [[nodiscard]] web::Controls::Outcome order(const nlohmann::json& body);

private:
    using Clock = std::chrono::steady_clock;

    struct Last {
        std::string command;
        std::string accepted;  ///< when
        bool done = true;
        std::string message;
        std::string error;
    };

    void work();
    void show(const std::vector<Colleagues::Answer>& answers);
    void do_order(const ClusterOrder& order);
    [[nodiscard]] bool wants_look() const;

    const std::unique_ptr<Colleagues> colleagues_;
    const Options options_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ends_ = false;
    Clock::time_point wanted_;  ///< when somebody asked last
    std::optional<ClusterOrder> asked_;
    bool busy_ = false;     ///< an order is being carried out
    bool give_up_ = false;  ///< what is under way makes way for what was asked
    Last last_;
    nlohmann::json shown_ = nlohmann::json::object();
    std::optional<Clock::time_point> looked_;
    std::uint64_t rounds_ = 0;  ///< of questions that are over
    std::thread thread_;        ///< last: it uses the rest
};

/// "nodes", "state", "run", "waits" and "losses", of what all have answered; "waits" of what has changed since
/// `before`, which is what it made of the answers `seconds` ago, or null.
[[nodiscard]] nlohmann::json cluster_document(const std::vector<Colleagues::Node>& nodes,
                                              const std::vector<Colleagues::Answer>& answers,
                                              const nlohmann::json& before, double seconds);

}  // namespace weir::serve

// What others see of a run, and where: the document on the board, the page, metrics and the API.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "observe/published_document.hpp"
#include "observe/run_observer.hpp"
#include "observe/run_view.hpp"
#include "run/run.hpp"
#include "serve/cluster_watch.hpp"
#include "store/latest_event.hpp"
#include "web/api.hpp"
#include "web/event_feed.hpp"
#include "web/server.hpp"
#include "web/token_guard.hpp"

namespace weir::serve {

/// On the control thread, but for what the server's threads ask.
class WebFrontend : public observe::RunObserver {
public:
    /// Adds to the document what only the caller knows: "status", "command", "config". Any thread.
    using Describe = std::function<void(nlohmann::json& document)>;

    /// `controls` may be null: nobody changes anything. What is given outlives the frontend.
    WebFrontend(const run::RunOptions& options, const config::ServeConfig& config, Describe describe,
                web::Controls* controls);
    ~WebFrontend() override;

    /// Listens from now on, with threads on the CPUs of this one: EAL has moved it out of the way of lcores. Says
    /// where. Throws core::UsageError and core::RunError.
    void listen();

    [[nodiscard]] store::LatestEvent* watch_events(const nlohmann::json& start) override;
    void begin(const observe::RunFacts& facts, const observe::RunMoment& moment) override;
    void look(const observe::RunMoment& moment) override;
    void closed(const observe::RunMoment& moment, const observe::Ledger& ledger, const observe::Verdict& verdict,
                const std::vector<pipeline::Finding>& findings) override;
    void begin_managing(const observe::RunFacts& facts) override;
    void look_at_cluster(double seconds) override;
    void finish_managing(double seconds) override;

    /// While there is no run: shows what has changed, a few times a second.
    void idle();
    /// Something has changed that is to be seen at once.
    void refresh();
    /// Of the run that began last, as its sinks count, or counted here; 0: there was none.
    [[nodiscard]] std::uint64_t run_number() const noexcept { return run_number_; }
    [[nodiscard]] bool has_run() const noexcept { return has_run_; }
    /// The same at once, in any thread, of what Describe adds.
    void amend() { document_.amend(describe_); }
    /// The last runs, as in the document.
    void set_runs(nlohmann::json runs);
    /// What the run showed stays to be seen, with why it ended.
    void set_run_ended(const std::string& reason);

private:
    using Clock = std::chrono::steady_clock;

    void publish();
    void note_run(const observe::RunFacts& facts);
    [[nodiscard]] std::unique_ptr<ClusterWatch> new_cluster_watch(const run::ClusterPart& part,
                                                                  web::Controls* controls);
    void add_routes(web::Routes& routes);
    [[nodiscard]] web::Response picture();
    [[nodiscard]] std::shared_ptr<const std::string> body_of(
        const std::shared_ptr<const store::LatestEvent::Picture>& picture);

    const config::ServeConfig config_;
    const bool quiet_;
    const std::string version_;
    const std::string name_;
    const std::string node_;  ///< of a cluster; empty: the run is of none
    const Describe describe_;
    const std::chrono::milliseconds interval_;
    Clock::time_point published_;
    nlohmann::json shown_ = nlohmann::json::object();  ///< the run's part of the document
    nlohmann::json run_;                               ///< of the present run, or of the last one; null: there was none
    std::uint64_t run_number_ = 0;
    bool has_run_ = false;
    nlohmann::json runs_ = nlohmann::json::array();
    Clock::time_point runs_changed_ = Clock::now();
    observe::PublishedDocument document_;
    mutable std::mutex event_mutex_;
    std::shared_ptr<store::LatestEvent> latest_event_;  ///< of the present run, or of the last one
    std::shared_ptr<const store::LatestEvent::Picture> served_picture_;
    std::shared_ptr<const std::string> served_body_;  ///< its pixels
    std::optional<observe::RunView> view_;            ///< of the run
    std::function<nlohmann::json()> cluster_;         ///< RunFacts::cluster of the run
    web::TokenGuard guard_;
    std::optional<web::EventFeed> feed_;  ///< its thread, too, is made in listen()
    web::Api api_;
    /// Its thread, too, is made in listen(). Empty: this is no node.
    std::function<std::unique_ptr<ClusterWatch>()> make_cluster_watch_;
    std::unique_ptr<ClusterWatch> cluster_watch_;  ///< null: none of its cluster can be asked
    std::optional<web::Server> server_;            ///< goes first: its threads use the rest
};

}  // namespace weir::serve

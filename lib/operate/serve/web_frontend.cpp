#include "serve/web_frontend.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "config/schema.hpp"
#include "core/print_stderr.hpp"
#include "observe/metrics_text.hpp"
#include "pipeline/wall_clock.hpp"
#include "serve/node_summary.hpp"
#include "serve/time_text.hpp"
#include "web/asset.hpp"
#include "web/client.hpp"

namespace weir::serve {

namespace {

constexpr int milliseconds_per_s = 1000;
constexpr auto runs_sent_for = std::chrono::seconds(5);

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

web::Server::Options server_options(const config::ServeConfig& config, const std::string& socket_name,
                                    web::TokenGuard& guard, web::EventFeed& feed) {
    web::Server::Options options;
    options.listen = config.listen;
    options.sockets = {config.socket.empty() ? web::default_socket(socket_name) : config.socket};
    options.limits.connections = config.connections;
    options.guard = &guard;
    options.feeds = {&feed};
    return options;
}

}  // namespace

WebFrontend::WebFrontend(const run::RunOptions& options, const config::ServeConfig& config, Describe describe,
                         web::Controls* controls)
    : config_(config),
      quiet_(options.quiet),
      version_(options.version),
      name_(options.config.name),
      node_(options.config.node),
      describe_(std::move(describe)),
      interval_(milliseconds_per_s / static_cast<int>(config.updates_per_s)),
      guard_(config.token_file),
      api_({.document =
                [this] {
                    auto shown = document_.latest();
                    const nlohmann::json* document = &shown->document;
                    return std::shared_ptr<const nlohmann::json>(std::move(shown), document);
                },
            .controls = controls,
            .config_schema = config::config_schema()}) {
    publish();
    if (options.cluster)
        make_cluster_watch_ = [this, controls, part = *options.cluster] { return new_cluster_watch(part, controls); };
}

/// Null: none of its nodes can be asked.
std::unique_ptr<ClusterWatch> WebFrontend::new_cluster_watch(const run::ClusterPart& part, web::Controls* controls) {
    const config::ClusterConfig& cluster = *part.whole.cluster;
    std::vector<Colleagues::Node> nodes;
    for (const config::ClusterNode& node : cluster.nodes)
        nodes.push_back({node.name, node.role, node.serve, node.spare});
    if (std::ranges::all_of(nodes, [](const auto& node) { return node.serve.empty(); })) return nullptr;
    RemoteColleagues::Self self{part.node, [this] { return node_summary(document_.latest()->document); }, controls};
    ClusterWatch::Options watch{.name = part.whole.name, .controls = controls != nullptr};
    // Builders have what is left of their blocks to write when the last readout node has ended.
    watch.orders.end_wait += std::chrono::milliseconds(cluster.leave_ms);
    return std::make_unique<ClusterWatch>(
        std::make_unique<RemoteColleagues>(std::move(nodes), std::move(self), config_.token_file), std::move(watch));
}

void WebFrontend::listen() {
    feed_.emplace("state", web::EventFeed::Limits{.updates_per_s = config_.updates_per_s});
    if (make_cluster_watch_) cluster_watch_ = make_cluster_watch_();
    web::Routes routes;
    add_routes(routes);
    server_.emplace(server_options(config_, node_.empty() ? name_ : name_ + "-" + node_, guard_, *feed_),
                    std::move(routes));
    if (quiet_) return;
    std::string urls;
    for (const std::string& url : server_->urls()) urls += (urls.empty() ? "" : " and ") + url;
    core::print_stderr("watch at {}\n", urls);
}

WebFrontend::~WebFrontend() = default;

void WebFrontend::add_routes(web::Routes& routes) {
    api_.add_to(routes);
    routes.add_feed("/events", *feed_);
    routes.add(web::page_assets());
    routes.add("GET", "/metrics", [this](const web::Request&) {
        return web::text_response(observe::metrics_text(document_.latest()->document),
                                  "text/plain; version=0.0.4; charset=utf-8");
    });
    routes.add("GET", "/node",
               [this](const web::Request&) { return web::json_response(node_summary(document_.latest()->document)); });
    if (cluster_watch_) cluster_watch_->add_to(routes);
    routes.add("GET", "/picture", [this](const web::Request&) { return picture(); });
}

/// The same for all that ask for the same picture, however slowly they take it.
std::shared_ptr<const std::string> WebFrontend::body_of(
    const std::shared_ptr<const store::LatestEvent::Picture>& picture) {
    const std::lock_guard lock(event_mutex_);
    if (served_picture_ != picture) {
        const auto* const bytes = reinterpret_cast<const char*>(picture->pixels.data());
        served_body_ = std::make_shared<const std::string>(bytes, picture->pixels.size());
        served_picture_ = picture;
    }
    return served_body_;
}

web::Response WebFrontend::picture() {
    std::shared_ptr<store::LatestEvent> event;
    {
        const std::lock_guard lock(event_mutex_);
        event = latest_event_;
    }
    if (event == nullptr) return web::error_response(404, "there has been no run");
    const std::shared_ptr<const store::LatestEvent::Picture> picture = event->take_picture();
    const store::LatestEvent::Facts& facts = picture->facts;
    if (!facts.why_not.empty()) return web::error_response(404, facts.why_not);
    web::Response response;
    response.type = "application/octet-stream";
    response.body = body_of(picture);
    response.headers = {{"X-Weir-Type", facts.type},
                        {"X-Weir-Width", fmt::format("{}", facts.width)},
                        {"X-Weir-Height", fmt::format("{}", facts.height)},
                        {"X-Weir-Epoch", fmt::format("{}", facts.epoch)},
                        {"X-Weir-Event", fmt::format("{}", facts.event)},
                        {"X-Weir-Generation", fmt::format("{}", facts.generation)}};
    return response;
}

void WebFrontend::publish() {
    published_ = Clock::now();
    nlohmann::json document = shown_;
    document["api"] = "0.1";
    document["version"] = version_;
    document["host"] = host_name();
    document["name"] = name_;
    if (!node_.empty()) document["node"] = node_;
    document["time"] = time_text(pipeline::wall_ns());
    document["run"] = run_;
    document["runs"] = runs_;
    document_.publish(std::move(document), describe_);
    if (!feed_) return;
    nlohmann::json update = document_.latest()->document;
    update.erase("history");
    // A viewer may miss one update, not all of some seconds.
    if (published_ - runs_changed_ > runs_sent_for) update.erase("runs");
    feed_->publish(update.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

store::LatestEvent* WebFrontend::watch_events(const nlohmann::json& start) {
    if (!server_) listen();
    auto event = std::make_shared<store::LatestEvent>(start);
    view_.reset();  // it looks at the one before
    const std::lock_guard lock(event_mutex_);
    latest_event_ = std::move(event);
    return latest_event_.get();
}

/// There is an account of the run, and none of the one before, as soon as anybody can know that it runs.
void WebFrontend::begin(const observe::RunFacts& facts, const observe::RunMoment& moment) {
    view_.emplace(observe::RunView::Options{config_.updates_per_s, latest_event_.get()});
    note_run(facts);
    look(moment);
}

void WebFrontend::note_run(const observe::RunFacts& facts) {
    cluster_ = facts.cluster;
    run_number_ = facts.number.value_or(static_cast<std::uint32_t>(run_number_ + 1));
    nlohmann::json paths = nlohmann::json::array();
    for (const std::filesystem::path& path : facts.paths) paths.push_back(path.string());
    run_ = {{"number", run_number_},
            {"paths", std::move(paths)},
            {"started", time_text(facts.started_ns)},
            {"seconds", 0.0},
            {"stop_reason", ""}};
    has_run_ = true;
}

void WebFrontend::look(const observe::RunMoment& moment) {
    std::optional<nlohmann::json> part = view_->update(moment);
    if (!part) return;
    shown_ = std::move(*part);
    if (cluster_) shown_["cluster"] = cluster_();
    run_["seconds"] = moment.seconds;
    publish();
}

void WebFrontend::closed(const observe::RunMoment& moment, const observe::Ledger& ledger,
                         const observe::Verdict& /*verdict*/, const std::vector<pipeline::Finding>& findings) {
    shown_ = view_->finish(moment, ledger, findings);
    if (cluster_) shown_["cluster"] = std::exchange(cluster_, nullptr)();
    run_["seconds"] = moment.seconds;
    has_run_ = false;
    publish();
}

void WebFrontend::begin_managing(const observe::RunFacts& facts) {
    if (!server_) listen();
    note_run(facts);
    shown_ = {{"cluster", cluster_()}};
    publish();
}

void WebFrontend::look_at_cluster(double seconds) {
    if (Clock::now() - published_ < interval_) return;
    shown_["cluster"] = cluster_();
    run_["seconds"] = seconds;
    publish();
}

void WebFrontend::finish_managing(double seconds) {
    shown_["cluster"] = std::exchange(cluster_, nullptr)();
    run_["seconds"] = seconds;
    has_run_ = false;
    publish();
}

void WebFrontend::idle() {
    if (Clock::now() - published_ >= interval_) publish();
}

void WebFrontend::set_runs(nlohmann::json runs) {
    runs_ = std::move(runs);
    runs_changed_ = Clock::now();
}

void WebFrontend::refresh() {
    publish();
}

void WebFrontend::set_run_ended(const std::string& reason) {
    has_run_ = false;
    if (!run_.is_null()) run_["stop_reason"] = reason;
}

}  // namespace weir::serve

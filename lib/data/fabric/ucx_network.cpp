#include "fabric/ucx_network.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "core/clock_ns.hpp"
#include "core/error.hpp"
#include "fabric/deferred_events.hpp"
#include "fabric/links.hpp"
#include "fabric/transfers.hpp"
#include "fabric/ucx_worker.hpp"

namespace weir::fabric {

namespace {

/// Between looks at the connections, which cost a system call.
constexpr core::TimeNs look_every_ns = 100'000;
constexpr int rounds_max = 16;
/// At the end: for what was sent, for others to have got it, and for UCX to let go.
constexpr core::TimeNs flush_ns = 500 * core::ns_per_ms;
constexpr core::TimeNs taking_ns = 2 * core::ns_per_s;
constexpr core::TimeNs last_words_ns = 200 * core::ns_per_ms;

LinkTable make_links(std::size_t nodes) {
    LinkTable table;
    table.links.resize(nodes);
    for (std::size_t node = 0; node < nodes; ++node) table.links[node].node = static_cast<cluster::NodeId>(node);
    return table;
}

UcxNetwork::Config checked(UcxNetwork::Config config) {
    if (config.self >= config.addresses.size() || config.names.size() != config.addresses.size() ||
        config.incarnation == 0)
        throw core::RunError("a network needs an address and a name of each node, and an incarnation from 1 on");
    return config;
}

}  // namespace

class UcxNetwork::State {
public:
    State(const Config& config, Receiver& receiver)
        : config_(checked(config)),
          deferred_(receiver),
          table_(make_links(config_.addresses.size())),
          worker_(std::make_unique<UcxWorker>(config_.transports, table_.links.size())),
          transfers_(*worker_, table_, deferred_, receiver, config_.self),
          links_(config_, table_, deferred_, *worker_, transfers_) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    ~State() {
        transfers_.stop_taking();
        finish(flush_ns, [this] { return transfers_.is_flushed(); });
        links_.leave();
        finish(taking_ns, [this] { return links_.is_alone(); });
        links_.close();
        finish(last_words_ns, [this] { return transfers_.is_flushed(); });
        worker_.reset();
        transfers_.give_up();
        deferred_.drop();
    }

    void send(cluster::NodeId to, const cluster::Message& message, cluster::Payload payload) {
        if (to == config_.self) return deferred_.own(to, message, payload);
        Link& link = table_.links.at(to);
        if (link.stage == Link::Stage::up) {
            transfers_.send(link, message, payload);
        } else if (has_payload(message)) {
            deferred_.sent(to, message.block);
        }
    }

    void set_quorum(bool has_quorum) noexcept { links_.set_quorum(has_quorum); }

    bool progress(core::TimeNs now) {
        bool did = move(now);
        did |= deferred_.deliver();
        transfers_.flush();
        return did;
    }

    [[nodiscard]] int wait_fd() const noexcept { return links_.wait_fd(); }
    [[nodiscard]] bool arm() {
        transfers_.flush();
        return is_armed_ = deferred_.empty() && worker_->arm();
    }
    [[nodiscard]] bool is_flushed() const noexcept { return deferred_.empty() && transfers_.is_flushed(); }

    [[nodiscard]] std::uint64_t refused() const noexcept { return links_.refused(); }
    [[nodiscard]] std::vector<std::string> transports() const {
        std::set<std::string> names;
        for (const Link& link : table_.links)
            for (std::string& name : link.endpoint.transports()) names.insert(std::move(name));
        return {names.begin(), names.end()};
    }

private:
    bool move(core::TimeNs now) {
        links_.set_now(now);
        transfers_.flush();
        int rounds = 0;
        while (rounds < rounds_max && worker_->progress()) ++rounds;
        bool did = rounds > 0;
        if (std::exchange(is_armed_, false) || now - looked_at_ >= look_every_ns) {
            looked_at_ = now;
            did |= links_.look();
        }
        return did;
    }

    template <class IsDone>
    void finish(core::TimeNs time, IsDone&& is_done) {
        const core::TimeNs begin = core::monotonic_ns();
        const core::TimeNs then = table_.now;
        while (!is_done() && core::monotonic_ns() - begin < time) move(then + core::monotonic_ns() - begin);
    }

    Config config_;
    DeferredEvents deferred_;
    LinkTable table_;
    std::unique_ptr<UcxWorker> worker_;
    Transfers transfers_;
    Links links_;
    core::TimeNs looked_at_ = 0;
    bool is_armed_ = true;  ///< it may have been waited: look at the connections
};

UcxNetwork::UcxNetwork(const Config& config, Receiver& receiver) : state_(std::make_unique<State>(config, receiver)) {}

UcxNetwork::~UcxNetwork() = default;

void UcxNetwork::send(cluster::NodeId to, const cluster::Message& message, cluster::Payload payload) {
    state_->send(to, message, payload);
}

void UcxNetwork::set_quorum(bool has_quorum) noexcept {
    state_->set_quorum(has_quorum);
}

bool UcxNetwork::progress(core::TimeNs now) {
    return state_->progress(now);
}

int UcxNetwork::wait_fd() const noexcept {
    return state_->wait_fd();
}

bool UcxNetwork::arm() {
    return state_->arm();
}

bool UcxNetwork::is_flushed() const noexcept {
    return state_->is_flushed();
}

std::uint64_t UcxNetwork::refused() const noexcept {
    return state_->refused();
}

std::vector<std::string> UcxNetwork::transports() const {
    return state_->transports();
}

std::string UcxNetwork::text() const {
    const std::vector<std::string> names = transports();
    return fmt::format("UCX {}{}{}", ucx().ucp_get_version_string(), names.empty() ? "" : " over ",
                       fmt::join(names, ", "));
}

}  // namespace weir::fabric

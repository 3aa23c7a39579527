// What somebody asks of a whole cluster: to start, to stop. Carried out by one node, which tells the others.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/colleagues.hpp"
#include "serve/life.hpp"

namespace weir::serve {

struct ClusterOrder {
    Command command = Command::start;
    std::vector<std::string> without{};  ///< nodes that a run is started without
    std::string comment{};               ///< of a run
};

/// Those of life.hpp that mean something for a cluster.
[[nodiscard]] std::span<const Command> cluster_commands() noexcept;

/// Does orders, one at a time; each call returns when it is done. start: all nodes get the same number, and where one
/// of them cannot begin the others are stopped again; where some are in a run, the others join it. stop: readout nodes
/// stop, and the others end by themselves once they have everything.
class ClusterOrders {
public:
    struct Options {
        std::chrono::milliseconds pause{100};           ///< between questions
        std::chrono::milliseconds start_wait{120'000};  ///< for all nodes to run
        /// When all readout nodes have ended, for the others.
        std::chrono::milliseconds end_wait{10'000};
        /// Hears all answers, for whoever watches meanwhile.
        std::function<void(const std::vector<Colleagues::Answer>&)> heard{};
    };
    /// What is given outlives it. `is_given_up`: somebody wants something else.
    ClusterOrders(Colleagues& colleagues, Options options, std::function<bool()> is_given_up)
        : colleagues_(colleagues), options_(std::move(options)), is_given_up_(std::move(is_given_up)) {}

    /// What has been done, for people. Throws core::RunError: why not, and what has become of it.
    [[nodiscard]] std::string carry_out(const ClusterOrder& order);

private:
    using Answers = std::vector<Colleagues::Answer>;

    [[nodiscard]] Answers ask();
    [[nodiscard]] std::string start(const ClusterOrder& order);
    struct Stopping;
    [[nodiscard]] Stopping begin_stop(const Answers& answers) const;
    [[nodiscard]] bool has_to_end(std::size_t node, const Colleagues::Answer& answer, Stopping& stopping) const;
    [[nodiscard]] std::string stop();
    [[nodiscard]] std::string abort();
    void await_running(const std::vector<std::size_t>& nodes, std::uint32_t number);
    void undo_start(const std::vector<std::size_t>& nodes);
    /// Who is to begin a run; `number`: that of the run which others are in, or 0.
    struct Beginners {
        std::vector<std::size_t> nodes;
        std::uint32_t number = 0;
    };
    [[nodiscard]] std::vector<std::size_t> taking_part(const ClusterOrder& order) const;
    [[nodiscard]] Beginners beginners(const ClusterOrder& order, const Answers& answers) const;
    [[nodiscard]] std::string tell(std::size_t node, std::span<const web::Controls::Value> values, Command command);
    void pause() const;
    [[nodiscard]] const std::string& name(std::size_t node) const { return colleagues_.nodes()[node].name; }

    Colleagues& colleagues_;
    const Options options_;
    const std::function<bool()> is_given_up_;
};

}  // namespace weir::serve

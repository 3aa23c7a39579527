// The nodes of a cluster as one of them reaches them: itself, and the others by HTTP.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/cluster.hpp"
#include "web/client.hpp"
#include "web/controls.hpp"

namespace weir::serve {

class Colleagues {
public:
    struct Node {
        std::string name{};
        config::NodeRole role = config::NodeRole::readout;
        std::string serve{};  ///< "HOST:PORT"; empty: nobody can ask it
        bool spare = false;   ///< it may be absent
    };
    /// What a node says of itself (node_summary), or why it says nothing.
    struct Answer {
        nlohmann::json summary;  ///< null: it was not reached
        std::string error;
    };

    explicit Colleagues(std::vector<Node> nodes) : nodes_(std::move(nodes)) {}
    virtual ~Colleagues() = default;
    Colleagues(const Colleagues&) = delete;
    Colleagues& operator=(const Colleagues&) = delete;

    [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
    /// All of them at the same time; in their order. Waits for those that do not answer, for a bounded time.
    [[nodiscard]] virtual std::vector<Answer> ask() = 0;
    /// As web::Controls::apply() at this node.
    [[nodiscard]] virtual web::Controls::Outcome tell(std::size_t node, std::span<const web::Controls::Value> values,
                                                      std::string_view command) = 0;

private:
    const std::vector<Node> nodes_;
};

/// One thread at a time.
class RemoteColleagues final : public Colleagues {
public:
    /// This node itself is asked without a network.
    struct Self {
        std::size_t node = 0;
        std::function<nlohmann::json()> summary{};
        web::Controls* controls = nullptr;  ///< null: nothing can be changed here
    };
    /// `token_file`: what is in it is shown to the others with changes, as it is then; empty: nothing is.
    RemoteColleagues(std::vector<Node> nodes, Self self, std::string token_file);

    [[nodiscard]] std::vector<Answer> ask() override;
    [[nodiscard]] web::Controls::Outcome tell(std::size_t node, std::span<const web::Controls::Value> values,
                                              std::string_view command) override;

private:
    [[nodiscard]] Answer ask(std::size_t node);
    [[nodiscard]] web::Client& client_of(std::size_t node);

    const Self self_;
    const std::string token_file_;
    std::vector<std::unique_ptr<web::Client>> clients_;  ///< by node; connections are kept
};

}  // namespace weir::serve

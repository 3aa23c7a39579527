// The flow rules of a run, port by port: given to the devices at its start, watched while it goes on, taken back at its
// end; and what is said of them.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/run_config.hpp"
#include "pipeline/finding.hpp"
#include "plan/placement.hpp"
#include "port/live_port.hpp"
#include "stages/rx/rx_stage.hpp"
#include "steer/port_rules.hpp"

namespace weir::pipeline {

class RunFlows {
public:
    using Ports = std::vector<std::unique_ptr<port::LivePort>>;
    using RxStages = std::vector<std::unique_ptr<stages::RxStage>>;

    /// Before anything polls. `ports` are the configuration's, or none in a replay: then weir does what the files say.
    /// `owners` per source (make_owners). Throws core::RunError where a device refuses a rule and
    /// `on_refusal = "fail"`.
    RunFlows(const config::RunConfig& config, const std::vector<std::uint16_t>& owners,
             const plan::Placement& placement, const Ports& ports);
    ~RunFlows();
    RunFlows(const RunFlows&) = delete;
    RunFlows& operator=(const RunFlows&) = delete;

    /// For RxRules: by port, null where there are no rules.
    [[nodiscard]] std::vector<steer::RuleRuntime*> runtimes() const;

    /// Control thread, several times a second. Returns warnings: of rules that turned out to have no effect.
    std::vector<std::string> update(const RxStages& rx);

    /// Of what rules dropped in software: packets that belonged to a stream. For any thread.
    [[nodiscard]] std::uint64_t dropped_of_streams(const RxStages& rx) const;

    /// The table of rules, several lines.
    [[nodiscard]] std::string text() const;
    /// `flows` of the report.
    [[nodiscard]] nlohmann::json json() const;
    void add_findings(std::vector<Finding>& findings) const;

private:
    struct Port {
        std::string name;
        std::string from;    ///< the file, or "weir"
        std::string remark;  ///< about the port as a whole
        bool isolated = false;
        std::unique_ptr<steer::RuleDevice> device;
        std::unique_ptr<steer::PortRules> rules;  ///< null: none
    };

    void give_to_device(const config::PortConfig& config, std::vector<steer::FlowRule> rules,
                        const port::LivePort& live, Port& port);

    std::vector<Port> ports_;
};

}  // namespace weir::pipeline

// The servers of a run's streams with an `exchange`, and the queue pairs of the running pipeline that they connect.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"
#include "run/perftest_server.hpp"

namespace weir::pipeline {
class Pipeline;
}  // namespace weir::pipeline

namespace weir::run {

/// The largest path MTU of `stream`: as configured, or what a packet of its port holds.
[[nodiscard]] std::uint32_t path_mtu_of(const config::RunConfig& config, const config::StreamConfig& stream);

class Exchanges {
public:
    /// Listens for every stream that says so; `pipeline` runs. `say` as for PerftestServer. Throws core::RunError.
    Exchanges(pipeline::Pipeline& pipeline, const std::function<void(std::string_view)>& say);
    ~Exchanges();
    Exchanges(const Exchanges&) = delete;
    Exchanges& operator=(const Exchanges&) = delete;

    /// A bounded amount of work, on the control thread.
    void serve(double seconds);
    /// For the run report: what became of the clients of each stream; empty if there are no exchanges.
    [[nodiscard]] nlohmann::json report() const;

private:
    struct Stream;
    std::vector<std::unique_ptr<Stream>> streams_;
};

}  // namespace weir::run

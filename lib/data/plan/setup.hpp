// From the configuration to what the stages need to know of streams: formats, rules, geometry. Plain data, no DPDK.
#pragma once

#include <cstdint>
#include <vector>

#include "config/run_config.hpp"
#include "plan/placement.hpp"
#include "stages/rx/rx_stage.hpp"
#include "stages/work_stage.hpp"
#include "steer/steering.hpp"

namespace weir::plan {

/// One per configured stream. Throws core::UsageError where a format refuses its options.
[[nodiscard]] std::vector<stages::StreamRuntime> make_streams(const config::RunConfig& config);

/// The rx lcore (index) that assembles each source, on the NUMA node of its port if one is there. All sources of a
/// stream that are told apart by their header share one, because the packet has to be steered before the header is
/// read. Where the flow rules of a port send a stream to one queue, it is the rx lcore that polls that.
[[nodiscard]] std::vector<std::uint16_t> make_owners(const config::RunConfig& config, const Placement& placement);

/// Rules for what arrives on `port`.
[[nodiscard]] steer::Steering make_steering(const config::RunConfig& config, std::uint32_t port,
                                            const std::vector<std::uint16_t>& owners);

/// Per source: sizes that are known in advance.
[[nodiscard]] std::vector<stages::SourceGeometry> make_geometry(const config::RunConfig& config,
                                                                const std::vector<stages::StreamRuntime>& streams);

/// Per source: width of its event number on the wire.
/// Of each source: whether its messages are put in order by sequence numbers. Empty: of none.
[[nodiscard]] std::vector<std::uint8_t> make_in_sequence(const config::RunConfig& config,
                                                         const std::vector<stages::StreamRuntime>& streams);

[[nodiscard]] std::vector<std::uint8_t> make_number_bits(const config::RunConfig& config,
                                                         const std::vector<stages::StreamRuntime>& streams);

/// Per RoCE source that `owner` assembles: what must be known of its messages.
[[nodiscard]] std::vector<roce::Listener::SourceConfig> make_roce_sources(
    const config::RunConfig& config, const std::vector<stages::StreamRuntime>& streams,
    const std::vector<std::uint16_t>& owners, std::uint16_t owner);

/// Per RoCE source that `owner` assembles and weir answers: what the responder must know.
[[nodiscard]] std::vector<roce::Responder::SourceConfig> make_responder_sources(
    const config::RunConfig& config, const std::vector<std::uint16_t>& owners, std::uint16_t owner);
/// What the configuration says of a source's queue pair; its stream has a `service` other than "listen".
[[nodiscard]] roce::QueuePair make_queue_pair(const config::RunConfig& config, std::uint32_t source);
/// The rx lcores that answer queue pairs on this port, in ascending order: each through a transmit queue of its own.
[[nodiscard]] std::vector<std::uint16_t> answering_lcores(const config::RunConfig& config, std::uint32_t port,
                                                          const std::vector<std::uint16_t>& owners);

}  // namespace weir::plan
